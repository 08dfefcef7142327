// Counters of cores that threads add to without a lock, each in a restartable sequence on the counter of the core that it runs on, while they are moved
// from core to core and take turns on each. Nothing is lost: whoever is interrupted, moved or made to wait in the sequence begins it again.
#include "../check.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define SIGNATURE 0x53053053u
#define THREADS 4
#define CORES 4096

struct area {
    uint32_t start_cpu, cpu;
    uint64_t sequence;
    uint32_t flags, node, memory_map_cpu, rest;
} __attribute__((aligned(32)));

static struct {
    uint64_t count;
    uint64_t pad[7];
} counters[CORES];

static atomic_ulong again;
static atomic_int registered, begun, enough;
static pid_t ids[THREADS];

// Adds one to the counter of the core; false if it was to begin again. It dawdles between reading and writing, so that others come in between.
static int add_one(struct area *area)
{
    __asm__ goto(".pushsection .data.sequences, \"aw\"\n"
                 ".balign 32\n"
                 "3: .long 0, 0\n"
                 ".quad 1f, 2f - 1f, 4f\n"
                 ".popsection\n"
                 "leaq 3b(%%rip), %%rax\n"
                 "movq %%rax, 8(%0)\n"
                 "1: movl 4(%0), %%eax\n"
                 "shlq $6, %%rax\n"
                 "movq (%1, %%rax), %%rcx\n"
                 "movl $20, %%edx\n"
                 "5: decl %%edx\n"
                 "jnz 5b\n"
                 "incq %%rcx\n"
                 "movq %%rcx, (%1, %%rax)\n"
                 "2:\n"
                 ".pushsection .text.aborted, \"ax\"\n"
                 ".long 0x53053053\n"
                 "4: jmp %l2\n"
                 ".popsection\n"
                 :
                 : "r"(area), "r"(counters)
                 : "rax", "rcx", "rdx", "memory", "cc"
                 : aborted);
    return 1;
aborted:
    return 0;
}

static void *count(void *number)
{
    static __thread struct area area;
    uint64_t added = 0;
    ids[(intptr_t)number] = syscall(SYS_gettid);
    registered += syscall(SYS_rseq, &area, 32, 0, SIGNATURE) == 0;
    begun++;
    while (!enough) {
        for (int i = 0; i < 1000; i++) {
            if (add_one(&area))
                added++;
            else
                again++;
        }
        sched_yield();
    }
    syscall(SYS_rseq, &area, 32, 1, SIGNATURE);
    return (void *)added;
}

int main(void)
{
    cpu_set_t all;
    REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, count, (void *)i) == 0);
    while (begun < THREADS)
        sched_yield();
    // Each is told to go on somewhere else, one after the other, until many were interrupted at the wrong moment.
    for (int turn = 0, core = 0; again < 100; turn++) {
        do
            core = (core + 1) % CPU_SETSIZE;
        while (!CPU_ISSET(core, &all));
        cpu_set_t there;
        CPU_ZERO(&there);
        CPU_SET(core, &there);
        sched_setaffinity(ids[turn % THREADS], sizeof there, &there);
        struct timespec moment = { 0, 300000 };
        nanosleep(&moment, NULL);
    }
    enough = 1;
    uint64_t sum = 0, added = 0;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        added += (uintptr_t)result;
    }
    for (int core = 0; core < CORES; core++)
        sum += counters[core].count;
    CHECK_TRUE("registered", registered == THREADS);
    CHECK_TRUE("none-lost", sum == added);
    return 0;
}
