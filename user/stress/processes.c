// Processes that come and go: children of many threads, orphans, stops, and execution and the end of processes whose other threads run.
#include "stress.h"

#include <sys/prctl.h>

#define CHILDREN 4

static void raise_children(int index)
{
    pid_t pids[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        int code = index * CHILDREN + i;
        MUST((pids[i] = fork()) >= 0);
        if (pids[i] == 0) {
            // A grandchild that is waited for, one that is not.
            if (any(4) == 0) {
                pid_t pid = fork();
                if (pid == 0)
                    _exit(any(2));
                if (pid > 0 && code % 2 == 0)
                    waitpid(pid, NULL, 0);
            }
            _exit(code);
        }
    }
    for (int i = 0; i < CHILDREN; i++) {
        int status = status_of(pids[i]), code = index * CHILDREN + i;
        HOLDS(WIFEXITED(status) && WEXITSTATUS(status) == code, "a child ended with %#x, not %d", status, code);
        HOLDS(waitpid(pids[i], NULL, 0) == -1 && errno == ECHILD, "a child was waited for twice");
    }
    count(CHILDREN);
}

static void children_round(void)
{
    threads(3, raise_children);
    HOLDS(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a child is left");
}

static void leave_orphans(int index)
{
    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            if (any(2))
                nap();
            _exit(10 + index * CHILDREN + i);
        }
    }
}

// Children that end before theirs: the next reaper above gets those, each once.
static void orphans_round(void)
{
    MUST(prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) == 0);
    int ended[10 + 3 * CHILDREN] = { 0 }, status;
    for (int i = 0; i < 3; i++) {
        // A sequence of its own for each, as its parent's state differs.
        any(2);
        pid_t pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            settle();
            leave_orphans(i);
            _exit(0);
        }
    }
    while (waitpid(-1, &status, 0) > 0) {
        int ended_with = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        HOLDS(ended_with >= 0 && ended_with < 10 + 3 * CHILDREN, "a child ended with %#x", status);
        if (ended_with >= 0 && ended_with < 10 + 3 * CHILDREN)
            ended[ended_with]++;
    }
    MUST(errno == ECHILD);
    HOLDS(ended[0] == 3, "%d of 3 children", ended[0]);
    for (int i = 10; i < 10 + 3 * CHILDREN; i++)
        HOLDS(ended[i] == 1, "orphan %d ended %d times", i, ended[i]);
    MUST(prctl(PR_SET_CHILD_SUBREAPER, 0L, 0L, 0L, 0L) == 0);
    count(3 + 3 * CHILDREN);
}

static atomic_long *ticks;

static void tick(int index)
{
    for (;;) {
        atomic_fetch_add(&ticks[index], 1);
        if (index == 1)
            sched_yield();
    }
}

// When a parent is told that a process has stopped no thread of it runs, and when it goes on all do.
static void stops_round(void)
{
    ticks = shared_memory(PAGE);
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        threads(3, tick);
        _exit(1);
    }
    int status;
    for (int i = 0; i < 5; i++) {
        long at[3] = { ticks[0], ticks[1], ticks[2] };
        WAIT_FOR(ticks[0] > at[0] && ticks[1] > at[1] && ticks[2] > at[2], "a thread does not go on");
        MUST(kill(pid, SIGSTOP) == 0);
        MUST(waitpid(pid, &status, WUNTRACED) == pid);
        HOLDS(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP, "a stopped process has status %#x", status);
        for (int thread = 0; thread < 3; thread++)
            at[thread] = ticks[thread];
        for (int look = 0; look < 3; look++) {
            nap();
            for (int thread = 0; thread < 3; thread++)
                HOLDS(ticks[thread] == at[thread], "a thread of a stopped process runs");
        }
        if (i == 4)
            break;
        MUST(kill(pid, SIGCONT) == 0);
        MUST(waitpid(pid, &status, WCONTINUED) == pid);
        HOLDS(WIFCONTINUED(status), "a process that goes on has status %#x", status);
    }
    kill(pid, SIGKILL);
    status = status_of(pid);
    HOLDS(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a stopped process ended with %#x", status);
    munmap(ticks, PAGE);
    count(5);
}

enum ending { EXECUTES, EXITS, IS_KILLED };

static enum ending ending;
static int code, blocked[2];

static void *do_nothing(void *argument)
{
    return argument;
}

// One of them ends the process; the others compute, call, block, and start threads.
static void be_busy(int index)
{
    char byte;
    switch (index) {
    case 0:
        for (int i = (int)any(20); i > 0; i--)
            sched_yield();
        if (ending == EXECUTES) {
            char text[8];
            snprintf(text, sizeof text, "%d", code);
            execl("/proc/self/exe", "stress", "--exit", text, NULL);
        }
        if (ending == EXITS)
            _exit(code);
        (void)!read(blocked[0], &byte, 1);
        break;
    case 1:
        (void)!read(blocked[0], &byte, 1);
        break;
    case 2:
        for (;;)
            __asm__ volatile("" ::: "memory");
    case 3:
        for (;;) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
                pthread_join(thread, NULL);
        }
    default:
        for (;;)
            munmap(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PAGE);
    }
}

static void endings_round(void)
{
    MUST(pipe(blocked) == 0);
    ending = any(3);
    code = (int)any(100);
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        threads(5, be_busy);
        _exit(101);
    }
    if (ending == IS_KILLED) {
        for (int i = (int)any(10); i > 0; i--)
            nap();
        kill(pid, SIGKILL);
    }
    int status = status_of(pid);
    if (ending == IS_KILLED)
        HOLDS(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a killed process ended with %#x", status);
    else
        HOLDS(WIFEXITED(status) && WEXITSTATUS(status) == code, "a process ended with %#x, not %d", status, code);
    // Nobody has the pipe open any more.
    close(blocked[1]);
    char byte;
    HOLDS(read(blocked[0], &byte, 1) == 0, "a descriptor of an ended process is open");
    close(blocked[0]);
    count(1);
}

const struct family process_families[] = {
    { "children", children_round },
    { "orphans", orphans_round },
    { "stops", stops_round },
    { "ends-beside-threads", endings_round },
    { NULL, NULL },
};
