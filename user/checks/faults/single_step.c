// The trap flag: a trap behind each instruction, also around system calls, signal handlers and fork.
#include "../check.h"

static volatile int traps;

static void on_trap(int number)
{
    (void)number;
    // One that never comes past an instruction.
    if (++traps == 1000)
        _exit(77);
}

static void on_signal(int number)
{
    (void)number;
}

// Makes a system call with the trap flag set by `popfq`, so many instructions before it that it is not the first that traps.
static long call_in_steps(long number, long first, long second)
{
    long result;
    traps = 0;
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq; nop; nop; syscall; nop; nop; pushfq; andq $~0x100, (%%rsp); popfq"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

int main(void)
{
    struct sigaction action = { .sa_handler = on_trap };
    REQUIRE(sigaction(SIGTRAP, &action, NULL) == 0);
    REQUIRE(signal(SIGUSR1, on_signal) != SIG_ERR);
    // Linux has no trap between a `syscall` and what follows it; whether the processor has one is its own.
    CHECK_TRUE("call", call_in_steps(SYS_getpid, 0, 0) == getpid());
    CHECK_TRUE("steps of a call", traps >= 7 && traps <= 8);
    CHECK("signal", call_in_steps(SYS_kill, getpid(), SIGUSR1));
    CHECK_TRUE("steps around a handler", traps >= 7 && traps <= 8);
    CHECK("error", call_in_steps(SYS_close, -1, 0));
    long child = call_in_steps(SYS_fork, 0, 0);
    if (child == 0)
        _exit(traps >= 7 && traps <= 8 ? 7 : traps);
    CHECK_TRUE("steps around fork", traps >= 7 && traps <= 8);
    CHECK_STATUS("child", check_wait(child));
    return 0;
}
