// What the families of the stress program share: workers that run at the same time, random numbers, and how a violation is told.
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

// A kind of work whose outcome is known however its workers are scheduled. A round begins and ends with nobody at work and nothing left: then
// it looks whether all is as it must be.
struct family {
    const char *name;
    void (*round)(void);
};

extern const struct family memory_families[], lock_families[], process_families[], signal_families[], file_families[], name_families[],
    channel_families[], event_families[], core_families[],
    overlay_families[], mount_families[];

// Tells of something that must never happen. The work goes on.
__attribute__((format(printf, 1, 2))) void violation(const char *format, ...);

#define HOLDS(condition, ...)       \
    do {                            \
        if (!(condition))           \
            violation(__VA_ARGS__); \
    } while (0)

// A step without which the work cannot go on: where it fails, this process ends with a violation.
#define MUST(condition)                                                                       \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            violation("%s:%d: %s: %s", __FILE__, __LINE__, #condition, strerror(errno));      \
            _exit(1);                                                                         \
        }                                                                                     \
    } while (0)

// Counts operations, for the report only.
void count(long operations);

// A random number below a limit. Each thread and process has its own sequence, which depends on the seed, the family, the round and its index.
uint32_t any(uint32_t below);

// Runs `work` in so many threads, with the index of each, on cores that are chosen at random, and waits until all have ended.
void threads(int number, void (*work)(int index));

// The same in processes, which must end with 0.
void processes(int number, void (*work)(int index));

// Waits for a child however often signals interrupt that, and gives its status.
int status_of(pid_t pid);

// Keeps the calling thread on a core that is chosen at random, or lets it be anywhere.
void settle(void);

// The cores that this program may run on.
extern cpu_set_t allowed_cores;

// Memory that processes share from here on; zeroed.
void *shared_memory(size_t size);

// Waits until the condition holds: what takes a minute never comes.
#define WAIT_FOR(condition, ...)                       \
    do {                                               \
        long wait_end = milliseconds() + 60000;        \
        while (!(condition) && milliseconds() < wait_end) \
            nap();                                     \
        HOLDS(condition, __VA_ARGS__);                 \
    } while (0)

// What the signal families execute.
int take_pending(int number);

long milliseconds(void);

// Sleeps for a moment; a signal ends it.
void nap(void);
