// PR_SET_TSC: a thread that may not read the processor's time-stamp counter. Children inherit it, and so do programs that are executed.
#include "../check.h"
#include <pthread.h>
#include <sys/prctl.h>

static int how(void)
{
    int value = -1;
    return prctl(PR_GET_TSC, &value) == 0 ? value : -1;
}

static void read_counter(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
}

static int code;

static void caught(int signal, siginfo_t *information, void *context)
{
    (void)signal;
    (void)context;
    code = information->si_code;
    prctl(PR_SET_TSC, PR_TSC_ENABLE);
}

static void *in_thread(void *nothing)
{
    (void)nothing;
    CHECK("thread-inherits", how());
    CHECK("thread-allows", prctl(PR_SET_TSC, PR_TSC_ENABLE));
    read_counter();
    return NULL;
}

int main(int count, char **arguments)
{
    if (count > 1) {
        CHECK("executed", how());
        return 0;
    }
    CHECK("at-first", how());
    CHECK("bad-value", prctl(PR_SET_TSC, 3));
    CHECK("bad-address", prctl(PR_GET_TSC, 8));
    CHECK("deny", prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
    CHECK("denied", how());
    CHECK_CHILD("child", CHECK("inherited", how()); read_counter());
    CHECK_CHILD("program", execl("/proc/self/exe", arguments[0], "executed", NULL));
    struct sigaction action = { .sa_sigaction = caught, .sa_flags = SA_SIGINFO };
    REQUIRE(sigaction(SIGSEGV, &action, NULL) == 0);
    read_counter();
    CHECK_TRUE("from-the-kernel", code == SI_KERNEL);
    CHECK("allowed-by-handler", how());
    REQUIRE(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, in_thread, NULL) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    CHECK("own-thread-still-denied", how());
    // Each has its own, however often they take turns.
    int turns[2];
    REQUIRE(pipe(turns) == 0);
    REQUIRE(prctl(PR_SET_TSC, PR_TSC_ENABLE) == 0);
    pid_t denied = fork();
    REQUIRE(denied >= 0);
    if (denied == 0) {
        char byte;
        REQUIRE(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
        close(turns[1]);
        while (read(turns[0], &byte, 1) == 1)
            ;
        signal(SIGSEGV, SIG_DFL);
        read_counter();
        _exit(1);
    }
    for (int turn = 0; turn < 100; turn++) {
        read_counter();
        REQUIRE(write(turns[1], "x", 1) == 1);
    }
    close(turns[1]);
    int status;
    REQUIRE(waitpid(denied, &status, 0) == denied);
    CHECK("denied-child-ended-by", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return 0;
}
