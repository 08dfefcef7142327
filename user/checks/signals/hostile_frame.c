// What a program may say in the frame that rt_sigreturn reads: segments and flags that it may not have.
//
// Stack pointers that are not canonical are not among it: what the processor says of them (a stack fault, which is SIGBUS) emulators do not.
#include "../check.h"
#include <ucontext.h>

// What the next handler writes.
static uint64_t code_segment, stack_segment, added_flags;

static void change(int number, siginfo_t *info, void *argument)
{
    (void)number;
    (void)info;
    greg_t *registers = ((ucontext_t *)argument)->uc_mcontext.gregs;
    // One word: cs, gs, fs, ss from its lowest bits up.
    registers[REG_CSGSFS] = (registers[REG_CSGSFS] & 0x0000ffffffff0000LL) | (greg_t)(code_segment | stack_segment << 48);
    registers[REG_EFL] |= added_flags;
}

static void returning(const char *name, uint64_t cs, uint64_t ss, uint64_t flags)
{
    struct sigaction action = { .sa_sigaction = change, .sa_flags = SA_SIGINFO };
    code_segment = cs;
    stack_segment = ss;
    added_flags = flags;
    CHECK_CHILD(name, REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0); raise(SIGUSR1); _exit(7));
}

int main(void)
{
    returning("own", 0x33, 0x2b, 0);
    returning("without-privilege-level", 0x30, 0x28, 0);
    returning("no-code", 0, 0x2b, 0);
    returning("kernel-code", 0x10, 0x2b, 0);
    returning("kernel-code-as-user", 0x13, 0x2b, 0);
    returning("data-as-code", 0x2b, 0x2b, 0);
    returning("beyond-the-table", 0xfff8, 0x2b, 0);
    returning("no-stack", 0x33, 0, 0);
    returning("kernel-stack", 0x33, 0x18, 0);
    returning("code-as-stack", 0x33, 0x33, 0);
    returning("stack-beyond-the-table", 0x33, 0xfff8, 0);
    // The privilege level of ports, a nested task, the old mode: not for programs to set.
    returning("flags-of-the-system", 0x33, 0x2b, 3 << 12 | 1 << 14 | 1 << 17);
    return 0;
}
