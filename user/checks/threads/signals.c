// Signals and threads: directed ones, shared ones, masks of each thread, stops of the whole process.
#include "../check.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_int handled_by, ready, go;

static void note(int number)
{
    (void)number;
    handled_by = (int)syscall(SYS_gettid);
}

static void *wait_here(void *argument)
{
    *(atomic_int *)argument = (int)syscall(SYS_gettid);
    ready = 1;
    while (!go)
        check_sleep_ms(1);
    return NULL;
}

static void wait_for(atomic_int *flag)
{
    while (!*flag)
        check_sleep_ms(1);
}

static void *divide(void *argument)
{
    (void)argument;
    __asm__ volatile("ud2");
    return NULL;
}

int main(void)
{
    pthread_t thread;
    atomic_int tid = 0;
    struct sigaction action = { .sa_handler = note };
    sigaction(SIGUSR1, &action, NULL);
    REQUIRE(pthread_create(&thread, NULL, wait_here, &tid) == 0);
    wait_for(&ready);
    CHECK("tgkill", syscall(SYS_tgkill, getpid(), tid, SIGUSR1));
    wait_for(&handled_by);
    CHECK_TRUE("directed", handled_by == tid);
    handled_by = 0;
    sigset_t set, now;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR1);
    wait_for(&handled_by);
    CHECK_TRUE("blocked-here-taken-there", handled_by == tid);
    handled_by = 0;
    pthread_kill(pthread_self(), SIGUSR1);
    sigpending(&now);
    CHECK("own-pending", sigismember(&now, SIGUSR1));
    check_sleep_ms(20);
    CHECK("own-not-taken-by-other", handled_by);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    CHECK_TRUE("own-delivered", handled_by == getpid());
    CHECK("missing-thread", syscall(SYS_tgkill, getpid(), 0x3fffffff, 0));
    go = 1;
    pthread_join(thread, NULL);
    CHECK_CHILD("fault-in-thread-kills-process", pthread_create(&thread, NULL, divide, NULL); for (;;) pause());
    // A stop stops all threads, and the end of one process ends all of them.
    int status;
    pid_t child = check_fork();
    if (child == 0) {
        go = ready = 0;
        pthread_create(&thread, NULL, wait_here, &tid);
        wait_for(&ready);
        raise(SIGSTOP);
        _exit(12);
    }
    REQUIRE(waitpid(child, &status, WUNTRACED) == child);
    CHECK_STATUS("stopped", status);
    kill(child, SIGCONT);
    CHECK_STATUS("continued", check_wait(child));
    return 0;
}
