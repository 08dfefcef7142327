// Threads without the C library's: a stack of a page, no thread-local memory. What they run must not touch `errno`.
#pragma once

// Starts a thread on the page below `stack`; 0 is written to `*tid`, and a futex woken there, when it has ended.
void spawn(void (*run)(void), char *stack, int *tid);

// Starts `count` threads that run `run`, which counts itself in `arrived`, and gives them time until all have.
void spawn_many(long count, void (*run)(void));

extern volatile int arrived;

// Gives way until `*word` is `value`.
void yield_until(volatile int *word, int value);

long wait_on(volatile int *word, int value);
long wake(volatile int *word, int count);
