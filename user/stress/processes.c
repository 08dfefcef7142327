// Processes that come and go: children of many threads, execution and the end of processes whose other threads run.
#include "stress.h"

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

enum ending { EXECUTES, EXITS, IS_KILLED };

static enum ending ending;
static int code, blocked[2];

// One of them ends the process; the others compute, call and block.
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
        threads(4, be_busy);
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
    { "ends-beside-threads", endings_round },
    { NULL, NULL },
};
