// Two pieces of work at the same moment, again and again: for what goes wrong only when two cores are at it together.
#pragma once
#include "../check.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static atomic_int together_begun, together_done;
static int together_rounds;
static void (*together_other)(void);

static void *together_work(void *unused)
{
    for (int round = 1; round <= together_rounds; round++) {
        while (together_begun < round)
            sched_yield();
        together_other();
        together_done = round;
    }
    return unused;
}

// In each round: `before`, then `one` and `other` at the same time, then `after`.
static void together(int rounds, void (*before)(void), void (*one)(void), void (*other)(void), void (*after)(void))
{
    pthread_t thread;
    together_begun = together_done = 0;
    together_rounds = rounds;
    together_other = other;
    REQUIRE(pthread_create(&thread, NULL, together_work, NULL) == 0);
    for (int round = 1; round <= rounds; round++) {
        before();
        together_begun = round;
        one();
        while (together_done < round)
            sched_yield();
        after();
    }
    pthread_join(thread, NULL);
}
