// Signals of a tracee: its tracer sees each, and decides what becomes of it.
#include "tracee.h"

static volatile int taken, code;

static void on_signal(int signal, siginfo_t *info, void *context)
{
    (void)context;
    taken = signal;
    code = info->si_code;
}

static void handle(int signal)
{
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
    REQUIRE(sigaction(signal, &action, NULL) == 0);
}

static void told(void)
{
    pid_t pid;
    siginfo_t info;
    TRACED_CHILD(pid, handle(SIGUSR1); handle(SIGUSR2); kill(getpid(), SIGUSR1); int first = taken; taken = 0;
                 kill(getpid(), SIGUSR1); int second = taken; taken = 0; kill(getpid(), SIGUSR1);
                 _exit((first == SIGUSR1) + 2 * (second == 0) + 4 * (taken == SIGUSR2)));
    CHECK("who-traces-it", tracer_of(pid) == getpid());
    CHECK_TRUE("it-stands", check_state(pid) == 't');
    CHECK("info", trace(PTRACE_GETSIGINFO, pid, 0, (long)&info));
    CHECK("its-signal", info.si_signo);
    CHECK("its-code", info.si_code);
    CHECK_TRUE("its-sender", info.si_pid == pid);
    CHECK("goes-on-without-it", trace(PTRACE_CONT, pid, 0, 0));
    next_stop("first", pid);
    CHECK("info-of-kill", trace(PTRACE_GETSIGINFO, pid, 0, (long)&info));
    CHECK("code-of-kill", info.si_code);
    CHECK("let-through", trace(PTRACE_CONT, pid, 0, SIGUSR1));
    next_stop("second", pid);
    CHECK("kept-back", trace(PTRACE_CONT, pid, 0, 0));
    next_stop("third", pid);
    CHECK("another", trace(PTRACE_CONT, pid, 0, SIGUSR2));
    next_stop("what-it-took", pid);
}

static void changed(void)
{
    pid_t pid;
    siginfo_t info;
    TRACED_CHILD(pid, handle(SIGUSR1); kill(getpid(), SIGUSR1); _exit(code == SI_QUEUE ? 7 : 8));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("to-be-changed", pid);
    REQUIRE(trace(PTRACE_GETSIGINFO, pid, 0, (long)&info) == 0);
    info.si_code = SI_QUEUE;
    CHECK("set-info", trace(PTRACE_SETSIGINFO, pid, 0, (long)&info));
    trace(PTRACE_CONT, pid, 0, SIGUSR1);
    next_stop("taken-as-changed", pid);
}

static void ignored_and_blocked(void)
{
    pid_t pid;
    TRACED_CHILD(pid, signal(SIGUSR1, SIG_IGN); kill(getpid(), SIGUSR1); signal(SIGWINCH, SIG_DFL);
                 kill(getpid(), SIGWINCH); sigset_t set; sigemptyset(&set); sigaddset(&set, SIGUSR2);
                 sigprocmask(SIG_BLOCK, &set, NULL); kill(getpid(), SIGUSR2); _exit(3));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("ignored", pid);
    trace(PTRACE_CONT, pid, 0, SIGUSR1);
    next_stop("ignored-by-default", pid);
    trace(PTRACE_CONT, pid, 0, SIGWINCH);
    next_stop("blocked-is-not-seen", pid);
}

static void fatal(void)
{
    pid_t pid;
    TRACED_CHILD(pid, kill(getpid(), SIGTERM); _exit(4));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("fatal-seen", pid);
    CHECK_TRUE("not-dead-yet", check_state(pid) == 't');
    trace(PTRACE_CONT, pid, 0, SIGTERM);
    next_stop("fatal-taken", pid);
    TRACED_CHILD(pid, kill(getpid(), SIGTERM); _exit(4));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("fatal-seen-again", pid);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("fatal-kept-back", pid);
    TRACED_CHILD(pid, *(volatile int *)16 = 1);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("fault", pid);
    siginfo_t info;
    REQUIRE(trace(PTRACE_GETSIGINFO, pid, 0, (long)&info) == 0);
    CHECK("fault-code", info.si_code);
    CHECK("fault-address", (long)info.si_addr);
    trace(PTRACE_CONT, pid, 0, SIGSEGV);
    next_stop("fault-taken", pid);
}

static void killed(void)
{
    pid_t pid;
    TRACED_CHILD(pid, pause());
    CHECK("kill-one-that-stands", kill(pid, SIGKILL));
    next_stop("killed", pid);
    TRACED_CHILD(pid, pause());
    CHECK("ptrace-kill", trace(PTRACE_KILL, pid, 0, 0));
    next_stop("killed-by-ptrace", pid);
    TRACED_CHILD(pid, pause());
    trace(PTRACE_CONT, pid, 0, 0);
    CHECK("kill-one-that-runs", kill(pid, SIGKILL));
    next_stop("killed-running", pid);
}

static void pending(void)
{
    pid_t pid;
    siginfo_t infos[8];
    struct {
        uint64_t first;
        uint32_t flags;
        int32_t count;
    } args = { 0, 0, 8 };
    uint64_t mask = 0;
    TRACED_CHILD(pid, sigset_t set; sigfillset(&set); sigprocmask(SIG_BLOCK, &set, NULL); raise(SIGUSR1);
                 for (int i = 0; i < 3; i++) syscall(SYS_tkill, getpid(), SIGRTMIN + i);
                 kill(getpid(), SIGUSR2); sigdelset(&set, SIGCONT); sigprocmask(SIG_SETMASK, &set, NULL); kill(getpid(), SIGSTOP); _exit(0));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("with-some-pending", pid);
    CHECK("peek-all", trace(PTRACE_PEEKSIGINFO, pid, (long)&args, (long)infos));
    for (int i = 0; i < 4; i++)
        CHECK("peeked", infos[i].si_signo);
    args.first = 2;
    CHECK("peek-some", trace(PTRACE_PEEKSIGINFO, pid, (long)&args, (long)infos));
    args.first = 9;
    CHECK("peek-none", trace(PTRACE_PEEKSIGINFO, pid, (long)&args, (long)infos));
    args.first = 0, args.flags = 1;
    CHECK("peek-shared", trace(PTRACE_PEEKSIGINFO, pid, (long)&args, (long)infos));
    CHECK("peeked-shared", infos[0].si_signo);
    args.flags = 2;
    CHECK("peek-badly", trace(PTRACE_PEEKSIGINFO, pid, (long)&args, (long)infos));
    CHECK("mask", trace(PTRACE_GETSIGMASK, pid, 8, (long)&mask));
    CHECK_TRUE("is-the-mask", mask >> (SIGUSR1 - 1) & 1 && !(mask >> (SIGCONT - 1) & 1) && !(mask >> (SIGKILL - 1) & 1));
    CHECK("mask-of-another-size", trace(PTRACE_GETSIGMASK, pid, 4, (long)&mask));
    mask = ~0ul & ~(1ul << (SIGUSR1 - 1));
    CHECK("set-mask", trace(PTRACE_SETSIGMASK, pid, 8, (long)&mask));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("unblocked", pid);
    trace(PTRACE_KILL, pid, 0, 0);
    next_stop("ended", pid);
}

static int chld_code, chld_status;

static void on_child(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    chld_code = info->si_code;
    chld_status = info->si_status;
}

static void tracer_is_told(void)
{
    pid_t pid;
    siginfo_t info;
    struct sigaction action = { .sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART };
    REQUIRE(sigaction(SIGCHLD, &action, NULL) == 0);
    TRACED_CHILD(pid, raise(SIGUSR1); _exit(5));
    CHECK_TRUE("sigchld", chld_code == CLD_TRAPPED);
    CHECK("sigchld-status", chld_status);
    trace(PTRACE_CONT, pid, 0, 0);
    REQUIRE(waitid(P_PID, pid, &info, WEXITED | WSTOPPED | WNOWAIT) == 0);
    CHECK_TRUE("waitid-code", info.si_code == CLD_TRAPPED);
    CHECK("waitid-status", info.si_status);
    REQUIRE(waitid(P_PID, pid, &info, WSTOPPED) == 0);
    CHECK("waitid-again", info.si_status);
    CHECK("nothing-more", waitid(P_PID, pid, &info, WEXITED | WSTOPPED | WNOHANG));
    CHECK("nobody", info.si_pid);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("exits", pid);
    CHECK_TRUE("sigchld-of-exit", chld_code == CLD_EXITED);
    signal(SIGCHLD, SIG_DFL);
}

int main(void)
{
    told();
    changed();
    ignored_and_blocked();
    fatal();
    killed();
    pending();
    tracer_is_told();
}
