// Faults of instructions: division, illegal, privileged, breakpoints. (Not: unmasked SSE exceptions and the error code of
// `int n`, where an emulator differs from a processor.)
#include "../check.h"
#include <setjmp.h>
#include <ucontext.h>

static sigjmp_buf back;
static siginfo_t last;
static void *where;
static long trap_number, error_code;

static void note(int number, siginfo_t *info, void *context)
{
    last = *info;
    ucontext_t *machine = context;
    where = (void *)machine->uc_mcontext.gregs[REG_RIP];
    trap_number = machine->uc_mcontext.gregs[REG_TRAPNO];
    error_code = machine->uc_mcontext.gregs[REG_ERR];
    siglongjmp(back, number);
}

// Prints the signal and its code; `address` tells whether the address is that of the instruction.
#define FAULT(name, access)                                                                                              \
    do {                                                                                                                 \
        if (sigsetjmp(back, 1) == 0) {                                                                                   \
            access;                                                                                                      \
            check_line("%s: no fault\n", name);                                                                          \
        } else                                                                                                           \
            check_line("%s: %s code %d trap %ld error %ld address %s\n", name, check_signal_name(last.si_signo),         \
                       last.si_code, trap_number, error_code,                                                            \
                       last.si_addr == where ? "of the instruction" : last.si_addr ? "other" : "null");                  \
    } while (0)

int main(void)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
    static const int numbers[] = { SIGFPE, SIGILL, SIGTRAP, SIGSEGV, SIGBUS };
    for (int i = 0; i < 5; i++)
        sigaction(numbers[i], &action, NULL);
    FAULT("divide-by-zero", __asm__ volatile("xor %%edx, %%edx; mov $1, %%eax; xor %%ecx, %%ecx; div %%ecx" ::: "eax", "ecx", "edx"));
    FAULT("division-overflow", __asm__ volatile("mov $-2147483648, %%eax; cdq; mov $-1, %%ecx; idiv %%ecx" ::: "eax", "ecx", "edx"));
    FAULT("undefined", __asm__ volatile("ud2"));
    FAULT("breakpoint", __asm__ volatile("int3"));
    FAULT("halt", __asm__ volatile("hlt"));
    FAULT("disable-interrupts", __asm__ volatile("cli"));
    FAULT("port", __asm__ volatile("in $0x60, %%al" ::: "al"));
    FAULT("control-register", __asm__ volatile("mov %%rax, %%cr3" ::: "memory"));
    FAULT("model-register", __asm__ volatile("xor %%ecx, %%ecx; rdmsr" ::: "eax", "ecx", "edx"));
    FAULT("single-step", __asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq; nop; nop" ::: "memory", "cc"));
    CHECK_CHILD("default-fpe", signal(SIGFPE, SIG_DFL); __asm__ volatile("xor %%edx, %%edx; xor %%ecx, %%ecx; div %%ecx" ::: "eax", "ecx", "edx"));
    CHECK_CHILD("default-ill", signal(SIGILL, SIG_DFL); __asm__ volatile("ud2"));
    CHECK_CHILD("default-trap", signal(SIGTRAP, SIG_DFL); __asm__ volatile("int3"));
    CHECK_CHILD("default-privileged", signal(SIGSEGV, SIG_DFL); __asm__ volatile("hlt"));
    return 0;
}
