// Stops at system calls, and what a tracer may do there.
#include "tracee.h"

#define AUDIT_ARCH_X86_64 0xc000003e

struct call_info {
    uint8_t op;
    uint8_t pad[3];
    uint32_t arch;
    uint64_t ip, sp;
    union {
        struct {
            uint64_t nr, args[6];
        } entry;
        struct {
            int64_t rval;
            uint8_t is_error;
        } exit;
    };
};
#define GET_SYSCALL_INFO 0x420e

static void number_and_result(void)
{
    pid_t pid;
    TRACED_CHILD(pid, syscall(SYS_umask, 022); _exit(0));
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("entry", pid);
    struct user_regs_struct all = registers(pid);
    CHECK_TRUE("number", all.orig_rax == SYS_umask);
    CHECK("result-before", (long)all.rax);
    CHECK("argument", all.rdi);
    siginfo_t info;
    CHECK("info", trace(PTRACE_GETSIGINFO, pid, 0, (long)&info));
    CHECK("info-signal", info.si_signo);
    CHECK("info-code", info.si_code);
    CHECK_TRUE("info-pid", info.si_pid == pid);
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("exit", pid);
    all = registers(pid);
    CHECK_TRUE("number-still", all.orig_rax == SYS_umask);
    CHECK_TRUE("result-is-a-mask", all.rax <= 0777);
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("entry-of-exit", pid);
    CHECK_TRUE("number-of-exit", registers(pid).orig_rax == SYS_exit_group);
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("ended", pid);
}

static void marked(void)
{
    pid_t pid;
    unsigned long message = 99;
    struct call_info info;
    memset(&info, 0, sizeof info);
    TRACED_CHILD(pid, syscall(SYS_close, 12345); _exit(0));
    CHECK("info-elsewhere", trace(GET_SYSCALL_INFO, pid, sizeof info, (long)&info));
    CHECK("op-elsewhere", info.op);
    CHECK("options", trace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD));
    CHECK("bad-options", trace(PTRACE_SETOPTIONS, pid, 0, 1ul << 30));
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("entry", pid);
    CHECK("info-at-entry", trace(GET_SYSCALL_INFO, pid, sizeof info, (long)&info));
    CHECK("op", info.op);
    CHECK_TRUE("arch", info.arch == AUDIT_ARCH_X86_64);
    CHECK_TRUE("number", info.entry.nr == SYS_close);
    CHECK("argument", info.entry.args[0]);
    CHECK_TRUE("where", info.ip == registers(pid).rip && info.sp == registers(pid).rsp);
    CHECK("message", trace(PTRACE_GETEVENTMSG, pid, 0, (long)&message));
    CHECK("of-entry", message);
    CHECK("less-room", trace(GET_SYSCALL_INFO, pid, 4, (long)&info));
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("exit", pid);
    CHECK("info-at-exit", trace(GET_SYSCALL_INFO, pid, sizeof info, (long)&info));
    CHECK("op", info.op);
    CHECK("result", info.exit.rval);
    CHECK("is-error", info.exit.is_error);
    trace(PTRACE_GETEVENTMSG, pid, 0, (long)&message);
    CHECK("of-exit", message);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("ended", pid);
}

static void changed(void)
{
    pid_t pid;
    TRACED_CHILD(pid, long one = syscall(SYS_umask, 0); errno = 0; long two = syscall(SYS_umask, 0); int no = errno;
                 long three = syscall(SYS_getppid);
                 _exit((one == getpid()) + 2 * (two == -1 && no == EXDEV) + 4 * (three == 77)));
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("entry", pid);
    struct user_regs_struct all = registers(pid);
    all.orig_rax = SYS_getpid;
    trace(PTRACE_SETREGS, pid, 0, (long)&all);
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("exit-of-another", pid);
    CHECK_TRUE("its-result", (pid_t)registers(pid).rax == pid);
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("entry", pid);
    all = registers(pid);
    all.orig_rax = -1;
    all.rax = -EXDEV;
    trace(PTRACE_SETREGS, pid, 0, (long)&all);
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("exit-of-none", pid);
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("entry", pid);
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("exit", pid);
    all = registers(pid);
    all.rax = 77;
    trace(PTRACE_SETREGS, pid, 0, (long)&all);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("what-it-saw", pid);
}

// A call that a signal interrupts: what it says at its end, and whether it is made again.
static void interrupted(void)
{
    pid_t pid;
    int ends[2];
    char byte;
    REQUIRE(pipe(ends) == 0);
    TRACED_CHILD(pid, _exit(read(ends[0], &byte, 1) == 1 ? byte : 50));
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("entry-of-read", pid);
    trace(PTRACE_SYSCALL, pid, 0, 0);
    while (check_state(pid) != 'S')
        check_sleep_ms(1);
    kill(pid, SIGUSR1);
    next_stop("exit-of-read", pid);
    CHECK("result", (long)registers(pid).rax);
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("the-signal", pid);
    CHECK("result-still", (long)registers(pid).rax);
    CHECK("number-still", registers(pid).orig_rax);
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("made-again", pid);
    CHECK("number-again", registers(pid).orig_rax);
    REQUIRE(write(ends[1], "\x07", 1) == 1);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("what-it-read", pid);
    // A tracer that does not want it to be made again.
    TRACED_CHILD(pid, _exit(read(ends[0], &byte, 1) == -1 ? 60 : 61));
    trace(PTRACE_CONT, pid, 0, 0);
    while (check_state(pid) != 'S')
        check_sleep_ms(1);
    kill(pid, SIGUSR1);
    next_stop("the-signal", pid);
    struct user_regs_struct all = registers(pid);
    all.rax = -EINTR;
    trace(PTRACE_SETREGS, pid, 0, (long)&all);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("is-not-made-again", pid);
}

static void with_signals(void)
{
    pid_t pid;
    signal(SIGUSR1, SIG_IGN);
    TRACED_CHILD(pid, signal(SIGUSR1, SIG_DFL); raise(SIGTERM); _exit(0));
    signal(SIGUSR1, SIG_DFL);
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("entry", pid);
    CHECK("resume-with-what-is-no-signal", trace(PTRACE_SYSCALL, pid, 0, 100));
    CHECK("sent-along", trace(PTRACE_CONT, pid, 0, SIGUSR2));
    next_stop("comes", pid);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("then", pid);
    trace(PTRACE_CONT, pid, 0, SIGTERM);
    next_stop("ended", pid);
}

int main(void)
{
    number_and_result();
    marked();
    changed();
    interrupted();
    with_signals();
}
