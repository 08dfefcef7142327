// What a tracee tells of itself: what it makes, executes, and its end.
#include "tracee.h"
#include <sched.h>

#define ALL_EVENTS (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXIT)

static unsigned long message(pid_t pid)
{
    unsigned long value = 0;
    REQUIRE(trace(PTRACE_GETEVENTMSG, pid, 0, (long)&value) == 0);
    return value;
}

static void forks(void)
{
    pid_t pid;
    int status;
    TRACED_CHILD(pid, pid_t child = fork(); if (child == 0) _exit(12); waitpid(child, &status, 0); _exit(WEXITSTATUS(status) + 1));
    CHECK("options", trace(PTRACE_SETOPTIONS, pid, 0, ALL_EVENTS));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("has-forked", pid);
    siginfo_t info;
    CHECK("info", trace(PTRACE_GETSIGINFO, pid, 0, (long)&info));
    CHECK("info-code", info.si_code);
    pid_t child = message(pid);
    next_stop("child", child);
    CHECK_TRUE("traced-too", tracer_of(child) == getpid());
    trace(PTRACE_CONT, pid, 0, 0);
    trace(PTRACE_CONT, child, 0, 0);
    next_stop("child-at-its-end", child);
    CHECK("its-status", message(child) >> 8);
    trace(PTRACE_CONT, child, 0, 0);
    next_stop("child-has-ended", child);
    for (;;) {
        status = next_stop("parent", pid);
        if (!WIFSTOPPED(status))
            break;
        trace(PTRACE_CONT, pid, 0, status >> 16 ? 0 : WSTOPSIG(status));
    }
}

static void vforks(void)
{
    pid_t pid;
    TRACED_CHILD(pid, pid_t child = vfork(); if (child == 0) _exit(0); waitpid(child, NULL, 0); _exit(4));
    trace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("has-vforked", pid);
    pid_t child = message(pid);
    next_stop("child", child);
    trace(PTRACE_CONT, pid, 0, 0);
    CHECK("is-not-done", waitpid(pid, NULL, WNOHANG));
    trace(PTRACE_CONT, child, 0, 0);
    next_stop("child-has-ended", child);
    next_stop("done", pid);
    CHECK_TRUE("whose", (pid_t)message(pid) == child);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("told-of-child", pid);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("ended", pid);
}

static void executes(char **argv)
{
    pid_t pid;
    TRACED_CHILD(pid, execl("/proc/self/exe", argv[0], "exit", NULL));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("exec-by-sigtrap", pid);
    siginfo_t info;
    REQUIRE(trace(PTRACE_GETSIGINFO, pid, 0, (long)&info) == 0);
    CHECK("its-code", info.si_code);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("ended", pid);
    TRACED_CHILD(pid, execl("/proc/self/exe", argv[0], "exit", NULL));
    trace(PTRACE_SETOPTIONS, pid, 0, ALL_EVENTS | PTRACE_O_TRACESYSGOOD);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("exec-event", pid);
    CHECK_TRUE("former-id", (pid_t)message(pid) == pid);
    CHECK_TRUE("in-execve", registers(pid).orig_rax == SYS_execve);
    CHECK("result", registers(pid).rax);
    trace(PTRACE_SYSCALL, pid, 0, 0);
    next_stop("end-of-execve", pid);
    CHECK("its-result", registers(pid).rax);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("at-its-end", pid);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("ended", pid);
    TRACED_CHILD(pid, execl("/no/such/program", "", NULL); _exit(33));
    trace(PTRACE_SETOPTIONS, pid, 0, ALL_EVENTS);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("exec-that-fails", pid);
    CHECK("status", message(pid) >> 8);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("ended", pid);
}

static void ends_by_signal(void)
{
    pid_t pid;
    TRACED_CHILD(pid, raise(SIGTERM));
    trace(PTRACE_SETOPTIONS, pid, 0, ALL_EVENTS);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("sigterm", pid);
    trace(PTRACE_CONT, pid, 0, SIGTERM);
    next_stop("about-to-end", pid);
    CHECK("status", message(pid));
    CHECK("peek-user", trace(PTRACE_PEEKUSER, pid, 0, (long)&(long){ 0 }));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("ended", pid);
}

static void untraced(void)
{
    pid_t pid;
    TRACED_CHILD(pid, pid_t child = syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0); if (child == 0) _exit(0);
                 waitpid(child, NULL, 0); _exit(2));
    trace(PTRACE_SETOPTIONS, pid, 0, ALL_EVENTS & ~PTRACE_O_TRACEEXIT);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("told-of-child-only", pid);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("ended", pid);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return 44;
    forks();
    vforks();
    executes(argv);
    ends_by_signal();
    untraced();
}
