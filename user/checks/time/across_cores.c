// Clocks that never go back are the same on all cores: a time that is read after another one is not before it, by even a nanosecond,
// whichever cores, clocks of the same kind and ways to ask (the system call, the C library with the vDSO) the two are read by.
//
// What is compared are nanoseconds, so one is enough. Clocks may differ by less than a word takes from core to core (some 50 ns on hardware), which no
// program can see. On a kernel with one core the threads take turns on it, and the same must hold.
#include "../check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define HANDOVERS 4000
#define READINGS 20000
#define MOST_CORES 8

enum way { CALL, LIBRARY, WAYS };

static const char *const way_names[WAYS] = { "call", "library" };
// The wall clock among them, which nobody sets here.
static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_REALTIME, CLOCK_TAI, CLOCK_MONOTONIC_COARSE, CLOCK_REALTIME_COARSE };
static const char *const clock_names[] = { "monotonic", "raw", "boottime", "realtime", "tai", "monotonic-coarse", "realtime-coarse" };

static cpu_set_t allowed;
static int cores[MOST_CORES], core_count;

// One measurement: two threads, each on a core and with a way to ask.
static struct {
    clockid_t clock;
    int core[2];
    enum way way[2];
    // The last time that one of them read. When they take turns it is handed over: who has not written it writes next.
    _Atomic int64_t last;
    atomic_int turn, ready;
    atomic_long went_back;
} test;

static int64_t read_clock(clockid_t clock, enum way way)
{
    struct timespec now;
    REQUIRE((way == CALL ? syscall(SYS_clock_gettime, clock, &now) : clock_gettime(clock, &now)) == 0);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void begin(int self)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(test.core[self], &set);
    REQUIRE(sched_setaffinity(0, sizeof set, &set) == 0);
    atomic_fetch_add(&test.ready, 1);
    while (atomic_load(&test.ready) < 2)
        sched_yield();
}

// They take turns: each time is handed over through a word.
static void *take_turns(void *argument)
{
    int self = (int)(intptr_t)argument;
    begin(self);
    for (int i = 0; i < HANDOVERS; i++) {
        for (long waited = 0; atomic_load_explicit(&test.turn, memory_order_acquire) != self; waited++)
            if (waited > 1000 || core_count == 1)
                sched_yield();
        int64_t before = atomic_load_explicit(&test.last, memory_order_relaxed);
        int64_t now = read_clock(test.clock, test.way[self]);
        if (now < before)
            atomic_fetch_add(&test.went_back, 1);
        atomic_store_explicit(&test.last, now, memory_order_relaxed);
        atomic_store_explicit(&test.turn, !self, memory_order_release);
    }
    return NULL;
}

// They run freely, and each time is compared with the latest that anyone had published before it was read.
static void *run_freely(void *argument)
{
    int self = (int)(intptr_t)argument;
    begin(self);
    for (int i = 0; i < READINGS; i++) {
        int64_t before = atomic_load_explicit(&test.last, memory_order_acquire);
        int64_t now = read_clock(test.clock, test.way[self]);
        if (now < before)
            atomic_fetch_add(&test.went_back, 1);
        while (now > before && !atomic_compare_exchange_weak_explicit(&test.last, &before, now, memory_order_release, memory_order_acquire))
            ;
    }
    return NULL;
}

static void run(void *(*work)(void *))
{
    pthread_t threads[2];
    test.last = 0;
    test.turn = test.ready = 0;
    for (intptr_t i = 0; i < 2; i++)
        REQUIRE(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

// A coarse clock is behind the fine one and never ahead of it, wherever the two are read.
static void coarse_clock(clockid_t coarse_one, clockid_t fine_one, const char *name)
{
    long ahead = 0;
    for (int i = 0; i < READINGS; i++) {
        if (i % 1000 == 0) {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET(cores[i / 1000 % core_count], &set);
            REQUIRE(sched_setaffinity(0, sizeof set, &set) == 0);
        }
        int64_t coarse = read_clock(coarse_one, i % 2);
        ahead += coarse > read_clock(fine_one, i / 2 % 2);
    }
    REQUIRE(sched_setaffinity(0, sizeof allowed, &allowed) == 0);
    CHECK(name, ahead);
}

// A clock that is read between two readings of another, on whichever core, shows a time of between: as far as is known from the first time that all were read, and
// but for how much their rates may differ (one part in a hundred is far more than adjtimex(2) allows).
static void same_clocks(void)
{
    long apart = 0;
    int64_t first_before = read_clock(CLOCK_MONOTONIC, CALL);
    int64_t first_raw = read_clock(CLOCK_MONOTONIC_RAW, CALL);
    int64_t first_after = read_clock(CLOCK_MONOTONIC, CALL);
    for (int i = 0; i < 200 * core_count; i++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cores[i % core_count], &set);
        REQUIRE(sched_setaffinity(0, sizeof set, &set) == 0);
        int64_t before = read_clock(CLOCK_MONOTONIC, i / 2 % 2);
        int64_t raw = read_clock(CLOCK_MONOTONIC_RAW, i % 2) - first_raw;
        int64_t after = read_clock(CLOCK_MONOTONIC, i / 4 % 2);
        int64_t drift = (after - first_before) / 100 + 1;
        apart += raw < before - first_after - drift || raw > after - first_before + drift;
    }
    REQUIRE(sched_setaffinity(0, sizeof allowed, &allowed) == 0);
    CHECK("raw-apart-from-monotonic", apart);
}

int main(void)
{
    REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    for (int core = 0; core < CPU_SETSIZE && core_count < MOST_CORES; core++)
        if (CPU_ISSET(core, &allowed))
            cores[core_count++] = core;
    for (size_t clock = 0; clock < sizeof clocks / sizeof clocks[0]; clock++) {
        for (int ways = 0; ways < WAYS * WAYS; ways++) {
            test.clock = clocks[clock];
            test.way[0] = ways % WAYS;
            test.way[1] = ways / WAYS;
            test.went_back = 0;
            // Each core with the next one.
            for (int i = 0; i < core_count && (i == 0 || core_count > 2); i++) {
                test.core[0] = cores[i];
                test.core[1] = cores[(i + 1) % core_count];
                run(take_turns);
                run(run_freely);
            }
            char name[64];
            snprintf(name, sizeof name, "%s-%s-%s-went-back", clock_names[clock], way_names[test.way[0]], way_names[test.way[1]]);
            CHECK(name, test.went_back);
        }
    }
    coarse_clock(CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC, "coarse-ahead");
    coarse_clock(CLOCK_REALTIME_COARSE, CLOCK_REALTIME, "realtime-coarse-ahead");
    same_clocks();
    return 0;
}
