/* Cancellation: not firing and firing, on a semaphore and on a condition variable, twice each; items; blocks that shield. */
#include "check.h"
#include <ac.h>

static thc_sem_t sem;
static thc_lock_t lock;
static thc_condvar_t condvar;

static void on_a_semaphore(int cancels)
{
    int result = 1;
    thc_sem_init(&sem, 0);
    DO_FINISH_(block, {
        ASYNC({ result = thc_sem_p_x(&sem); });
        CHECK(result == 1);
        if (cancels)
            CANCEL(block);
        thc_sem_v(&sem);
    });
    CHECK(result == (cancels ? THC_CANCELED : 0));
    /* The unit of a wait that was canceled is still there. */
    CHECK(ac_sem_try_p(&sem) == cancels);
    thc_sem_destroy(&sem);
}

static void on_a_condition(int cancels)
{
    int result = 1;
    thc_lock_init(&lock);
    thc_condvar_init(&condvar);
    DO_FINISH_(block, {
        ASYNC({
            thc_lock_acquire(&lock);
            result = thc_condvar_wait_x(&condvar, &lock);
            CHECK(!ac_lock_try_acquire(&lock));
            thc_lock_release(&lock);
        });
        /* Two signals by the one who has the lock end nothing for ever. */
        thc_lock_acquire(&lock);
        if (cancels)
            CANCEL(block);
        thc_condvar_signal(&condvar);
        thc_condvar_signal(&condvar);
        thc_lock_release(&lock);
    });
    CHECK(result == (cancels ? THC_CANCELED : 0));
    thc_condvar_destroy(&condvar);
    thc_lock_destroy(&lock);
}

static int ran[4], runs;

static void item_runs(void *argument)
{
    ran[runs++] = *(int *)argument;
}

static void items(void)
{
    int names[4] = { 0, 1, 2, 3 };
    DO_FINISH_(outer, {
        cancel_item_t first;
        cancel_item_t second;
        cancel_item_t third;
        THCAddCancelItem(&first, item_runs, &names[1]);
        THCAddCancelItem(&second, item_runs, &names[2]);
        THCAddCancelItem(&third, item_runs, &names[3]);
        CHECK(THCRemoveCancelItem(&second) == 0);
        DO_FINISH({
            cancel_item_t inner;
            THCAddCancelItem(&inner, item_runs, &names[0]);
            CHECK(!THCIsCancelRequested());
            CANCEL(outer);
            CHECK(THCIsCancelRequested());
            CHECK(THCCancelItemRan(&inner) && THCRemoveCancelItem(&inner) == 1);
        });
        DO_FINISH_NX({
            CHECK(!THCIsCancelRequested());
            CHECK(THCYield_x() == 0);
        });
        CHECK(THCYield_x() == THC_CANCELED);
        CHECK(THCRemoveCancelItem(&first) == 1 && !THCCancelItemRan(&second) && THCRemoveCancelItem(&third) == 1);
    });
    /* Inner before outer, of each block the latest first. */
    CHECK(runs == 3 && ran[0] == 0 && ran[1] == 3 && ran[2] == 1);
    CHECK(!THCIsCancelRequested());
}

static void in_line(void)
{
    thc_queue_t queue;
    thc_queue_entry_t turns[3];
    int order[3], served = 0, bailed = 0;
    thc_queue_init(&queue);
    DO_FINISH({
        for (int i = 0; i < 3; i++)
            thc_queue_enter(&queue, &turns[i]);
        ASYNC({
            thc_queue_await_turn(&queue, &turns[2]);
            order[served++] = 2;
            bailed = thc_queue_leave(&queue, &turns[2]);
        });
        DO_FINISH_(block, {
            ASYNC({
                CHECK(thc_queue_await_turn_x(&queue, &turns[1]) == THC_CANCELED);
                CHECK(thc_queue_leave(&queue, &turns[1]) == 0);
            });
            CANCEL(block);
        });
        thc_queue_await_turn(&queue, &turns[0]);
        order[served++] = 0;
        CHECK(thc_queue_leave(&queue, &turns[0]) == 1);
    });
    CHECK(served == 2 && order[0] == 0 && order[1] == 2 && bailed == 0);
    thc_queue_destroy(&queue);
}

static void events(void)
{
    thc_ec_t ec;
    thc_seq_t seq;
    int order[4], served = 0;
    thc_ec_init(&ec);
    thc_seq_init(&seq);
    DO_FINISH({
        for (int i = 0; i < 4; i++) {
            ASYNC({
                int mine = i;
                uint64_t ticket = thc_seq_ticket(&seq);
                thc_ec_await(&ec, ticket + 1);
                order[served++] = mine;
                thc_ec_advance(&ec, 1);
            });
        }
        thc_ec_advance(&ec, 1);
    });
    CHECK(served == 4 && thc_ec_read(&ec) == 5 && thc_seq_read(&seq) == 4);
    for (int i = 0; i < 4; i++)
        CHECK(order[i] == i);
    thc_ec_destroy(&ec);
}

int main(void)
{
    LCD_MAIN({
        for (int time = 0; time < 2; time++) {
            on_a_semaphore(0);
            on_a_semaphore(1);
            on_a_condition(0);
            on_a_condition(1);
        }
        items();
        in_line();
        events();
    });
    return 0;
}
