// What clone(2) tells of a child is told before the child can end: its number does not come after the 0 that its end writes into the same word, and
// its pidfd stands for it.
#include "../check.h"

#include <sched.h>
#include <sys/mman.h>

#define ROUNDS 500
#define FUTEX_WAIT 0
#define P_PIDFD 3
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif

static char stack[65536] __attribute__((aligned(16)));

static int end(void *argument)
{
    (void)argument;
    syscall(SYS_exit, 0);
    return 0;
}

// Waits for the 0 that the end of a thread writes, however long that takes: the program's alarm ends what hangs.
static int becomes_zero(volatile int *word)
{
    int value;
    while ((value = *word) != 0)
        syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
    return 1;
}

int main(void)
{
    static volatile int word;
    int cleared = 0, told = 0;
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    for (int i = 0; i < ROUNDS; i++) {
        word = -1;
        int tid = clone(end, stack + sizeof stack, flags, NULL, &word, NULL, &word);
        REQUIRE(tid > 0);
        cleared += becomes_zero(&word);
    }
    CHECK("threads-cleared", cleared);

    for (int i = 0; i < ROUNDS; i++) {
        int pidfd = -1;
        pid_t pid = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, 0);
        REQUIRE(pid >= 0);
        if (pid == 0)
            syscall(SYS_exit_group, 0);
        siginfo_t info = { 0 };
        told += waitid(P_PIDFD, pidfd, &info, WEXITED) == 0 && info.si_pid == pid;
        close(pidfd);
    }
    CHECK("pidfds-that-stand-for-the-child", told);
    return 0;
}
