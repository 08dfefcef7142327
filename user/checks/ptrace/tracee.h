// What the checks of ptrace(2) share.
#include "../state.h"
#include <elf.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

// The C library's own has a prototype that not all requests fit, and changes what PEEK gives.
static inline long trace(long request, pid_t pid, unsigned long address, unsigned long data)
{
    return syscall(SYS_ptrace, request, pid, address, data);
}

// A child that is traced by its parent, and stands for a SIGSTOP of its own before it runs the block.
#define TRACED_CHILD(pid, ...)                              \
    do {                                                    \
        pid = check_fork();                                 \
        if (pid == 0) {                                     \
            REQUIRE(trace(PTRACE_TRACEME, 0, 0, 0) == 0);   \
            /* The C library's raise(3) makes calls behind that. */ \
            syscall(SYS_kill, getpid(), SIGSTOP);           \
            __VA_ARGS__;                                    \
            _exit(0);                                       \
        }                                                   \
        int traced_status;                                  \
        REQUIRE(waitpid(pid, &traced_status, 0) == pid);    \
        REQUIRE(WIFSTOPPED(traced_status));                 \
    } while (0)

// Prints what wait(2) says of a thread: how it stands, or how it ended.
static inline int next_stop(const char *name, pid_t pid)
{
    int status;
    REQUIRE(waitpid(pid, &status, __WALL) == pid);
    if (WIFSTOPPED(status))
        check_line("%s: stands, signal %d%s, event %d\n", name, WSTOPSIG(status) & 0x7f, WSTOPSIG(status) & 0x80 ? " of a call" : "",
                   status >> 16);
    else
        check_status(name, status);
    return status;
}

static inline struct user_regs_struct registers(pid_t pid)
{
    struct user_regs_struct all;
    memset(&all, 0, sizeof all);
    REQUIRE(trace(PTRACE_GETREGS, pid, 0, (long)&all) == 0);
    return all;
}

static inline long tracer_of(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    const char *text = check_read_file(path), *line = text ? strstr(text, "TracerPid:") : NULL;
    return line ? strtol(line + strlen("TracerPid:"), NULL, 10) : -1;
}
