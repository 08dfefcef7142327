// The machine context: registers survive a handler, and the handler may change them.
#include "../check.h"
#include <setjmp.h>
#include <ucontext.h>

static volatile int changed_mask;

static void change(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    ucontext_t *machine = context;
    // The frame of the interrupted code gets a new value in RBX, and USR2 blocked after return.
    machine->uc_mcontext.gregs[REG_RBX] = 0x1234;
    sigaddset(&machine->uc_sigmask, SIGUSR2);
}

static void skip(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    // ud2 is two bytes long.
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void clobber(int number)
{
    (void)number;
    double volatile x = 1.5;
    for (int i = 0; i < 10; i++)
        x = x * 3.25 + 1;
    __asm__ volatile("pcmpeqd %%xmm0, %%xmm0; pcmpeqd %%xmm7, %%xmm7; pcmpeqd %%xmm15, %%xmm15; std; cld" ::: "xmm0", "xmm7", "xmm15");
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = change, .sa_flags = SA_SIGINFO };
    sigaction(SIGUSR1, &action, NULL);
    long pid = getpid(), rbx = 0;
    __asm__ volatile("mov $0x99, %%ebx; syscall; mov %%rbx, %0" : "=r"(rbx) : "a"(SYS_kill), "D"(pid), "S"(SIGUSR1) : "rbx", "rcx", "r11", "memory");
    CHECK("changed-register", rbx);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    CHECK("changed-mask", sigismember(&now, SIGUSR2));
    action.sa_sigaction = skip;
    sigaction(SIGILL, &action, NULL);
    __asm__ volatile("ud2");
    CHECK("skipped-instruction", 1);
    // All general registers and the flags survive.
    signal(SIGUSR1, clobber);
    unsigned long wrong = 1, flags = 0;
    __asm__ volatile("mov $1, %%r8; mov $2, %%r9; mov $3, %%r10; mov $4, %%r12; mov $5, %%r13; mov $6, %%r14; mov $7, %%r15; mov $8, %%rdx\n"
                     "mov $62, %%eax; syscall\n"
                     "xor %%rcx, %%rcx; add %%r8, %%rcx; add %%r9, %%rcx; add %%r10, %%rcx; add %%r12, %%rcx; add %%r13, %%rcx; add %%r14, %%rcx\n"
                     "add %%r15, %%rcx; add %%rdx, %%rcx; mov %%rcx, %0\n"
                     : "=&b"(wrong)
                     : "D"(pid), "S"((long)SIGUSR1)
                     : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory");
    CHECK("registers-sum", wrong);
    // Vector registers too.
    uint64_t in[2] = { 0x1122334455667788, 0x99aabbccddeeff00 }, out[6] = { 0 };
    __asm__ volatile("movups (%1), %%xmm0; movups (%1), %%xmm7; movups (%1), %%xmm15\n"
                     "mov $62, %%eax; syscall\n"
                     "movups %%xmm0, (%0); movups %%xmm7, 16(%0); movups %%xmm15, 32(%0)\n"
                     :
                     : "r"(out), "r"(in), "D"(pid), "S"((long)SIGUSR1)
                     : "rax", "rcx", "r11", "xmm0", "xmm7", "xmm15", "memory");
    CHECK("vectors", memcmp(out, in, 16) == 0 && memcmp(out + 2, in, 16) == 0 && memcmp(out + 4, in, 16) == 0);
    // The direction flag is clear in a handler and restored after it.
    __asm__ volatile("std\nmov $62, %%eax; syscall\npushfq; pop %0; cld" : "=&b"(flags) : "D"(pid), "S"((long)SIGUSR1) : "rax", "rcx", "r11", "memory", "cc");
    CHECK("direction-flag", (flags & 0x400) != 0);
    // Rounding and exception masks of SSE are part of the context.
    unsigned control = 0x1f80 | 0x6000, after = 0;
    __asm__ volatile("ldmxcsr %0" ::"m"(control));
    raise(SIGUSR1);
    __asm__ volatile("stmxcsr %0" : "=m"(after));
    CHECK("sse-rounding", (after & 0x6000) == 0x6000);
    return 0;
}
