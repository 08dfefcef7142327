// Tracees that are threads: each has a tracer of its own, stops by itself, and is waited for by itself.
#include "tracee.h"
#include <pthread.h>
#include <sched.h>

static int ends[2];

static void *waits(void *unused)
{
    char byte;
    (void)unused;
    REQUIRE(read(ends[0], &byte, 1) >= 0);
    return NULL;
}

static void *executes(void *program)
{
    execl("/proc/self/exe", program, "exit", NULL);
    return NULL;
}

static pid_t made_by(pid_t pid, const char *name)
{
    unsigned long thread = 0;
    next_stop(name, pid);
    REQUIRE(trace(PTRACE_GETEVENTMSG, pid, 0, (long)&thread) == 0);
    return thread;
}

static void one_ends(void)
{
    pid_t pid;
    int status;
    TRACED_CHILD(pid, pthread_t thread; pthread_create(&thread, NULL, waits, NULL); pthread_join(thread, NULL); waits(NULL); _exit(5));
    trace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACECLONE);
    trace(PTRACE_CONT, pid, 0, 0);
    pid_t thread = made_by(pid, "has-made-a-thread");
    next_stop("thread", thread);
    CHECK("goes-on", trace(PTRACE_CONT, thread, 0, 0));
    CHECK("maker-stands", waitpid(pid, &status, WNOHANG | __WALL));
    CHECK("maker-goes-on", trace(PTRACE_CONT, pid, 0, 0));
    REQUIRE(write(ends[1], "x", 1) == 1);
    next_stop("thread-has-ended", thread);
    CHECK("only-once", waitpid(thread, &status, __WALL));
    REQUIRE(write(ends[1], "x", 1) == 1);
    next_stop("process-has-ended", pid);
}

static void ends_with_its_process(void)
{
    pid_t pid;
    TRACED_CHILD(pid, pthread_t thread; pthread_create(&thread, NULL, waits, NULL); pause(); _exit(5));
    trace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACECLONE);
    trace(PTRACE_CONT, pid, 0, 0);
    pid_t thread = made_by(pid, "has-made-a-thread");
    next_stop("thread", thread);
    trace(PTRACE_CONT, pid, 0, 0);
    kill(pid, SIGKILL);
    next_stop("thread-was-killed", thread);
    next_stop("process-was-killed", pid);
}

static void one_executes(char **argv)
{
    pid_t pid;
    TRACED_CHILD(pid, pthread_t thread; pthread_create(&thread, NULL, executes, argv[0]); pause(); _exit(5));
    trace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC);
    trace(PTRACE_CONT, pid, 0, 0);
    pid_t thread = made_by(pid, "has-made-a-thread");
    next_stop("thread", thread);
    trace(PTRACE_CONT, pid, 0, 0);
    trace(PTRACE_CONT, thread, 0, 0);
    pid_t former = made_by(pid, "executes-under-the-process-id");
    CHECK_TRUE("former-id", former == thread);
    CHECK("nobody-has-it", trace(PTRACE_CONT, thread, 0, 0));
    CHECK("nothing-is-known-of-it", waitpid(thread, NULL, __WALL | WNOHANG));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("ended", pid);
}

static void group_stop(void)
{
    pid_t pid;
    TRACED_CHILD(pid, pthread_t thread; pthread_create(&thread, NULL, waits, NULL); raise(SIGSTOP); _exit(5));
    trace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACECLONE);
    trace(PTRACE_CONT, pid, 0, 0);
    pid_t thread = made_by(pid, "has-made-a-thread");
    next_stop("thread", thread);
    trace(PTRACE_CONT, thread, 0, 0);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("sigstop", pid);
    trace(PTRACE_CONT, pid, 0, SIGSTOP);
    next_stop("first-stops", pid);
    next_stop("second-stops", thread);
    kill(pid, SIGKILL);
    next_stop("second-ends", thread);
    next_stop("first-ends", pid);
}

static void *asks(void *pid)
{
    return (void *)(trace(PTRACE_CONT, *(pid_t *)pid, 0, 0) == -1 ? (long)errno : 0);
}

// Only the thread that traces may ask; all of its process may wait.
static void another_thread_asks(void)
{
    pid_t pid = check_fork();
    void *error;
    if (pid == 0)
        for (;;)
            pause();
    pthread_t other;
    REQUIRE(trace(PTRACE_ATTACH, pid, 0, 0) == 0);
    next_stop("attached", pid);
    REQUIRE(pthread_create(&other, NULL, asks, &pid) == 0 && pthread_join(other, &error) == 0);
    CHECK_TRUE("another-thread", (long)error == ESRCH);
    CHECK("a-thread-of-its-own", trace(PTRACE_ATTACH, getpid(), 0, 0));
    kill(pid, SIGKILL);
    next_stop("ended", pid);
}

static void *attaches(void *pid)
{
    return (void *)(trace(PTRACE_SEIZE, *(pid_t *)pid, 0, 0) == -1 ? (long)errno : 0);
}

// The end of the thread that traces ends the tracing.
static void its_thread_ends(void)
{
    pid_t pid = check_fork();
    void *error;
    if (pid == 0)
        for (;;)
            pause();
    pthread_t other;
    REQUIRE(pthread_create(&other, NULL, attaches, &pid) == 0 && pthread_join(other, &error) == 0);
    CHECK("attached-by-it", (long)error);
    while (tracer_of(pid) != 0)
        check_sleep_ms(1);
    CHECK("free-again", trace(PTRACE_SEIZE, pid, 0, 0));
    kill(pid, SIGKILL);
    next_stop("ended", pid);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return 44;
    REQUIRE(pipe(ends) == 0);
    one_ends();
    ends_with_its_process();
    one_executes(argv);
    group_stop();
    another_thread_asks();
    its_thread_ends();
}
