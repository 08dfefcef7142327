// Many threads.
#include "many.h"
#include "threads.h"
#include <signal.h>
#include <sys/times.h>

volatile int arrived;
static volatile int gate;

long wait_on(volatile int *word, int value) { return call6(SYS_futex, (long)word, 0 | 128, value, 0, 0, 0); }
long wake(volatile int *word, int count) { return call3(SYS_futex, (long)word, 1 | 128, count); }

void yield_until(volatile int *word, int value)
{
    while (*word != value)
        call3(SYS_sched_yield, 0, 0, 0);
}

void spawn_many(long count, void (*run)(void))
{
    static int tids[10000];
    char *stacks = mmap(NULL, count * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stacks == MAP_FAILED)
        fail("mmap");
    for (long i = 0; i < count; i++)
        must(spawn(run, stacks + i * 4096, &tids[i]), "clone");
    yield_until(&arrived, count);
    // The last to arrive may be on its way to where it waits.
    for (int i = 0; i < 10; i++)
        call3(SYS_sched_yield, 0, 0, 0);
}

static void wait_for_ever(void)
{
    __atomic_add_fetch(&arrived, 1, __ATOMIC_RELAXED);
    for (;;)
        wait_on(&gate, 0);
}

static void make_threads(long count) { spawn_many(count, wait_for_ever); }

static void nothing(void) { }

static uint64_t create_join(long count)
{
    static char stack[4096] __attribute__((aligned(16)));
    static int tid;
    uint64_t start = ticks();
    for (long i = 0; i < count; i++) {
        tid = 1;
        must(spawn(nothing, stack, &tid), "clone");
        int now;
        while ((now = __atomic_load_n(&tid, __ATOMIC_ACQUIRE)) != 0)
            call6(SYS_futex, (long)&tid, 0, now, 0, 0, 0);
    }
    return ticks() - start;
}

static uint64_t get_times(long count)
{
    struct tms now;
    REPEAT(call3(SYS_times, (long)&now, 0, 0));
}

static void handler(int number) { (void)number; }

static uint64_t process_signal(long count)
{
    signal(SIGUSR1, handler);
    long self = getpid();
    REPEAT(call3(SYS_kill, self, SIGUSR1, 0));
}

static uint64_t yield(long count) { REPEAT(call3(SYS_sched_yield, 0, 0, 0)); }
static uint64_t end_threads(long count) { return ending(make_threads, count); }

const struct row thread_rows[] = {
    { "threads-create-join", make_threads, create_join, 20 },
    { "threads-times", make_threads, get_times, 5 },
    { "threads-signal", make_threads, process_signal, 50 },
    { "threads-yield", make_threads, yield, 100 },
    { "threads-end", NULL, end_threads, 0 },
    { 0 },
};
