// Many threads that wait on futexes.
#include "many.h"
#include "threads.h"
#include <signal.h>

// Far from one another, so that no two are in a cache line.
static volatile int gate __attribute__((aligned(64))), elsewhere __attribute__((aligned(64))), second __attribute__((aligned(64)));
static volatile int answers __attribute__((aligned(64))), left __attribute__((aligned(64)));
static volatile int tids[10000];

static void answer(void)
{
    __atomic_add_fetch(&arrived, 1, __ATOMIC_RELAXED);
    for (;;) {
        wait_on(&gate, 0);
        __atomic_add_fetch(&answers, 1, __ATOMIC_RELEASE);
        wake(&answers, 1);
    }
}

static void make_waiters(long count) { spawn_many(count, answer); }

static uint64_t wake_elsewhere(long count) { REPEAT(wake(&elsewhere, 1)); }

// The one that has waited longest is woken, answers, and waits again behind all others.
static uint64_t round_trip(long count)
{
    uint64_t start = ticks();
    for (long i = 0; i < count; i++) {
        int before = answers;
        wake(&gate, 1);
        while (answers == before)
            wait_on(&answers, before);
    }
    return ticks() - start;
}

static void leave_when_interrupted(void)
{
    int number = __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
    tids[number] = call3(SYS_gettid, 0, 0, 0);
    wait_on(&gate, 0);
    __atomic_add_fetch(&left, 1, __ATOMIC_RELEASE);
    for (;;)
        wait_on(&second, 0);
}

static void handler(int number) { (void)number; }


// The same in a process of its own each time.
static uint64_t in_process(long count, uint64_t (*run)(long))
{
    volatile uint64_t *took = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (took == MAP_FAILED)
        fail("mmap");
    long pid = call3(SYS_fork, 0, 0, 0);
    must(pid, "fork");
    if (pid == 0) {
        *took = run(count);
        call3(SYS_exit_group, 0, 0, 0);
    }
    int status = -1;
    must(call4(SYS_wait4, pid, (long)&status, 0, 0), "wait");
    uint64_t result = *took;
    munmap((void *)took, 4096);
    if (status != 0)
        fail("a process with many waiters failed");
    return result;
}

static uint64_t interrupt_all(long count)
{
    spawn_many(count, leave_when_interrupted);
    struct sigaction action = { .sa_handler = handler };
    sigaction(SIGUSR1, &action, NULL);
    long self = call3(SYS_getpid, 0, 0, 0);
    uint64_t start = ticks();
    for (long i = 0; i < count; i++)
        call3(SYS_tgkill, self, tids[i], SIGUSR1);
    yield_until(&left, count);
    return ticks() - start;
}

static uint64_t wake_all(long count)
{
    spawn_many(count, leave_when_interrupted);
    uint64_t start = ticks();
    wake(&gate, 0x7fffffff);
    yield_until(&left, count);
    return ticks() - start;
}

static uint64_t requeue_all(long count)
{
    spawn_many(count, leave_when_interrupted);
    uint64_t start = ticks();
    call6(SYS_futex, (long)&gate, 4 | 128, 0, 0x7fffffff, (long)&second, 0);
    return ticks() - start;
}

static uint64_t interrupted(long count) { return in_process(count, interrupt_all); }
static uint64_t woken(long count) { return in_process(count, wake_all); }
static uint64_t requeued(long count) { return in_process(count, requeue_all); }

const struct row futex_rows[] = {
    { "futex-wake-elsewhere", make_waiters, wake_elsewhere, 100 },
    { "futex-round-trip-among", make_waiters, round_trip, 50 },
    { "futex-interrupt-all", NULL, interrupted, 0 },
    { "futex-wake-all", NULL, woken, 0 },
    { "futex-requeue-all", NULL, requeued, 0 },
    { 0 },
};
