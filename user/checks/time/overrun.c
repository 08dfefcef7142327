// Expirations that nobody could take: how many a POSIX timer counts, and what its calls refuse. And processor time: neither part goes back.
#include "../check.h"
#include <sys/resource.h>
#include <sys/times.h>

static int64_t micros(struct timeval time)
{
    return time.tv_sec * 1000000LL + time.tv_usec;
}

static void work(void)
{
    static volatile unsigned sum;
    for (unsigned i = 0; i < 20000; i++)
        sum += i;
}

int main(void)
{
    timer_t timer;
    sigset_t set;
    struct timespec now;
    // Numbers of timers are small on both, but the C library hides them.
    int id;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    (void)timer;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    REQUIRE(syscall(SYS_timer_create, CLOCK_REALTIME, &event, &id) == 0);
    CHECK("no-setting", syscall(SYS_timer_settime, id, 0, NULL, NULL));
    CHECK("no-setting-no-timer", syscall(SYS_timer_settime, -1, 0, NULL, NULL));
    CHECK("bad-setting", syscall(SYS_timer_settime, id, 0, BAD_POINTER, NULL));
    // Each nanosecond of the last 100 s: more than can be counted.
    struct itimerspec setting = { .it_interval = { 0, 1 }, .it_value = { 1, 0 } };
    REQUIRE(clock_gettime(CLOCK_REALTIME, &now) == 0);
    setting.it_value.tv_sec = now.tv_sec - 100;
    REQUIRE(syscall(SYS_timer_settime, id, TIMER_ABSTIME, &setting, NULL) == 0);
    siginfo_t info;
    REQUIRE(sigwaitinfo(&set, &info) == SIGUSR1);
    memset(&setting, 0, sizeof setting);
    REQUIRE(syscall(SYS_timer_settime, id, 0, &setting, NULL) == 0);
    CHECK("overrun", syscall(SYS_timer_getoverrun, id));
    check_line("told: %d\n", info.si_overrun);
    struct timespec half = { 0, 500000000 };
    CHECK("sleep-by-thread-time", syscall(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &half, NULL));

    // A long call now and then must not take from the time in user mode.
    struct rusage last, next;
    static char block[1 << 20];
    int backwards = 0, zero = open("/dev/zero", O_RDONLY);
    REQUIRE(zero >= 0 && getrusage(RUSAGE_SELF, &last) == 0);
    for (int i = 0; i < 400; i++) {
        if (i % 16 == 0)
            REQUIRE(read(zero, block, sizeof block) == sizeof block);
        work();
        REQUIRE(getrusage(RUSAGE_SELF, &next) == 0);
        backwards += micros(next.ru_utime) < micros(last.ru_utime) || micros(next.ru_stime) < micros(last.ru_stime);
        last = next;
    }
    CHECK("backwards", backwards);
    struct tms before, after;
    REQUIRE(times(&before) != (clock_t)-1 && times(&after) != (clock_t)-1);
    CHECK_TRUE("ticks-do-not-go-back", after.tms_utime >= before.tms_utime && after.tms_stime >= before.tms_stime);
    return 0;
}
