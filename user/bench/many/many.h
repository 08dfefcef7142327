// Rows of `many`: what an operation costs where there are many of something.
//
// A row's stage is a process of its own. It makes N of something (`make`), then runs the operation; rows that stand one after the other
// and have the same `make` share a stage; those without have one each. What a stage leaves behind ends with it: its children end when its pipes close.
#pragma once
#define _GNU_SOURCE
#include "../bench.h"
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct row {
    const char *name;
    // Makes so many; NULL if the operation does that itself.
    void (*make)(long many);
    // Does the operation `count` times, or once with `many` if `count` is 0; gives the ticks that it took.
    uint64_t (*run)(long count);
    long count;
};

extern const struct row descriptor_rows[], thread_rows[], futex_rows[], process_rows[], memory_rows[], epoll_rows[], file_rows[], timer_rows[];

// How many there are on this stage.
extern long many;

// What it costs that a process ends which `fill` has filled: from its exit_group(2) until its parent has waited for it.
uint64_t ending(void (*fill)(long many), long many);

// fork(2), a child that exits at once, wait(2).
uint64_t fork_exit_wait(long count);

// A pipe whose reader sees the end when the stage has ended.
extern int stage_pipe[2];

#define REPEAT(call)                        \
    uint64_t start = ticks();               \
    for (long i = 0; i < count; i++) {      \
        __asm__ volatile("" : "+r"(i));     \
        call;                               \
    }                                       \
    return ticks() - start
