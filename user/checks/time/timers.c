// Interval timers, alarm, POSIX timers.
#include "../check.h"
#include <sys/time.h>

static volatile sig_atomic_t alarms, profiles, virtuals, last_value, last_code;

static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    alarms += number == SIGALRM;
    profiles += number == SIGPROF;
    virtuals += number == SIGVTALRM;
    if (number == SIGUSR1) {
        last_value = info->si_value.sival_int;
        last_code = info->si_code;
        alarms++;
    }
}

static void wait_alarms(int count)
{
    while (alarms < count)
        check_sleep_ms(1);
}

// Sets the timers that run only while the process computes, and sleeps for longer than they run.
static int still_silent_after_sleeping(void)
{
    struct itimerval timer = { { 0, 0 }, { 0, 20000 } };
    profiles = virtuals = 0;
    setitimer(ITIMER_PROF, &timer, NULL);
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
    check_sleep_ms(60);
    return profiles + virtuals == 0;
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
    static const int numbers[] = { SIGALRM, SIGPROF, SIGVTALRM, SIGUSR1 };
    for (int i = 0; i < 4; i++)
        sigaction(numbers[i], &action, NULL);
    alarm(0);
    CHECK("alarm-none", alarm(100));
    unsigned left = alarm(0);
    CHECK_TRUE("alarm-left", left >= 1 && left <= 100);
    CHECK("alarm-cleared", alarm(0));
    struct itimerval timer = { { 0, 0 }, { 0, 20000 } }, old;
    CHECK("setitimer", setitimer(ITIMER_REAL, &timer, NULL));
    CHECK("getitimer", getitimer(ITIMER_REAL, &old));
    CHECK_TRUE("remaining", old.it_value.tv_sec == 0 && old.it_value.tv_usec <= 20000 && old.it_interval.tv_usec == 0);
    wait_alarms(1);
    CHECK("one-shot", alarms);
    check_sleep_ms(30);
    CHECK("only-once", alarms);
    timer = (struct itimerval){ { 0, 10000 }, { 0, 10000 } };
    setitimer(ITIMER_REAL, &timer, NULL);
    wait_alarms(4);
    timer = (struct itimerval){ { 0, 0 }, { 0, 0 } };
    CHECK("disarm", setitimer(ITIMER_REAL, &timer, &old));
    CHECK("interval-read", old.it_interval.tv_usec);
    CHECK_TRUE("periodic", alarms >= 4);
    int count = alarms;
    check_sleep_ms(30);
    CHECK_TRUE("stopped", alarms <= count + 1);
    timer = (struct itimerval){ { 0, 0 }, { 0, 1000000 } };
    CHECK("bad-microseconds", setitimer(ITIMER_REAL, &timer, NULL));
    CHECK("bad-which", setitimer(9, &old, NULL));
    // Processor-time timers run only while the process computes.
    CHECK_SOON("not-while-sleeping", still_silent_after_sleeping());
    while (!profiles || !virtuals)
        ;
    CHECK("profiled", profiles);
    CHECK("virtual", virtuals);
    CHECK_CHILD("not-inherited", _exit(getitimer(ITIMER_PROF, &old) == 0 && old.it_value.tv_usec == 0 ? 3 : 4));
    // POSIX timers.
    alarms = 0;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 88 };
    timer_t id;
    CHECK("timer-create", timer_create(CLOCK_MONOTONIC, &event, &id));
    struct itimerspec spec = { { 0, 0 }, { 0, 10000000 } }, got;
    CHECK("timer-settime", timer_settime(id, 0, &spec, NULL));
    wait_alarms(1);
    CHECK("timer-value", last_value);
    CHECK("timer-code", last_code);
    CHECK("timer-gettime", timer_gettime(id, &got));
    CHECK("timer-idle", got.it_value.tv_nsec);
    // While the signal is blocked expirations are counted as overruns.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    spec = (struct itimerspec){ { 0, 2000000 }, { 0, 2000000 } };
    timer_settime(id, 0, &spec, NULL);
    check_sleep_ms(50);
    alarms = 0;
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    CHECK_TRUE("overrun", timer_getoverrun(id) >= 5 || alarms > 1);
    CHECK("timer-delete", timer_delete(id));
    CHECK("deleted", timer_settime(id, 0, &spec, NULL));
    CHECK("bad-clock", timer_create(99, &event, &id));
    event.sigev_notify = SIGEV_NONE;
    REQUIRE(timer_create(CLOCK_REALTIME, &event, &id) == 0);
    spec = (struct itimerspec){ { 0, 0 }, { 100000, 0 } };
    timer_settime(id, 0, &spec, NULL);
    CHECK("silent-runs", timer_gettime(id, &got) == 0 && got.it_value.tv_sec >= 90000);
    spec.it_value.tv_nsec = 1000000000;
    CHECK("bad-nanoseconds", timer_settime(id, 0, &spec, NULL));
    alarm(CHECK_LIMIT);
    signal(SIGALRM, SIG_DFL);
    return 0;
}
