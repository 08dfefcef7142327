// waitid on a pidfd that must not block: EAGAIN instead of waiting.
#include "../check.h"
#include <sys/prctl.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static long wait_for(int fd, int options)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    long result = syscall(SYS_waitid, P_PIDFD, fd, &info, options, NULL);
    if (result == 0)
        check_line("code %d status %d\n", info.si_code, info.si_status);
    return result;
}

int main(void)
{
    pid_t child = check_fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    int fd = (int)syscall(SYS_pidfd_open, child, O_NONBLOCK);
    REQUIRE(fd >= 0);
    CHECK("running", wait_for(fd, WEXITED));
    CHECK("running-no-hang", wait_for(fd, WEXITED | WNOHANG));
    REQUIRE(kill(child, SIGKILL) == 0);
    while (waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT) != 0)
        REQUIRE(errno == EINTR);
    CHECK("ended", wait_for(fd, WEXITED));
    CHECK("nobody", wait_for(fd, WEXITED));
    CHECK("no-pidfd", wait_for(0, WEXITED));
    return 0;
}
