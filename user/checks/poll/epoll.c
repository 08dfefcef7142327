// epoll: level, edge, one-shot, modification, nesting and errors.
#include "../check.h"
#include <sys/epoll.h>

static int ready(int epoll)
{
    struct epoll_event events[8];
    return epoll_wait(epoll, events, 8, 0);
}

int main(void)
{
    int fds[2], other[2];
    char c;
    REQUIRE(pipe(fds) == 0 && pipe(other) == 0);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    REQUIRE(epoll >= 0);
    CHECK("cloexec", fcntl(epoll, F_GETFD));
    CHECK("create-zero", syscall(SYS_epoll_create, 0));
    CHECK("create-bad-flags", syscall(SYS_epoll_create1, 1));
    struct epoll_event event = { EPOLLIN, { .u64 = 42 } }, got[8];
    CHECK("add", epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event));
    CHECK("add-again", epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event));
    CHECK("nothing-ready", ready(epoll));
    REQUIRE(write(fds[1], "ab", 2) == 2);
    CHECK("ready", epoll_wait(epoll, got, 8, 0));
    CHECK("event", got[0].events);
    CHECK("data", got[0].data.u64);
    CHECK("level-stays", ready(epoll));
    event.events = EPOLLIN | EPOLLET;
    CHECK("modify-to-edge", epoll_ctl(epoll, EPOLL_CTL_MOD, fds[0], &event));
    CHECK("edge-first", ready(epoll));
    CHECK("edge-second", ready(epoll));
    REQUIRE(read(fds[0], &c, 1) == 1);
    CHECK("edge-after-read", ready(epoll));
    REQUIRE(write(fds[1], "c", 1) == 1);
    CHECK("edge-after-write", ready(epoll));
    event.events = EPOLLIN | EPOLLONESHOT;
    REQUIRE(epoll_ctl(epoll, EPOLL_CTL_MOD, fds[0], &event) == 0);
    CHECK("oneshot-first", ready(epoll));
    REQUIRE(write(fds[1], "d", 1) == 1);
    CHECK("oneshot-second", ready(epoll));
    CHECK("oneshot-rearm", epoll_ctl(epoll, EPOLL_CTL_MOD, fds[0], &event) == 0 ? ready(epoll) : -1);
    CHECK("delete", epoll_ctl(epoll, EPOLL_CTL_DEL, fds[0], NULL));
    CHECK("delete-again", epoll_ctl(epoll, EPOLL_CTL_DEL, fds[0], NULL));
    CHECK("modify-missing", epoll_ctl(epoll, EPOLL_CTL_MOD, fds[0], &event));
    CHECK("deleted", ready(epoll));
    CHECK("bad-operation", epoll_ctl(epoll, 9, fds[0], &event));
    CHECK("add-itself", epoll_ctl(epoll, EPOLL_CTL_ADD, epoll, &event));
    check_write_file("f", "");
    CHECK("add-regular-file", epoll_ctl(epoll, EPOLL_CTL_ADD, open("f", O_RDONLY), &event));
    CHECK("not-an-epoll", epoll_ctl(fds[0], EPOLL_CTL_ADD, fds[1], &event));
    CHECK("wait-zero-events", epoll_wait(epoll, got, 0, 0));
    long before = check_now_ms();
    CHECK("timeout", epoll_wait(epoll, got, 8, 30));
    CHECK_TRUE("waited", check_now_ms() - before >= 29);
    // Several ready at once come out in turn when the buffer is small.
    event = (struct epoll_event){ EPOLLOUT, { .u64 = 1 } };
    REQUIRE(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[1], &event) == 0);
    event.data.u64 = 2;
    REQUIRE(epoll_ctl(epoll, EPOLL_CTL_ADD, other[1], &event) == 0);
    int seen = 0;
    for (int i = 0; i < 2; i++) {
        REQUIRE(epoll_wait(epoll, got, 1, 0) == 1);
        seen |= (int)got[0].data.u64;
    }
    CHECK("fair", seen);
    CHECK("both", ready(epoll));
    // Closing the last descriptor removes the entry.
    close(other[1]);
    CHECK("closed-removed", ready(epoll));
    // Hang-up is reported without being asked for.
    event = (struct epoll_event){ 0, { .u64 = 3 } };
    REQUIRE(epoll_ctl(epoll, EPOLL_CTL_DEL, fds[1], NULL) == 0);
    REQUIRE(epoll_ctl(epoll, EPOLL_CTL_ADD, other[0], &event) == 0);
    CHECK("hang-up", epoll_wait(epoll, got, 8, 0));
    CHECK("hang-up-event", got[0].events);
    // Nested: the inner set is readable when it has something.
    int outer = epoll_create1(0);
    event.events = EPOLLIN;
    CHECK("nest", epoll_ctl(outer, EPOLL_CTL_ADD, epoll, &event));
    CHECK("nested-ready", ready(outer));
    CHECK("nested-loop", epoll_ctl(epoll, EPOLL_CTL_ADD, outer, &event));
    // Woken by another process.
    REQUIRE(pipe(other) == 0);
    int waiter = epoll_create1(0);
    event.data.u64 = 7;
    REQUIRE(epoll_ctl(waiter, EPOLL_CTL_ADD, other[0], &event) == 0);
    pid_t child = check_fork();
    if (child == 0) {
        check_sleep_ms(30);
        REQUIRE(write(other[1], "z", 1) == 1);
        _exit(0);
    }
    CHECK("woken", epoll_wait(waiter, got, 8, -1));
    CHECK("woken-data", got[0].data.u64);
    check_wait(child);
    return 0;
}
