// Many armed timers.
#include "many.h"
#include <signal.h>
#include <sys/timerfd.h>
#include <time.h>

static int last;

static void make_timers(long count)
{
    for (long i = 0; i < count; i++) {
        must(last = timerfd_create(CLOCK_MONOTONIC, 0), "timerfd_create");
        // Not in order: neither the first nor the last to be armed is the next to expire.
        struct itimerspec in = { .it_value = { 1000000 + i * 7919 % 10007, 0 } };
        must(timerfd_settime(last, 0, &in, NULL), "timerfd_settime");
    }
}

static uint64_t arm_disarm(long count)
{
    struct itimerspec in = { .it_value = { 1005000, 0 } }, never = { 0 };
    REPEAT(call4(SYS_timerfd_settime, last, 0, (long)&in, 0); call4(SYS_timerfd_settime, last, 0, (long)&never, 0));
}

static uint64_t create_delete(long count)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    struct itimerspec in = { .it_value = { 1005000, 0 } };
    int timer;
    REPEAT(call3(SYS_timer_create, CLOCK_MONOTONIC, (long)&event, (long)&timer); call4(SYS_timer_settime, timer, 0, (long)&in, 0);
           call3(SYS_timer_delete, timer, 0, 0));
}

static uint64_t end_timers(long count) { return ending(make_timers, count); }

const struct row timer_rows[] = {
    { "timers-arm-disarm", make_timers, arm_disarm, 50 },
    { "timers-create-delete", make_timers, create_delete, 50 },
    { "timers-end", NULL, end_timers, 0 },
    { 0 },
};
