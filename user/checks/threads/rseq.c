// Restartable sequences: registration, its errors, and a sequence that a signal aborts.
#include "../check.h"
#include <sched.h>

#define SIGNATURE 0x53053053u

struct sequence {
    uint32_t version, flags;
    uint64_t start, length, abort;
} __attribute__((aligned(32)));

struct area {
    uint32_t start_cpu, cpu;
    uint64_t sequence;
    uint32_t flags, node, memory_map_cpu, rest;
} __attribute__((aligned(32)));

static struct area area, other;

static long rseq(void *at, unsigned length, int flags, unsigned signature)
{
    return syscall(SYS_rseq, at, length, flags, signature);
}

static volatile sig_atomic_t handled;
static uint64_t seen_by_handler;

static void note(int number)
{
    handled = number;
    seen_by_handler = area.sequence;
}

// Runs a sequence that ends only by being aborted. The handler of a timer's signal is entered after the abort.
static int aborted(void)
{
    static struct sequence sequence;
    int result;
    void *start, *end, *abort_to;
    __asm__ volatile("lea 1f(%%rip), %0\n lea 2f(%%rip), %1\n lea 3f(%%rip), %2" : "=r"(start), "=r"(end), "=r"(abort_to));
    sequence = (struct sequence){ 0, 0, (uintptr_t)start, (char *)end - (char *)start, (uintptr_t)abort_to };
    struct timespec soon = { 0, 20000000 };
    struct itimerspec when = { .it_value = soon };
    timer_t timer;
    REQUIRE(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0 && timer_settime(timer, 0, &when, NULL) == 0);
    __asm__ volatile("movq %[sequence], %[slot]\n"
                     "1: jmp 1b\n"
                     "2: movl $1, %[result]\n"
                     "jmp 4f\n"
                     ".long 0x53053053\n"
                     "3: movl $2, %[result]\n"
                     "4:\n"
                     : [result] "=&r"(result), [slot] "=m"(area.sequence)
                     : [sequence] "r"(&sequence)
                     : "memory", "cc");
    // Preemption may have aborted it before the signal.
    while (!handled)
        sched_yield();
    timer_delete(timer);
    return result;
}

int main(void)
{
    CHECK("unregister-none", rseq(&area, 32, 1, SIGNATURE));
    CHECK("flags", rseq(&area, 32, 2, SIGNATURE));
    CHECK("short", rseq(&area, 16, 0, SIGNATURE));
    CHECK("short-by-one", rseq(&area, 31, 0, SIGNATURE));
    CHECK("unaligned", rseq((char *)&area + 8, 32, 0, SIGNATURE));
    CHECK("null", rseq(NULL, 32, 0, SIGNATURE));
    CHECK("unmapped", rseq((void *)0x20, 32, 0, SIGNATURE));
    CHECK("kernel", rseq((void *)0xffff800000000000, 32, 0, SIGNATURE));
    CHECK("register", rseq(&area, 32, 0, SIGNATURE));
    CHECK_TRUE("core", area.cpu == area.start_cpu && area.cpu < 4096);
    CHECK("again", rseq(&area, 32, 0, SIGNATURE));
    CHECK("again-signature", rseq(&area, 32, 0, 1));
    CHECK("again-elsewhere", rseq(&other, 32, 0, SIGNATURE));
    CHECK("unregister-elsewhere", rseq(&other, 32, 1, SIGNATURE));
    CHECK("unregister-length", rseq(&area, 64, 1, SIGNATURE));
    CHECK("unregister-signature", rseq(&area, 32, 1, 1));
    struct sigaction action = { .sa_handler = note };
    REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
    unsigned left = alarm(0);
    CHECK("aborted", aborted());
    CHECK_STR("handled", check_signal_name(handled));
    CHECK_TRUE("none-in-handler", seen_by_handler == 0 && area.sequence == 0);
    alarm(left);
    CHECK_CHILD("wrong-signature", REQUIRE(rseq(&area, 32, 1, SIGNATURE) == 0 && rseq(&area, 32, 0, 77) == 0); aborted());
    CHECK_CHILD("inherited-by-fork", CHECK("again", rseq(&area, 32, 0, SIGNATURE)); CHECK("unregister", rseq(&area, 32, 1, SIGNATURE)));
    CHECK_CHILD("no-sequence-there", area.sequence = 8; for (;;) alarm(1), pause(), sched_yield());
    CHECK("unregister", rseq(&area, 32, 1, SIGNATURE));
    CHECK_TRUE("no-core", area.cpu == UINT32_MAX && area.start_cpu == 0);
    CHECK("unregister-again", rseq(&area, 32, 1, SIGNATURE));
    CHECK("register-again", rseq(&area, 32, 0, SIGNATURE));
    return 0;
}
