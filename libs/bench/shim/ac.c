/* Our own tasks from C, by ac.h: each function does one batch and returns its ticks. */
#include <ac.h>
#include <stddef.h>
#include <stdint.h>
#include <x86intrin.h>

static inline uint64_t now(void)
{
    _mm_lfence();
    uint64_t ticks = __rdtsc();
    _mm_lfence();
    return ticks;
}

/* Ticks of a statement in a thread's run-time, within a block. */
#define TICKS(...) \
    ({ \
        uint64_t start_ = now(); \
        __VA_ARGS__; \
        now() - start_; \
    })

static int stop;

static void yield_for_ever(void *unused)
{
    (void)unused;
    while (!stop)
        THCYield();
}

uint64_t ebb_ac_ring(size_t tasks, size_t rounds)
{
    uint64_t ticks = 0;
    stop = 0;
    thc_init();
    DO_FINISH({
        for (size_t i = 1; i < tasks; i++)
            ac_async(_fb_info, yield_for_ever, 0);
        THCYield();
        ticks = TICKS(for (size_t i = 0; i < rounds; i++) THCYield());
        stop = 1;
    });
    thc_done();
    return ticks;
}

static awe_t *partner, *self;

static void hand_back(void *unused)
{
    (void)unused;
    THCSuspend(&partner);
    while (!stop)
        ac_hand_over(self, &partner);
    THCSchedule(self);
}

uint64_t ebb_ac_hand_over(size_t pairs)
{
    uint64_t ticks = 0;
    stop = 0;
    thc_init();
    DO_FINISH({
        ac_async(_fb_info, hand_back, 0);
        ticks = TICKS(for (size_t i = 0; i < pairs; i++) ac_hand_over(partner, &self));
        stop = 1;
        ac_hand_over(partner, &self);
    });
    thc_done();
    return ticks;
}

static uint32_t mine, other;

static void save_and_hand_back(void *unused)
{
    (void)unused;
    THCYieldAndSaveNoDispatch(other);
    while (!stop)
        THCYieldToIdAndSaveNoDispatch(mine, other);
    THCSchedule(awe_mapper_get_awe_ptr(mine));
}

uint64_t ebb_ac_hand_over_by_id(size_t pairs)
{
    uint64_t ticks = 0;
    stop = 0;
    thc_init();
    awe_mapper_create_id(&mine);
    awe_mapper_create_id(&other);
    DO_FINISH({
        ac_async(_fb_info, save_and_hand_back, 0);
        ticks = TICKS(for (size_t i = 0; i < pairs; i++) THCYieldToIdAndSaveNoDispatch(other, mine));
        stop = 1;
        THCYieldToIdAndSaveNoDispatch(other, mine);
    });
    awe_mapper_remove_id(mine);
    awe_mapper_remove_id(other);
    thc_done();
    return ticks;
}

uint64_t ebb_ac_create_empty(size_t operations)
{
    uint64_t ticks = 0;
    thc_init();
    DO_FINISH({
        ASYNC({});
        ticks = TICKS(for (size_t i = 0; i < operations; i++) ASYNC({}));
    });
    thc_done();
    return ticks;
}

uint64_t ebb_ac_create_suspend(size_t operations)
{
    uint64_t ticks = 0;
    thc_init();
    DO_FINISH({
        ASYNC({});
        ticks = TICKS(for (size_t i = 0; i < operations; i++) {
            ASYNC({ THCYield(); });
            THCYield();
        });
    });
    thc_done();
    return ticks;
}

struct nest {
    ac_finish *block;
    size_t depth;
};

static void nested(void *argument)
{
    struct nest *here = argument;
    struct nest inner = { here->block, here->depth - 1 };
    if (here->depth > 0)
        ac_async(here->block, nested, &inner);
}

uint64_t ebb_ac_create_nested(size_t depth, size_t repeats)
{
    uint64_t ticks = 0;
    thc_init();
    DO_FINISH({
        struct nest outer = { _fb_info, depth };
        nested(&outer);
        ticks = TICKS(for (size_t i = 0; i < repeats; i++) nested(&outer));
    });
    thc_done();
    return ticks;
}

uint64_t ebb_ac_finish(size_t operations)
{
    uint64_t ticks = 0;
    thc_init();
    ticks = TICKS(for (size_t i = 0; i < operations; i++) DO_FINISH({}));
    thc_done();
    return ticks;
}

uint64_t ebb_ac_ids(size_t operations)
{
    uint64_t ticks = 0;
    thc_init();
    ticks = TICKS(for (size_t i = 0; i < operations; i++) {
        uint32_t id;
        awe_mapper_create_id(&id);
        awe_mapper_remove_id(id);
    });
    thc_done();
    return ticks;
}
