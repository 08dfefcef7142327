/* Sixty-four waits of which some are canceled: what came first decides for each, whatever the others do. In a line nobody's turn is lost
 * or taken out of order; of a semaphore's units, which another thread gives meanwhile, none is lost or given twice. */
#include "check.h"
#include <ac.h>
#include <pthread.h>

enum { WAITS = 64, ROUNDS = 20 };

static int is_canceled(unsigned number, unsigned round)
{
    return (number * 2654435761u >> 16) % WAITS < 3 * round;
}

static void in_a_line(unsigned round)
{
    thc_queue_t queue;
    thc_queue_entry_t first, turns[WAITS];
    unsigned served[WAITS];
    int count = 0, bailed = 0, kept = 0;
    thc_queue_init(&queue);
    thc_queue_enter(&queue, &first);
    DO_FINISH({
        for (unsigned i = 0; i < WAITS; i++) {
            ASYNC({
                unsigned mine = i;
                int result = 1;
                thc_queue_enter(&queue, &turns[mine]);
                DO_FINISH_(own, {
                    /* The request races with the turn, which passes from one to the next meanwhile. */
                    if (is_canceled(mine, round)) {
                        ASYNC({
                            THCYield();
                            CANCEL(own);
                        });
                    }
                    result = thc_queue_await_turn_x(&queue, &turns[mine]);
                });
                CHECK(result == (is_canceled(mine, round) ? THC_CANCELED : 0));
                if (result == 0) {
                    served[count++] = mine;
                    THCYield();
                }
                bailed += thc_queue_leave(&queue, &turns[mine]);
            });
        }
        THCYield();
        THCYield();
        THCYield();
        bailed += thc_queue_leave(&queue, &first);
    });
    for (unsigned i = 0; i < WAITS; i++) {
        if (!is_canceled(i, round))
            CHECK(served[kept++] == i);
    }
    /* The place in front never had its turn either. */
    CHECK(count == kept && bailed == WAITS - kept + 1);
    thc_queue_destroy(&queue);
}

static thc_sem_t units;

static void *give(void *unused)
{
    (void)unused;
    for (int i = 0; i < WAITS / 2; i++)
        thc_sem_v(&units);
    return 0;
}

static void at_a_semaphore(void)
{
    int taken = 0, left = 0;
    pthread_t giver;
    thc_sem_init(&units, 0);
    CHECK(pthread_create(&giver, 0, give, 0) == 0);
    DO_FINISH_(block, {
        for (int i = 0; i < WAITS; i++) {
            ASYNC({
                if (thc_sem_p_x(&units) == 0)
                    taken++;
            });
        }
        for (int i = 0; i < 8; i++)
            THCYield();
        CANCEL(block);
    });
    CHECK(pthread_join(giver, 0) == 0);
    while (ac_sem_try_p(&units))
        left++;
    CHECK(taken + left == WAITS / 2);
    thc_sem_destroy(&units);
}

int main(void)
{
    LCD_MAIN({
        for (unsigned round = 0; round < ROUNDS; round++) {
            in_a_line(round);
            at_a_semaphore();
        }
    });
    return 0;
}
