// Many threads.
#pragma once
#include "../thread.h"

// Starts `count` threads that run `run`, which counts itself in `arrived`, and gives them time until all have.
void spawn_many(long count, void (*run)(void));

extern volatile int arrived;

// Gives way until `*word` is `value`.
void yield_until(volatile int *word, int value);

long wait_on(volatile int *word, int value);
long wake(volatile int *word, int count);
