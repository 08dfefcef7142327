// pidfd: a descriptor that stands for a process.
#include "../check.h"
#include <poll.h>

#define OPEN 434
#define SEND 424
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

int main(void)
{
    pid_t pid = check_fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    int fd = syscall(OPEN, pid, 0);
    CHECK_TRUE("open", fd >= 0);
    CHECK("close-on-exec", fcntl(fd, F_GETFD));
    struct pollfd p = { fd, POLLIN, 0 };
    CHECK("alive-not-readable", poll(&p, 1, 0));
    CHECK("probe", syscall(SEND, fd, 0, NULL, 0));
    CHECK("kill", syscall(SEND, fd, SIGTERM, NULL, 0));
    CHECK("readable-at-end", poll(&p, 1, -1));
    siginfo_t info;
    CHECK("wait", waitid(P_PIDFD, fd, &info, WEXITED) == 0 ? info.si_status : -1);
    CHECK("gone", syscall(SEND, fd, SIGTERM, NULL, 0));
    CHECK("missing", syscall(OPEN, 0x3fffffff, 0));
    CHECK("bad-flags", syscall(OPEN, getpid(), 0x40000000));
    CHECK("not-a-pidfd", syscall(SEND, 0, 0, NULL, 0));
    return 0;
}
