// A timer that another thread sets anew, or disarms, while it goes off: the new setting holds, and nobody is told of the old one afterwards.
#include "../check.h"

#include <pthread.h>
#include <sched.h>
#include <sys/time.h>

#define ROUNDS 1500

static volatile int armed, looked;
static int late, kept;
static sigset_t alarm_set;

static void compute(int amount)
{
    for (volatile int left = amount; left > 0; left--)
        ;
}

static int is_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGALRM);
}

static void take(void)
{
    struct timespec none = { 0, 0 };
    sigtimedwait(&alarm_set, NULL, &none);
}

static void *set_anew(void *argument)
{
    (void)argument;
    for (int i = 1; i <= ROUNDS; i++) {
        struct itimerval off = { 0 }, later = { .it_value = { 1000, 0 } }, left;
        while (armed != i)
            sched_yield();
        // Now it goes off on another core.
        compute(i % 100 * 30);
        if (i % 2 == 0) {
            REQUIRE(setitimer(ITIMER_REAL, &off, NULL) == 0);
            take();
            compute(3000);
            late += is_pending();
        } else {
            REQUIRE(setitimer(ITIMER_REAL, &later, NULL) == 0);
            compute(3000);
            REQUIRE(getitimer(ITIMER_REAL, &left) == 0);
            kept += left.it_value.tv_sec > 0;
            REQUIRE(setitimer(ITIMER_REAL, &off, NULL) == 0);
        }
        take();
        looked = i;
    }
    return NULL;
}

int main(void)
{
    sigemptyset(&alarm_set);
    sigaddset(&alarm_set, SIGALRM);
    REQUIRE(sigprocmask(SIG_BLOCK, &alarm_set, NULL) == 0);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, set_anew, NULL) == 0);
    for (int i = 1; i <= ROUNDS; i++) {
        struct itimerval soon = { .it_interval = { 0, 50 + i % 40 }, .it_value = { 0, 40 + i % 60 } };
        REQUIRE(setitimer(ITIMER_REAL, &soon, NULL) == 0);
        armed = i;
        while (looked != i)
            sched_yield();
    }
    pthread_join(thread, NULL);
    CHECK("signals-after-disarming", late);
    CHECK("set-anew", kept);
    return 0;
}
