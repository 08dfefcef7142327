// For how long a process does not run that does nothing but read the time stamp counter. It stands in memory that the process shares with
// whoever ends the watch.
#pragma once
#include "bench.h"

struct gap {
    volatile int is_over;
    // The longest time between two readings, in ticks; it counts once the watch is over.
    uint64_t longest;
    // How many readings there were so far: what work the process got done.
    volatile uint64_t readings;
};

static inline void watch(struct gap *gap)
{
    uint64_t last = ticks(), longest = 0;
    while (!gap->is_over) {
        uint64_t now = ticks();
        if (now - last > longest)
            longest = now - last;
        last = now;
        gap->readings++;
    }
    gap->longest = longest;
}
