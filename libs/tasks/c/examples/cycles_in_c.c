/* What the hot paths cost in C, in cycles of the time-stamp counter: one line for each, "name: cycles (goal)".
 *
 * Each figure is the median of many batches. */
#define _GNU_SOURCE
#include <ac.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

enum { OPERATIONS = 1000, BATCHES = 1000 };

static uint64_t figures[20000];

static int smaller(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median(int count)
{
    qsort(figures, (size_t)count, sizeof figures[0], smaller);
    return (double)figures[count / 2];
}

static void show(const char *what, double cycles, const char *goal)
{
    printf("%s: %.2f (%s)\n", what, cycles, goal);
}

/* The median of `batches` runs of a statement that does `operations`. */
#define MEASURE(batches, operations, ...) \
    ({ \
        for (int batch_ = 0; batch_ < (batches); batch_++) { \
            uint64_t start_ = __rdtsc(); \
            __VA_ARGS__; \
            figures[batch_] = __rdtsc() - start_; \
        } \
        median(batches) / (operations); \
    })

static int stop;

static void spin(void *unused)
{
    (void)unused;
    while (!stop)
        THCYield();
}

static double yields(int tasks)
{
    double cycles;
    int rounds = OPERATIONS / tasks > 4 ? OPERATIONS / tasks : 4;
    stop = 0;
    DO_FINISH({
        for (int i = 1; i < tasks; i++)
            ac_async(_fb_info, spin, 0);
        cycles = MEASURE(BATCHES, rounds * tasks, for (int i = 0; i < rounds; i++) THCYield());
        stop = 1;
    });
    return cycles;
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

static double hand_overs(void)
{
    double cycles;
    stop = 0;
    DO_FINISH({
        ac_async(_fb_info, hand_back, 0);
        cycles = MEASURE(BATCHES, OPERATIONS, for (int i = 0; i < OPERATIONS / 2; i++) ac_hand_over(partner, &self));
        stop = 1;
        ac_hand_over(partner, &self);
    });
    return cycles;
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

static double by_id(void)
{
    double cycles;
    stop = 0;
    DO_FINISH({
        ac_async(_fb_info, save_and_hand_back, 0);
        cycles = MEASURE(BATCHES, OPERATIONS,
                         for (int i = 0; i < OPERATIONS / 2; i++) THCYieldToIdAndSaveNoDispatch(other, mine));
        stop = 1;
        THCYieldToIdAndSaveNoDispatch(other, mine);
    });
    return cycles;
}

static void save_and_yield_back(void *unused)
{
    (void)unused;
    THCYieldAndSave(other);
    while (!stop)
        THCYieldToIdAndSave(mine, other);
}

static double by_id_queued(void)
{
    double cycles;
    stop = 0;
    DO_FINISH({
        ac_async(_fb_info, save_and_yield_back, 0);
        cycles = MEASURE(BATCHES, OPERATIONS, for (int i = 0; i < OPERATIONS / 2; i++) THCYieldToIdAndSave(other, mine));
        stop = 1;
    });
    return cycles;
}

static void nothing(void *unused)
{
    (void)unused;
}

static void yield_once(void *unused)
{
    (void)unused;
    THCYield();
}

struct nest {
    ac_finish *block;
    int depth;
};

static void nested(void *argument)
{
    struct nest *here = argument;
    struct nest inner = { here->block, here->depth - 1 };
    if (inner.depth > 0)
        ac_async(here->block, nested, &inner);
}

static void pin(void)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((unsigned)sched_getcpu(), &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
}

int main(void)
{
    pin();
    if (thc_init() != 0)
        return 1;
    show("yield, 2 tasks", yields(2), "5");
    show("yield, 8 tasks", yields(8), "-");
    show("yield, 64 tasks", yields(64), "7");
    show("yield, 512 tasks", yields(512), "9");
    show("hand over, by reference", hand_overs(), "3.2");
    awe_mapper_create_id(&mine);
    awe_mapper_create_id(&other);
    show("hand over, by id, saved under an id", by_id(), "6");
    show("yield to id and save, queued", by_id_queued(), "-");
    DO_FINISH({
        double empty = MEASURE(20000, 1, );
        show("ASYNC(empty), single shot, timer subtracted", MEASURE(20000, 1, ASYNC({})) - empty, "8");
        show("ASYNC(empty)", MEASURE(BATCHES, OPERATIONS, for (int i = 0; i < OPERATIONS; i++) ASYNC({})), "5");
        show("ac_async(empty function)",
             MEASURE(BATCHES, OPERATIONS, for (int i = 0; i < OPERATIONS; i++) ac_async(_fb_info, nothing, 0)), "5");
        show("ASYNC(THCYield()); THCYield()", MEASURE(BATCHES, OPERATIONS, for (int i = 0; i < OPERATIONS; i++) {
                 ASYNC({ THCYield(); });
                 THCYield();
             }), "22");
        show("ac_async(yield); THCYield()", MEASURE(BATCHES, OPERATIONS, for (int i = 0; i < OPERATIONS; i++) {
                 ac_async(_fb_info, yield_once, 0);
                 THCYield();
             }), "22");
        show("64 nested ac_async, each", MEASURE(BATCHES, 64, {
                 struct nest outer = { _fb_info, 65 };
                 nested(&outer);
             }), "20");
    });
    show("DO_FINISH({})", MEASURE(BATCHES, OPERATIONS, for (int i = 0; i < OPERATIONS; i++) DO_FINISH({})), "1");
    show("awe_mapper_create_id, _remove_id", MEASURE(BATCHES, OPERATIONS, for (int i = 0; i < OPERATIONS; i++) {
             uint32_t id;
             awe_mapper_create_id(&id);
             awe_mapper_remove_id(id);
         }), "-");
    thc_done();
    return 0;
}
