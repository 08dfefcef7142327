// Threads that move from core to core: they are where they were put, with their registers, and time goes on.
#include "stress.h"

#define MOVES 60

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void move(int index)
{
    uint64_t time = nanoseconds();
    double exact = 1.0 + index;
    for (int i = 0; i < MOVES; i++) {
        int number = (int)any(CPU_COUNT(&allowed_cores)), core = 0;
        while (!CPU_ISSET(core, &allowed_cores) || number-- > 0)
            core++;
        cpu_set_t set, told;
        CPU_ZERO(&set);
        CPU_SET(core, &set);
        MUST(sched_setaffinity(0, sizeof set, &set) == 0);
        for (int look = 0; look < 5; look++) {
            unsigned here = 0;
            MUST(syscall(SYS_getcpu, &here, NULL, NULL) == 0);
            HOLDS((int)here == core, "a thread of core %d is on %u", core, here);
            // What is exact in binary stays so.
            exact = exact * 2.0 + 1.0;
            exact = (exact - 1.0) / 2.0;
            HOLDS(exact == 1.0 + index, "a floating-point number changed");
            uint64_t now = nanoseconds();
            HOLDS(now >= time, "time went back by %lu ns", (long)(time - now));
            time = now;
            if (any(16) == 0)
                sched_yield();
        }
        MUST(sched_getaffinity(0, sizeof told, &told) == 0);
        HOLDS(CPU_EQUAL(&set, &told), "the affinity is not what it was set to");
    }
    count(MOVES);
}

static void moves_round(void)
{
    threads(3, move);
}

const struct family core_families[] = {
    { "moves-between-cores", moves_round },
    { NULL, NULL },
};
