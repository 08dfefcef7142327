// close_range(2) and the close-on-exec flag.
#include "../check.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define RANGE_CLOEXEC 4

int main(int argc, char **argv)
{
    if (argc > 1) {
        // After exec: report which of the descriptors 10 to 13 are open.
        int open_ones = 0;
        for (int fd = 10; fd < 14; fd++)
            if (fcntl(fd, F_GETFD) != -1)
                open_ones |= 1 << (fd - 10);
        return open_ones;
    }
    int fd = open("/dev/null", O_RDWR);
    REQUIRE(fd >= 0);
    for (int target = 10; target < 20; target++)
        REQUIRE(dup2(fd, target) == target);
    CHECK("close-range", syscall(SYS_close_range, 14, 16, 0));
    CHECK("closed-first", fcntl(14, F_GETFD));
    CHECK("closed-last", fcntl(16, F_GETFD));
    CHECK("open-after", fcntl(17, F_GETFD));
    CHECK("empty-range", syscall(SYS_close_range, 14, 16, 0));
    CHECK("reversed", syscall(SYS_close_range, 16, 14, 0));
    CHECK("bad-flags", syscall(SYS_close_range, 14, 16, 1 << 20));
    CHECK("to-the-end", syscall(SYS_close_range, 18, ~0u, 0));
    CHECK("last-closed", fcntl(19, F_GETFD));
    CHECK("mark-cloexec", syscall(SYS_close_range, 12, 13, RANGE_CLOEXEC));
    CHECK("flag", fcntl(12, F_GETFD));
    CHECK("set-flag", fcntl(10, F_SETFD, FD_CLOEXEC));
    CHECK_CHILD("open-after-exec", execl("/proc/self/exe", "self", "list", NULL); _exit(99));
    CHECK("still-open-here", fcntl(10, F_GETFD));
    return 0;
}
