// Limits that two change or come up to at the same time: of the last process that is allowed there is one, and prlimit(2) tells the limit that it has replaced.
#include "together.h"
#include <sys/resource.h>

#define FORKS 300
#define EXCHANGES 20000

static pid_t children[2];
static int both;

static pid_t fork_one(void)
{
    // The library's fork lets one after the other into the kernel.
    pid_t pid = syscall(SYS_fork);
    if (pid == 0) {
        for (;;)
            pause();
    }
    return pid;
}

static void fork_first(void)
{
    children[0] = fork_one();
}

static void fork_second(void)
{
    children[1] = fork_one();
}

static void nothing(void)
{
}

static void end_them(void)
{
    both += children[0] > 0 && children[1] > 0;
    for (int i = 0; i < 2; i++)
        if (children[i] > 0) {
            kill(children[i], SIGKILL);
            check_wait(children[i]);
        }
}

// How often each limit that was set was told as the one that was replaced.
static unsigned char told[2][EXCHANGES + 1];
static int strange;

static void *exchange(void *argument)
{
    int which = argument != NULL;
    for (int i = 1; i <= EXCHANGES; i++) {
        struct rlimit new = { 2 * i + which, RLIM_INFINITY }, old;
        REQUIRE(prlimit(0, RLIMIT_FSIZE, &new, &old) == 0);
        if (old.rlim_cur / 2 > EXCHANGES)
            strange++;
        else
            __atomic_fetch_add(&told[old.rlim_cur % 2][old.rlim_cur / 2], 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

int main(void)
{
    CHECK_CHILD("child", {
        // Nobody else's processes count for this user. It has two threads.
        REQUIRE(setuid(54322) == 0);
        struct rlimit limit = { 3, 3 };
        REQUIRE(setrlimit(RLIMIT_NPROC, &limit) == 0);
        together(FORKS, nothing, fork_first, fork_second, end_them);
        CHECK("both-are-the-last", both);
        // The other thread has ended. One that has ended counts until it is waited for.
        pid_t first = fork_one(), second = fork_one();
        REQUIRE(first > 0 && second > 0 && kill(second, SIGKILL) == 0);
        siginfo_t info;
        REQUIRE(waitid(P_PID, second, &info, WEXITED | WNOWAIT) == 0);
        CHECK("beside-a-zombie", fork_one());
        check_wait(second);
        second = fork_one();
        CHECK_TRUE("when-it-was-waited-for", second > 0);
        kill(first, SIGKILL);
        kill(second, SIGKILL);
        check_wait(first);
        check_wait(second);
    });

    struct rlimit limit = { 0, RLIM_INFINITY };
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, exchange, &limit) == 0);
    exchange(NULL);
    pthread_join(thread, NULL);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    told[limit.rlim_cur % 2][limit.rlim_cur / 2]++;
    int once = 0;
    for (int i = 0; i < 2; i++)
        for (int j = 1; j <= EXCHANGES; j++)
            once += told[i][j] == 1;
    CHECK("told-once", once);
    CHECK("strange", strange);
    return 0;
}
