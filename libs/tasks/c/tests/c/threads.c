/* Two threads: tasks of one are scheduled by the other, and both take turns through semaphores. */
#include "check.h"
#include <ac.h>
#include <pthread.h>

enum { ROUNDS = 2000 };

static thc_sem_t ping, pong;
static awe_t *sleeper;
static thc_sem_t asleep;

static void *other_thread(void *unused)
{
    (void)unused;
    thc_init();
    DO_FINISH({
        for (int i = 0; i < ROUNDS; i++) {
            thc_sem_p(&ping);
            thc_sem_v(&pong);
        }
        thc_sem_p(&asleep);
        while (THCSchedule(sleeper) != 0)
            THCYield();
    });
    thc_done();
    return 0;
}

static void is_asleep(void *unused)
{
    (void)unused;
    thc_sem_v(&asleep);
}

int main(void)
{
    pthread_t thread;
    int rounds = 0, woken = 0;
    thc_sem_init(&ping, 0);
    thc_sem_init(&pong, 0);
    thc_sem_init(&asleep, 0);
    CHECK(pthread_create(&thread, 0, other_thread, 0) == 0);
    LCD_MAIN({
        ASYNC({
            THCSuspendThen(&sleeper, is_asleep, 0);
            woken = 1;
        });
        for (; rounds < ROUNDS; rounds++) {
            thc_sem_v(&ping);
            thc_sem_p(&pong);
        }
    });
    CHECK(pthread_join(thread, 0) == 0);
    CHECK(woken && rounds == ROUNDS);
    return 0;
}
