// How tracing begins and ends, and what a tracee does whose process is stopped.
#include "tracee.h"
#include <sys/prctl.h>

static pid_t waiting(void)
{
    pid_t pid = check_fork();
    if (pid == 0)
        for (;;)
            pause();
    while (check_state(pid) != 'S')
        check_sleep_ms(1);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    next_stop("end", pid);
}

static void refused(void)
{
    pid_t pid = waiting();
    CHECK("oneself", trace(PTRACE_ATTACH, getpid(), 0, 0));
    CHECK("nobody", trace(PTRACE_ATTACH, 99999999, 0, 0));
    CHECK("ask-of-nobody", trace(PTRACE_CONT, 99999999, 0, 0));
    CHECK("ask-of-no-tracee", trace(PTRACE_CONT, pid, 0, 0));
    CHECK("interrupt-no-tracee", trace(PTRACE_INTERRUPT, pid, 0, 0));
    CHECK("let-go-of-no-tracee", trace(PTRACE_DETACH, pid, 0, 0));
    CHECK("what-is-no-request", trace(9999, pid, 0, 0));
    CHECK("seize-with-an-address", trace(PTRACE_SEIZE, pid, 1, 0));
    CHECK("seize-with-bad-options", trace(PTRACE_SEIZE, pid, 0, 1ul << 30));
    CHECK("seize", trace(PTRACE_SEIZE, pid, 0, 0));
    CHECK("twice", trace(PTRACE_SEIZE, pid, 0, 0));
    CHECK("attach-too", trace(PTRACE_ATTACH, pid, 0, 0));
    CHECK("ask-of-one-that-runs", trace(PTRACE_CONT, pid, 0, 0));
    CHECK("peek-into-one-that-runs", trace(PTRACE_PEEKUSER, pid, 0, (long)&(long){ 0 }));
    CHECK("listen-to-one-that-runs", trace(PTRACE_LISTEN, pid, 0, 0));
    CHECK_CHILD("by-another", _exit(trace(PTRACE_ATTACH, pid, 0, 0) == -1 && errno == EPERM ? 0 : 1));
    CHECK_CHILD("another-asks", _exit(trace(PTRACE_INTERRUPT, pid, 0, 0) == -1 && errno == ESRCH ? 0 : 1));
    end(pid);
    TRACED_CHILD(pid, _exit(trace(PTRACE_TRACEME, 0, 0, 0) == -1 && errno == EPERM ? 0 : 1));
    CHECK("what-is-no-request-either", trace(9999, pid, 0, 0));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("traced-twice", pid);
    pid = waiting();
    CHECK_CHILD("without-rights", REQUIRE(setuid(12345) == 0); _exit(trace(PTRACE_ATTACH, pid, 0, 0) == -1 && errno == EPERM ? 0 : 1));
    end(pid);
}

static void attach(void)
{
    pid_t pid = waiting();
    CHECK("attach", trace(PTRACE_ATTACH, pid, 0, 0));
    next_stop("stops", pid);
    CHECK_TRUE("tracer", tracer_of(pid) == getpid());
    CHECK("interrupt-one-that-was-not-seized", trace(PTRACE_INTERRUPT, pid, 0, 0));
    CHECK("listen", trace(PTRACE_LISTEN, pid, 0, 0));
    CHECK("goes-on", trace(PTRACE_CONT, pid, 0, 0));
    while (check_state(pid) != 'S')
        check_sleep_ms(1);
    CHECK("let-go-while-it-runs", trace(PTRACE_DETACH, pid, 0, 0));
    kill(pid, SIGUSR1);
    next_stop("signal", pid);
    CHECK("let-go", trace(PTRACE_DETACH, pid, 0, 0));
    CHECK("nobodys", tracer_of(pid));
    CHECK("attach-again", trace(PTRACE_ATTACH, pid, 0, 0));
    next_stop("stops-again", pid);
    CHECK("let-go-with-a-signal", trace(PTRACE_DETACH, pid, 0, SIGTERM));
    next_stop("ends-by-it", pid);
}

static void seize(void)
{
    pid_t pid = waiting();
    siginfo_t info;
    CHECK("seize", trace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD));
    CHECK("does-not-stop", waitpid(pid, NULL, WNOHANG));
    CHECK("interrupt", trace(PTRACE_INTERRUPT, pid, 0, 0));
    next_stop("stops", pid);
    CHECK("info", trace(PTRACE_GETSIGINFO, pid, 0, (long)&info));
    CHECK("info-code", info.si_code);
    CHECK("to-its-call", trace(PTRACE_SYSCALL, pid, 0, 0));
    next_stop("makes-its-call-again", pid);
    CHECK_TRUE("which-is", registers(pid).orig_rax == SYS_pause);
    trace(PTRACE_CONT, pid, 0, 0);
    // Job control.
    CHECK("stop", kill(pid, SIGSTOP));
    next_stop("signal-that-stops", pid);
    trace(PTRACE_CONT, pid, 0, SIGSTOP);
    next_stop("its-process-is-stopped", pid);
    CHECK("listen", trace(PTRACE_LISTEN, pid, 0, 0));
    CHECK("ask-of-one-that-listens", trace(PTRACE_CONT, pid, 0, 0));
    CHECK("nothing-yet", waitpid(pid, NULL, WNOHANG));
    CHECK("continue", kill(pid, SIGCONT));
    next_stop("hears-it", pid);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("the-signal", pid);
    trace(PTRACE_CONT, pid, 0, SIGCONT);
    while (check_state(pid) != 'S')
        check_sleep_ms(1);
    end(pid);
}

static void group_stop_of_attached(void)
{
    pid_t pid;
    siginfo_t info;
    TRACED_CHILD(pid, raise(SIGTSTP); _exit(21));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("sigtstp", pid);
    // A process group that has nobody who could continue it does not stop by that: so it is made another signal.
    trace(PTRACE_CONT, pid, 0, SIGSTOP);
    next_stop("stopped", pid);
    CHECK("no-info", trace(PTRACE_GETSIGINFO, pid, 0, (long)&info));
    CHECK("goes-on-all-the-same", trace(PTRACE_CONT, pid, 0, 0));
    next_stop("ended", pid);
}

static void stopped_before(void)
{
    pid_t pid = waiting();
    int status;
    kill(pid, SIGSTOP);
    REQUIRE(waitpid(pid, &status, WUNTRACED) == pid);
    CHECK("seize-one-that-is-stopped", trace(PTRACE_SEIZE, pid, 0, 0));
    next_stop("stands", pid);
    CHECK("let-go", trace(PTRACE_DETACH, pid, 0, 0));
    while (check_state(pid) != 'T')
        check_sleep_ms(1);
    kill(pid, SIGCONT);
    while (check_state(pid) != 'S')
        check_sleep_ms(1);
    end(pid);
}

// The tracer's end: its tracees go on, or are killed if it wanted that.
static void end_of_tracer(unsigned long options, const char *name)
{
    pid_t pid = waiting();
    CHECK_CHILD(name, REQUIRE(trace(PTRACE_SEIZE, pid, 0, options) == 0); REQUIRE(trace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
                int status; REQUIRE(waitpid(pid, &status, __WALL) == pid); _exit(0));
    if (options == 0) {
        while (check_state(pid) != 'S')
            check_sleep_ms(1);
        CHECK("nobodys", tracer_of(pid));
        kill(pid, SIGTERM);
    }
    next_stop("then", pid);
}

// A parent and a tracer are two: both learn of the end.
static void two_learn_of_it(void)
{
    int ready[2];
    char byte;
    REQUIRE(pipe(ready) == 0);
    pid_t pid = waiting(), tracer = check_fork();
    if (tracer == 0) {
        int status;
        REQUIRE(trace(PTRACE_SEIZE, pid, 0, 0) == 0);
        REQUIRE(write(ready[1], "x", 1) == 1);
        REQUIRE(waitpid(pid, &status, __WALL) == pid);
        CHECK_STATUS("tracer-sees", status);
        REQUIRE(trace(PTRACE_CONT, pid, 0, SIGTERM) == 0);
        REQUIRE(waitpid(pid, &status, 0) == pid);
        CHECK_STATUS("tracer-learns", status);
        CHECK("has-no-others", waitpid(-1, &status, 0));
        _exit(0);
    }
    REQUIRE(read(ready[0], &byte, 1) == 1);
    kill(pid, SIGTERM);
    CHECK_STATUS("tracer", check_wait(tracer));
    CHECK_STATUS("parent-learns", check_wait(pid));
}

int main(void)
{
    prctl(PR_SET_PTRACER, -1);
    refused();
    attach();
    seize();
    group_stop_of_attached();
    stopped_before();
    end_of_tracer(0, "tracer-ends");
    end_of_tracer(PTRACE_O_EXITKILL, "tracer-ends-and-kills");
    two_learn_of_it();
}
