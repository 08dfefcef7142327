// timerfd: expirations as readable counts.
#include "../check.h"
#include <poll.h>
#include <sys/timerfd.h>

int main(void)
{
    uint64_t count = 0;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    REQUIRE(fd >= 0);
    CHECK("unarmed-read", read(fd, &count, 8));
    struct itimerspec spec = { { 0, 0 }, { 100000, 0 } }, old;
    CHECK("set", timerfd_settime(fd, 0, &spec, NULL));
    CHECK("early-read", read(fd, &count, 8));
    spec = (struct itimerspec){ { 0, 0 }, { 0, 20000000 } };
    CHECK("set-again", timerfd_settime(fd, 0, &spec, NULL));
    struct pollfd p = { fd, POLLIN, 0 };
    CHECK("poll", poll(&p, 1, -1));
    CHECK("read", read(fd, &count, 8));
    CHECK("once", count);
    CHECK("again", read(fd, &count, 8));
    CHECK("get", timerfd_gettime(fd, &old));
    CHECK("disarmed", old.it_value.tv_sec + old.it_value.tv_nsec);
    spec = (struct itimerspec){ { 0, 5000000 }, { 0, 5000000 } };
    timerfd_settime(fd, 0, &spec, NULL);
    check_sleep_ms(40);
    CHECK("periodic-read", read(fd, &count, 8));
    CHECK_TRUE("several", count >= 7);
    CHECK("interval", timerfd_gettime(fd, &old) == 0 ? old.it_interval.tv_nsec : -1);
    CHECK("short-read", read(fd, &count, 4));
    spec = (struct itimerspec){ { 0, 0 }, { 0, 0 } };
    CHECK("stop", timerfd_settime(fd, 0, &spec, NULL));
    CHECK("stopped", poll(&p, 1, 20));
    // An absolute time that is past fires at once.
    spec = (struct itimerspec){ { 0, 0 }, { 1, 0 } };
    CHECK("absolute-past", timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL));
    CHECK("fired", poll(&p, 1, -1));
    CHECK("bad-clock", timerfd_create(99, 0));
    CHECK("bad-flags", timerfd_create(CLOCK_MONOTONIC, 1));
    spec.it_value.tv_nsec = -1;
    CHECK("bad-time", timerfd_settime(fd, 0, &spec, NULL));
    CHECK("not-a-timer", timerfd_settime(1, 0, &(struct itimerspec){ 0 }, NULL));
    CHECK("write", write(fd, &count, 8));
    int blocking = timerfd_create(CLOCK_REALTIME, 0);
    spec = (struct itimerspec){ { 0, 0 }, { 0, 10000000 } };
    timerfd_settime(blocking, 0, &spec, NULL);
    CHECK("blocking-read", read(blocking, &count, 8) == 8 ? (long)count : -1);
    return 0;
}
