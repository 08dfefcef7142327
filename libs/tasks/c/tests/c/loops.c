/* Known faults of earlier systems: loops of ASYNC that crash, stacks that are never given back, a THCFinish after which a block
 * does not end, an exit that crashes, a task that is yielded to although it is not queued. */
#include "check.h"
#include <ac.h>
#include <string.h>

enum { LOOPS = 20000 };

static void loop_of_tasks(void)
{
    int ended = 0;
    DO_FINISH({
        for (int i = 0; i < LOOPS; i++) {
            ASYNC({ ended++; });
            ASYNC({
                THCYield();
                ended++;
            });
            ASYNC_EAGER({ ended++; });
            if (i % 16 == 0)
                THCYield();
        }
    });
    CHECK(ended == 3 * LOOPS);
    /* At most 16 were suspended at once, and one ran. */
    CHECK(ac_stack_count() <= 64);
    CHECK(ac_task_count() == 1);
}

static void finish_ends_its_task(void)
{
    int before = 0, after = 0, inner = 0;
    DO_FINISH({
        ASYNC({
            before++;
            THCFinish();
            after++;
        });
        ASYNC({
            before++;
            THCYield();
            DO_FINISH({
                ASYNC({
                    THCYield();
                    inner++;
                });
                THCAbort();
            });
            after++;
        });
    });
    CHECK(before == 2 && after == 0 && inner == 1);
}

__attribute__((noinline)) static int ends_deep_inside(int depth)
{
    volatile char guarded[24];
    guarded[depth % 24] = 1;
    if (depth > 0)
        return ends_deep_inside(depth - 1) + guarded[depth % 24];
    if (!THCShouldStop())
        THCFinish();
    return 0;
}

__attribute__((noinline)) static int fills_its_frame(void)
{
    char large[2000];
    memset(large, (int)sizeof large % 256, sizeof large);
    return memchr(large, 0, sizeof large) == 0;
}

/* The next task may use all of the stack on which one ended before its functions returned, also under AddressSanitizer. */
static void stacks_are_left_clean(void)
{
    int filled = 0;
    DO_FINISH({
        ASYNC({
            CHECK(ends_deep_inside(20) < 0);
        });
        ASYNC({ filled = fills_its_frame(); });
    });
    CHECK(filled);
}

static awe_t *parked;

static void yield_to_a_parked_task(void)
{
    int resumed = 0;
    DO_FINISH({
        ASYNC({
            THCSuspend(&parked);
            resumed++;
        });
        CHECK(THCYieldTo(parked) == 0);
        CHECK(resumed == 1);
        /* It has ended. */
        CHECK(THCYieldTo(parked) == -1);
        CHECK(THCSchedule(parked) == -1);
    });
}

static void yield_to_a_queued_task(void)
{
    int order = 0;
    awe_t *second = 0;
    uint32_t id;
    CHECK(awe_mapper_create_id(&id) == 0);
    DO_FINISH({
        ASYNC({
            THCYield();
            CHECK(order++ == 1);
        });
        ASYNC({
            CHECK(THCYieldAndSave(id) == 0);
            CHECK(order++ == 0);
        });
        second = awe_mapper_get_awe_ptr(id);
        CHECK(second != 0);
        CHECK(THCYieldTo(second) == 0);
    });
    CHECK(order == 2);
    CHECK(awe_mapper_get_awe_ptr(id) == 0);
    CHECK(awe_mapper_remove_id(id) == 0);
}

/* By its id from a task that was only just started, and is still a call of its maker. */
static void yield_to_an_id_from_an_attached_task(void)
{
    int order = 0;
    uint32_t waiting, calling;
    CHECK(awe_mapper_create_id(&waiting) == 0 && awe_mapper_create_id(&calling) == 0);
    DO_FINISH({
        ASYNC({
            CHECK(THCYieldAndSaveNoDispatch(waiting) == 0);
            CHECK(order++ == 0);
            CHECK(THCYieldToIdNoDispatch(waiting) == -EINVAL);
            CHECK(THCYieldToIdAndSave(calling, waiting) == 0);
            CHECK(order++ == 3);
        });
        ASYNC({
            CHECK(THCYieldToIdAndSaveNoDispatch(waiting, calling) == 0);
            CHECK(order++ == 1);
            CHECK(awe_mapper_get_awe_ptr(calling) == 0);
            CHECK(THCYieldAndSave(calling) == 0);
        });
        /* It was queued in front of both. */
        CHECK(order++ == 2);
    });
    CHECK(order == 4);
    CHECK(awe_mapper_get_awe_ptr(waiting) == 0 && awe_mapper_get_awe_ptr(calling) == 0);
    CHECK(awe_mapper_remove_id(waiting) == 0 && awe_mapper_remove_id(calling) == 0);
}

static int published;

static void publish(void *argument)
{
    published = *(int *)argument;
}

static void suspend_then_publishes_first(void)
{
    int seven = 7;
    awe_t *task = 0;
    DO_FINISH({
        ASYNC({
            THCSuspendThen(&task, publish, &seven);
            published++;
        });
        CHECK(published == 7);
        CHECK(THCScheduleBack(task) == 0);
        CHECK(THCSchedule(task) == -1);
    });
    CHECK(published == 8);
}

static void stop_is_asked_for(void)
{
    int rounds = 0;
    DO_FINISH({
        ASYNC({
            while (!THCShouldStop()) {
                rounds++;
                THCYield();
            }
        });
        THCYield();
        THCYield();
        THCStopAllAwes();
    });
    CHECK(rounds == 3);
}

int main(void)
{
    for (int time = 0; time < 3; time++) {
        LCD_MAIN({
            CHECK(thc_init() == -EBUSY);
            loop_of_tasks();
            finish_ends_its_task();
            stacks_are_left_clean();
            yield_to_a_parked_task();
            yield_to_a_queued_task();
            yield_to_an_id_from_an_attached_task();
            suspend_then_publishes_first();
            stop_is_asked_for();
        });
        CHECK(!ac_is_running());
    }
    return 0;
}
