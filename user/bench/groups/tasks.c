// Threads, processes and what is left of them.
#include "groups.h"
#include "../thread.h"

static char *stacks;
static int never[2];
static volatile int gate;
static volatile int *shared_gate;

static void arrive(void) { __atomic_add_fetch(&board->arrived, 1, __ATOMIC_RELAXED); }

static void wait_on(volatile int *word, long operation)
{
    for (;;)
        call6(SYS_futex, (long)word, operation, 0, 0, 0, 0);
}

// From linux/futex.h.
enum { WAIT = 0, PRIVATE = 128 };

static void wait_alone(void)
{
    volatile int word = 0;
    arrive();
    wait_on(&word, WAIT | PRIVATE);
}

static void wait_together(void)
{
    arrive();
    wait_on(&gate, WAIT | PRIVATE);
}

static void wait_shared(void)
{
    arrive();
    wait_on(shared_gate, WAIT);
}

static void wait_to_read(void)
{
    char byte;
    arrive();
    call3(SYS_read, never[0], (long)&byte, 1);
}

static long begin_threads(long count)
{
    stacks = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    shared_gate = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return stacks == MAP_FAILED || shared_gate == MAP_FAILED || pipe(never) < 0 ? -errno : 0;
}

static long start(void (*run)(void), long index)
{
    char *stack = stacks + index * PAGE;
    return spawn(run, stack, (int *)stack);
}

static long make_thread(long index) { return start(wait_alone, index); }
static long make_waiter(long index) { return start(wait_together, index); }
static long make_shared_waiter(long index) { return start(wait_shared, index); }
static long make_reader(long index) { return start(wait_to_read, index); }

static long make_child(long index)
{
    (void)index;
    long pid = call3(SYS_fork, 0, 0, 0);
    if (pid != 0)
        return pid;
    arrive();
    for (;;)
        call3(SYS_pause, 0, 0, 0);
}

static long make_zombie(long index)
{
    (void)index;
    long pid = call3(SYS_fork, 0, 0, 0);
    if (pid != 0)
        return pid;
    arrive();
    call3(SYS_exit_group, 0, 0, 0);
    return 0;
}

// Process start: it leaves nothing behind, but what it costs in a group is worth knowing.
static long start_program(long index)
{
    static char *arguments[] = { "/tmp/small", NULL };
    (void)index;
    long pid = call3(SYS_fork, 0, 0, 0);
    if (pid == 0) {
        call3(SYS_execve, (long)arguments[0], (long)arguments, 0);
        call3(SYS_exit_group, 1, 0, 0);
    }
    return pid < 0 ? pid : call4(SYS_wait4, pid, 0, 0, 0);
}

static void prepare_program(long count)
{
    (void)count;
    write_program("/tmp/small");
}

static void settle(long made)
{
    while (board->arrived < made)
        usleep(1000);
    // The last to arrive may be on its way to where it waits.
    usleep(20000);
}

const struct class task_classes[] = {
    { "threads", 36000, NULL, begin_threads, make_thread, settle },
    { "threads-read", 36000, NULL, begin_threads, make_reader, settle },
    { "futex-waiters", 36000, NULL, begin_threads, make_waiter, settle },
    { "shared-futex-waiters", 36000, NULL, begin_threads, make_shared_waiter, settle },
    { "processes", 130000, NULL, NULL, make_child, settle },
    { "zombies", 40000, NULL, NULL, make_zombie, settle },
    { "starts", 0, prepare_program, NULL, start_program, NULL },
    { 0 },
};
