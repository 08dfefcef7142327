// eventfd: counting, semaphores, limits and polling.
#include "../check.h"
#include <poll.h>
#include <sys/eventfd.h>

int main(void)
{
    uint64_t value = 0;
    int fd = eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC);
    REQUIRE(fd >= 0);
    CHECK("cloexec", fcntl(fd, F_GETFD));
    CHECK("read", read(fd, &value, 8));
    CHECK("initial", value);
    CHECK("read-zero", read(fd, &value, 8));
    value = 5;
    CHECK("add", write(fd, &value, 8));
    CHECK("add-again", write(fd, &value, 8));
    CHECK("sum-read", read(fd, &value, 8));
    CHECK("sum", value);
    CHECK("short-read", read(fd, &value, 4));
    CHECK("short-write", write(fd, &value, 4));
    value = UINT64_MAX;
    CHECK("write-maximum", write(fd, &value, 8));
    value = UINT64_MAX - 1;
    CHECK("write-largest", write(fd, &value, 8));
    struct pollfd p = { fd, POLLIN | POLLOUT, 0 };
    CHECK("full-poll", poll(&p, 1, 0) == 1 ? p.revents : -1);
    value = 1;
    CHECK("overflow-would-block", write(fd, &value, 8));
    CHECK("drain", read(fd, &value, 8));
    CHECK("empty-poll", poll(&p, 1, 0) == 1 ? p.revents : -1);
    CHECK("seek", lseek(fd, 0, SEEK_SET));
    CHECK("bad-flags", eventfd(0, 0x10));
    int semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
    CHECK("semaphore-first", read(semaphore, &value, 8) == 8 ? (long)value : -1);
    CHECK("semaphore-second", read(semaphore, &value, 8) == 8 ? (long)value : -1);
    CHECK("semaphore-empty", read(semaphore, &value, 8));
    // A blocked reader is woken by another process.
    int blocking = eventfd(0, 0);
    pid_t child = check_fork();
    if (child == 0) {
        check_sleep_ms(30);
        value = 9;
        REQUIRE(write(blocking, &value, 8) == 8);
        _exit(0);
    }
    CHECK("blocked-read", read(blocking, &value, 8));
    CHECK("blocked-value", value);
    check_wait(child);
    return 0;
}
