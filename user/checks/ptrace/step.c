// Steps and breakpoints.
#include "tracee.h"

extern char three_start[], three_end[], call_at[], behind_call[];

static volatile int handled;
static void on_signal(int signal) { handled = signal; }

__attribute__((noinline)) static void three(void)
{
    __asm__ volatile(".globl three_start, three_end\nthree_start: nop\nnop\nnop\nthree_end: nop" ::: "memory");
}

static void run_to(pid_t pid, char *address)
{
    long old = 0;
    REQUIRE(trace(PTRACE_PEEKTEXT, pid, (long)address, (long)&old) == 0);
    CHECK("breakpoint", trace(PTRACE_POKETEXT, pid, (long)address, (old & ~0xffl) | 0xcc));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("at-it", pid);
    siginfo_t info;
    REQUIRE(trace(PTRACE_GETSIGINFO, pid, 0, (long)&info) == 0);
    CHECK("breakpoint-code", info.si_code);
    struct user_regs_struct all = registers(pid);
    CHECK_TRUE("behind-it", all.rip == (unsigned long)address + 1);
    all.rip = (unsigned long)address;
    REQUIRE(trace(PTRACE_SETREGS, pid, 0, (long)&all) == 0);
    CHECK("removed", trace(PTRACE_POKETEXT, pid, (long)address, old));
}

static void steps(void)
{
    pid_t pid;
    siginfo_t info;
    TRACED_CHILD(pid, three(); _exit(6));
    run_to(pid, three_start);
    for (int i = 0; i < 3; i++) {
        CHECK("step", trace(PTRACE_SINGLESTEP, pid, 0, 0));
        next_stop("stepped", pid);
        CHECK("by", registers(pid).rip - (unsigned long)three_start);
        CHECK("trap-flag-is-not-seen", registers(pid).eflags >> 8 & 1);
    }
    REQUIRE(trace(PTRACE_GETSIGINFO, pid, 0, (long)&info) == 0);
    CHECK("step-code", info.si_code);
    CHECK_TRUE("step-address", info.si_addr == three_end);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("runs-on", pid);
}

__attribute__((noinline)) static long make_call(void)
{
    long result;
    __asm__ volatile(".globl call_at, behind_call\ncall_at: syscall\nbehind_call: nop\nnop" : "=a"(result) : "a"(SYS_getppid) : "rcx", "r11", "memory");
    return result;
}

static void over_a_call(void)
{
    pid_t pid;
    TRACED_CHILD(pid, _exit(make_call() == getppid() ? 7 : 8));
    run_to(pid, call_at);
    trace(PTRACE_SINGLESTEP, pid, 0, 0);
    next_stop("stepped-over-a-call", pid);
    CHECK_TRUE("is-behind-it", registers(pid).rip == (unsigned long)behind_call);
    trace(PTRACE_SINGLESTEP, pid, 0, 0);
    next_stop("one-more", pid);
    CHECK("by", registers(pid).rip - (unsigned long)behind_call);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("runs-on", pid);
}

static void into_a_handler(void)
{
    pid_t pid;
    TRACED_CHILD(pid, signal(SIGUSR1, on_signal); raise(SIGUSR1); _exit(handled == SIGUSR1 ? 9 : 10));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("before", pid);
    trace(PTRACE_SINGLESTEP, pid, 0, SIGUSR1);
    next_stop("in-it", pid);
    CHECK_TRUE("at-its-start", registers(pid).rip == (unsigned long)on_signal);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("runs-on", pid);
}

// Nothing of it is left where it goes on without its tracer.
static void then_let_go(void)
{
    pid_t pid;
    TRACED_CHILD(pid, three(); _exit(11));
    run_to(pid, three_start);
    trace(PTRACE_SINGLESTEP, pid, 0, 0);
    next_stop("stepped", pid);
    CHECK("let-go", trace(PTRACE_DETACH, pid, 0, 0));
    next_stop("by-itself", pid);
}

int main(void)
{
    steps();
    over_a_call();
    into_a_handler();
    then_let_go();
}
