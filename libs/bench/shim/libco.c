/* libco's cothreads, measured in their own language: each function does one batch and returns its ticks. */
#include <libco.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <x86intrin.h>

enum { stack_bytes = 64 * 1024, most = 1024 };

static cothread_t ring[most + 1], home;
static size_t members, entered;

static inline uint64_t now(void) {
    _mm_lfence();
    uint64_t ticks = __rdtsc();
    _mm_lfence();
    return ticks;
}

static void member(void) {
    size_t self = entered;
    for (;;) co_switch(ring[self + 1 == members ? 0 : self + 1]);
}

/* The main thread is member 0 of the ring, and each member switches to the next. */
uint64_t ebb_libco_ring(size_t threads, size_t rounds) {
    members = threads;
    ring[0] = co_active();
    for (size_t i = 1; i < threads; i++) ring[i] = co_create(stack_bytes, member);
    if (threads > 1) {
        /* One round in which each member learns its number. */
        for (size_t i = 1; i < threads; i++) {
            size_t all = members;
            members = i + 1;
            entered = i;
            co_switch(ring[i]);
            members = all;
        }
    }
    uint64_t start = now();
    for (size_t round = 0; round < rounds; round++) co_switch(ring[threads > 1 ? 1 : 0]);
    uint64_t ticks = now() - start;
    for (size_t i = 1; i < threads; i++) co_delete(ring[i]);
    return ticks;
}

static void empty(void) {
    for (;;) co_switch(home);
}

static void suspends(void) {
    for (;;) {
        co_switch(home);
        co_switch(home);
    }
}

static char memory[stack_bytes] __attribute__((aligned(16)));

uint64_t ebb_libco_create_empty(size_t operations) {
    home = co_active();
    uint64_t start = now();
    for (size_t i = 0; i < operations; i++) co_switch(co_derive(memory, sizeof memory, empty));
    return now() - start;
}

uint64_t ebb_libco_create_suspend(size_t operations) {
    home = co_active();
    uint64_t start = now();
    for (size_t i = 0; i < operations; i++) {
        cothread_t thread = co_derive(memory, sizeof memory, suspends);
        co_switch(thread);
        co_switch(thread);
    }
    return now() - start;
}
