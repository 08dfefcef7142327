// Clocks: order, resolution, agreement, errors.
#include "../check.h"
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>

static long long nanoseconds(clockid_t clock)
{
    struct timespec t;
    REQUIRE(clock_gettime(clock, &t) == 0);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

// Processor time that a sleep of 50 ms takes, in nanoseconds.
static long long cost_of_sleeping(void)
{
    long long before = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    check_sleep_ms(50);
    return nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - before;
}

// How far gettimeofday is from the real-time clock, in nanoseconds.
static long long distance_of_gettimeofday(void)
{
    struct timeval v;
    REQUIRE(gettimeofday(&v, NULL) == 0);
    return llabs(v.tv_sec * 1000000000ll + v.tv_usec * 1000ll - nanoseconds(CLOCK_REALTIME));
}

int main(void)
{
    struct timespec t;
    long long last = nanoseconds(CLOCK_MONOTONIC);
    int backwards = 0;
    for (int i = 0; i < 10000; i++) {
        long long now = nanoseconds(CLOCK_MONOTONIC);
        backwards += now < last;
        last = now;
    }
    CHECK("monotonic-backwards", backwards);
    static const struct { const char *name; clockid_t clock; } clocks[] = {
        { "realtime", CLOCK_REALTIME }, { "monotonic", CLOCK_MONOTONIC }, { "process", CLOCK_PROCESS_CPUTIME_ID },
        { "thread", CLOCK_THREAD_CPUTIME_ID }, { "raw", CLOCK_MONOTONIC_RAW }, { "realtime-coarse", CLOCK_REALTIME_COARSE },
        { "monotonic-coarse", CLOCK_MONOTONIC_COARSE }, { "boot", CLOCK_BOOTTIME },
    };
    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
        int got = syscall(SYS_clock_gettime, clocks[i].clock, &t);
        check_line("%s: %s\n", clocks[i].name, got == 0 && t.tv_nsec >= 0 && t.tv_nsec < 1000000000 ? "sane" : "wrong");
    }
    CHECK("unknown", clock_gettime(99, &t));
    CHECK("resolution", syscall(SYS_clock_getres, CLOCK_MONOTONIC, &t) == 0 ? t.tv_sec * 1000000000 + t.tv_nsec : -1);
    CHECK("resolution-unknown", clock_getres(99, &t));
    CHECK("resolution-null", syscall(SYS_clock_getres, CLOCK_REALTIME, NULL));
    // Sleeping moves the monotonic clocks together.
    long long m = nanoseconds(CLOCK_MONOTONIC), b = nanoseconds(CLOCK_BOOTTIME), r = nanoseconds(CLOCK_REALTIME);
    check_sleep_ms(30);
    m = nanoseconds(CLOCK_MONOTONIC) - m;
    b = nanoseconds(CLOCK_BOOTTIME) - b;
    r = nanoseconds(CLOCK_REALTIME) - r;
    CHECK_TRUE("monotonic-slept", m >= 30000000);
    CHECK_TRUE("boot-slept", b >= 29900000);
    CHECK_TRUE("realtime-slept", r >= 29000000);
    // Sleeping takes no processor time, computing does.
    CHECK_SOON("sleep-costs-nothing", cost_of_sleeping() < 40000000);
    long long p = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    long long until = nanoseconds(CLOCK_THREAD_CPUTIME_ID) + 20000000;
    while (nanoseconds(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
    CHECK_TRUE("work-costs", nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - p >= 20000000);
    struct rusage usage;
    REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
    CHECK_TRUE("usage-agrees", usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec >= 10000);
    CHECK_SOON("gettimeofday-agrees", distance_of_gettimeofday() < 1000000000);
    CHECK_SOON("time-agrees", llabs((long long)time(NULL) - nanoseconds(CLOCK_REALTIME) / 1000000000) <= 1);
    CHECK_TRUE("after-2020", time(NULL) > 1577836800);
    struct tms tms;
    CHECK_TRUE("times", times(&tms) != (clock_t)-1);
    CHECK_CHILD("set-unprivileged", REQUIRE(setuid(1000) == 0); t = (struct timespec){ 1, 0 }; CHECK("refused", clock_settime(CLOCK_REALTIME, &t)));
    CHECK("set-monotonic", clock_settime(CLOCK_MONOTONIC, &t));
    return 0;
}
