// epoll_pwait and epoll_pwait2: the mask of signals while they wait, time-outs, and what they refuse.
#include "../check.h"
#include <sys/epoll.h>

static volatile sig_atomic_t caught;

static void count(int signal)
{
    (void)signal;
    caught++;
}

static long pwait(int epoll, struct epoll_event *events, int most, int timeout, const uint64_t *mask, size_t size)
{
    return syscall(SYS_epoll_pwait, epoll, events, most, timeout, mask, size);
}

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

static long pwait2(int epoll, struct epoll_event *events, int most, const struct timespec *timeout, const uint64_t *mask, size_t size)
{
    return syscall(SYS_epoll_pwait2, epoll, events, most, timeout, mask, size);
}

int main(void)
{
    struct epoll_event got[4], in = { EPOLLIN, { .u64 = 7 } };
    int epoll = epoll_create1(0), ends[2];
    REQUIRE(epoll >= 0 && pipe(ends) == 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &in) == 0);
    const uint64_t none = 0, user = 1ull << (SIGUSR1 - 1);
    struct sigaction action = { .sa_handler = count };
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    REQUIRE(sigprocmask(SIG_BLOCK, &blocked, NULL) == 0);
    struct timespec zero = { 0, 0 }, brief = { 0, 2000000 }, bad = { 0, 1000000000 }, negative = { -1, 0 };
    CHECK("nothing", pwait(epoll, got, 4, 0, NULL, 0));
    CHECK("nothing-with-mask", pwait(epoll, got, 4, 0, &none, 8));
    CHECK("mask-of-wrong-size", pwait(epoll, got, 4, 0, &none, 4));
    CHECK("no-mask-any-size", pwait(epoll, got, 4, 0, NULL, 4));
    CHECK("bad-mask", pwait(epoll, got, 4, 0, BAD_POINTER, 8));
    CHECK("nothing-2", pwait2(epoll, got, 4, &zero, NULL, 0));
    long before = check_now_ms();
    CHECK("time-out-2", pwait2(epoll, got, 4, &brief, NULL, 0));
    CHECK_TRUE("waited", check_now_ms() - before >= 1);
    CHECK("bad-time", pwait2(epoll, got, 4, &bad, NULL, 0));
    CHECK("negative-time", pwait2(epoll, got, 4, &negative, NULL, 0));
    CHECK("bad-time-pointer", pwait2(epoll, got, 4, BAD_POINTER, NULL, 0));
    CHECK("no-room", pwait2(epoll, got, 0, &zero, NULL, 0));
    CHECK("not-a-set", pwait2(ends[0], got, 4, &zero, NULL, 0));
    CHECK("no-descriptor", pwait2(-1, got, 4, &zero, NULL, 0));
    // A signal that is pending and let in ends the wait; the mask is as before after that.
    REQUIRE(raise(SIGUSR1) == 0 && caught == 0);
    CHECK("let-in", pwait(epoll, got, 4, -1, &none, 8));
    CHECK("caught", caught);
    REQUIRE(raise(SIGUSR1) == 0);
    CHECK("kept-out", pwait2(epoll, got, 4, &brief, &user, 8));
    CHECK("still", caught);
    CHECK("let-in-2", pwait2(epoll, got, 4, NULL, &none, 8));
    CHECK("caught-2", caught);
    REQUIRE(raise(SIGUSR1) == 0);
    CHECK("blocked-again", caught);
    // What is ready comes before a signal.
    REQUIRE(write(ends[1], "x", 1) == 1);
    CHECK("ready", pwait2(epoll, got, 4, NULL, &user, 8));
    CHECK("its-number", (long)got[0].data.u64);
    CHECK("ready-and-signal", pwait(epoll, got, 4, 0, &none, 8));
    CHECK("bad-room", pwait2(epoll, BAD_POINTER, 4, &zero, &user, 8));
    return 0;
}
