// A descriptor that clone(2) makes (CLONE_PIDFD) stands for the child, whoever duplicates it or closes it meanwhile.
#include "together.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif

static int pidfd, duplicate, good, lowest;
static pid_t child;

static void nothing(void)
{
    duplicate = -1;
    child = 0;
    pidfd = -1;
}

static void clone_it(void)
{
    // Where it would be told a thread's id it is told the descriptor.
    child = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, &pidfd, 0, 0);
    if (child == 0)
        _exit(0);
}

// Takes the descriptor away as soon as it is there.
static void take_it(void)
{
    for (int i = 0; i < 2000 && duplicate < 0; i++)
        duplicate = dup(lowest);
    if (duplicate >= 0)
        close(lowest);
}

static void see(void)
{
    siginfo_t info = { 0 };
    int fd = duplicate >= 0 ? duplicate : lowest;
    REQUIRE(child > 0);
    // P_PIDFD.
    good += waitid(3, fd, &info, WEXITED) == 0 && info.si_pid == child;
    waitpid(child, NULL, 0);
    close(fd);
}

int main(void)
{
    lowest = dup(0);
    close(lowest);
    together(1500, nothing, clone_it, take_it, see);
    CHECK("stands-for-the-child", good);
    return 0;
}
