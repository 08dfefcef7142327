// Descriptors far above 65,536: up to what `nr_open` says.
#include "../check.h"
#include <sys/resource.h>
#include <sys/select.h>
#include <poll.h>

int main(void)
{
    struct rlimit limit = { 1 << 20, 1 << 20 };
    // Who may not raise the limit has nothing to compare.
    int may = setrlimit(RLIMIT_NOFILE, &limit) == 0;
    int fds[2];
    REQUIRE(syscall(SYS_close_range, 3, ~0U, 0) == 0);
    REQUIRE(pipe(fds) == 0);
    CHECK_TRUE("far", !may || dup2(fds[1], 1000000) == 1000000);
    CHECK_TRUE("farthest", !may || dup2(fds[1], (1 << 20) - 1) == (1 << 20) - 1);
    CHECK_TRUE("too-far", !may || (dup2(fds[1], 1 << 20) == -1 && errno == EBADF));
    CHECK_TRUE("none-above-it", !may || (fcntl(fds[1], F_DUPFD, (1 << 20) - 1) == -1 && errno == EMFILE));
    CHECK_TRUE("none-that-far", !may || (fcntl(fds[1], F_DUPFD, 1 << 20) == -1 && errno == EINVAL));
    CHECK_TRUE("freed", !may || (close((1 << 20) - 1) == 0 && fcntl(fds[1], F_DUPFD, (1 << 20) - 1) == (1 << 20) - 1));
    CHECK_TRUE("next-one", !may || fcntl(fds[1], F_DUPFD, 999999) == 999999);
    CHECK_TRUE("next-but-one", !may || fcntl(fds[1], F_DUPFD, 999999) == 1000001);
    CHECK_TRUE("writes", !may || write(1000000, "ab", 2) == 2);
    struct pollfd ready = { .fd = 999999, .events = POLLOUT };
    CHECK_TRUE("polls", !may || (poll(&ready, 1, 0) == 1 && ready.revents == POLLOUT));
    CHECK_CHILD("inherited", _exit(may ? write(1000001, "c", 1) == 1 ? 3 : 4 : 3));
    CHECK_TRUE("flags", !may || fcntl(1000000, F_SETFD, FD_CLOEXEC) == 0);
    CHECK_TRUE("flags-read", !may || fcntl(1000000, F_GETFD) == FD_CLOEXEC);
    CHECK_TRUE("range-closed", !may || syscall(SYS_close_range, 65536, ~0U, 0) == 0);
    CHECK_TRUE("gone", !may || (fcntl(1000000, F_GETFD) == -1 && errno == EBADF));
    CHECK_TRUE("lowest", dup(0) == fds[1] + 1);
    // Many, then none: the lowest free number is found again.
    int last = 0;
    for (int i = 0; i < 5000; i++)
        last = dup(0);
    CHECK_TRUE("all-in-order", last == fds[1] + 5001);
    for (int fd = 1000; fd < 4000; fd += 2)
        close(fd);
    CHECK("first-gap", dup(0));
    CHECK("second-gap", dup(0));
    CHECK("from-2001", fcntl(0, F_DUPFD, 2001));
    CHECK("range-left", syscall(SYS_close_range, fds[1] + 1, ~0U, 0));
    CHECK_TRUE("lowest-again", dup(0) == fds[1] + 1);
    return 0;
}
