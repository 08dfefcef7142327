// Absolute times that have passed long ago, also before the machine was started: timers expire at once, sleeps end at once.
#include "../check.h"
#include <sys/timerfd.h>

static volatile sig_atomic_t fired;

static void note(int number)
{
    fired += number == SIGUSR1;
}

static void posix(const char *name, clockid_t clock, struct timespec at, struct timespec interval)
{
    char text[64];
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    struct itimerspec when = { .it_interval = interval, .it_value = at };
    timer_t timer;
    fired = 0;
    REQUIRE(timer_create(clock, &event, &timer) == 0);
    snprintf(text, sizeof text, "%s-set", name);
    CHECK(text, timer_settime(timer, TIMER_ABSTIME, &when, NULL));
    if (at.tv_sec != 0 || at.tv_nsec != 0)
        while (!fired)
            check_sleep_ms(1);
    REQUIRE(timer_gettime(timer, &when) == 0);
    snprintf(text, sizeof text, "%s-left", name);
    CHECK_TRUE(text, when.it_value.tv_sec == 0 && (when.it_value.tv_nsec == 0) == (interval.tv_sec == 0 && interval.tv_nsec == 0));
    snprintf(text, sizeof text, "%s-fired", name);
    CHECK_TRUE(text, fired > 0);
    REQUIRE(timer_delete(timer) == 0);
}

// The number of expirations by now, as far as it says something of the time before.
static void descriptor(const char *name, clockid_t clock, struct timespec at, struct timespec interval, long least)
{
    char text[64];
    struct itimerspec when = { .it_interval = interval, .it_value = at };
    int fd = timerfd_create(clock, TFD_NONBLOCK);
    REQUIRE(fd >= 0);
    snprintf(text, sizeof text, "%s-set", name);
    CHECK(text, timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL));
    uint64_t count = 0;
    while (least > 0 && read(fd, &count, 8) == -1 && errno == EAGAIN)
        ;
    snprintf(text, sizeof text, "%s-expired", name);
    CHECK_TRUE(text, least == 0 ? read(fd, &count, 8) == -1 && errno == EAGAIN : (long)count >= least);
    close(fd);
}

// The signal of a timer that expired each second since 1970 tells how often more than once.
static void overrun(const char *name, long seconds)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
    struct itimerspec when = { .it_interval = { 1, 0 }, .it_value = { 1, 0 } };
    sigset_t set;
    siginfo_t info;
    timer_t timer;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    REQUIRE(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && timer_create(CLOCK_REALTIME, &event, &timer) == 0);
    REQUIRE(timer_settime(timer, TIMER_ABSTIME, &when, NULL) == 0 && sigwaitinfo(&set, &info) == SIGUSR2);
    CHECK_TRUE(name, info.si_overrun >= seconds - 1);
    REQUIRE(timer_delete(timer) == 0);
}

int main(void)
{
    struct sigaction action = { .sa_handler = note };
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    struct timespec none = { 0, 0 }, first = { 0, 1 }, second = { 1, 0 };
    posix("wall", CLOCK_REALTIME, second, none);
    posix("wall-first", CLOCK_REALTIME, first, none);
    posix("monotonic-first", CLOCK_MONOTONIC, first, none);
    posix("boot-first", CLOCK_BOOTTIME, first, none);
    descriptor("wall-descriptor", CLOCK_REALTIME, second, none, 1);
    descriptor("monotonic-descriptor", CLOCK_MONOTONIC, first, none, 1);
    descriptor("disarmed", CLOCK_REALTIME, none, none, 0);
    // Each second since 1970.
    struct timespec now;
    REQUIRE(clock_gettime(CLOCK_REALTIME, &now) == 0);
    descriptor("since-1970", CLOCK_REALTIME, second, second, now.tv_sec);
    overrun("since-1970-overrun", now.tv_sec);
    REQUIRE(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    struct timespec thousandth = { 0, 1000000 };
    descriptor("since-the-start", CLOCK_MONOTONIC, first, thousandth, now.tv_sec * 1000 + 1);
    CHECK("sleep-wall", clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &second, NULL));
    CHECK("sleep-monotonic", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &first, NULL));
    CHECK("sleep-zero", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &none, NULL));
    CHECK("sleep-negative", syscall(SYS_clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, &(struct timespec){ -1, 0 }, NULL));
    posix("wall-repeated", CLOCK_REALTIME, second, second);
    return 0;
}
