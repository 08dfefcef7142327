// Many processes.
#include "many.h"
#include <signal.h>

static pid_t first_child, last_child, group;
static char page[4096];

static pid_t start_child(void)
{
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        char byte;
        close(stage_pipe[1]);
        call3(SYS_read, stage_pipe[0], (long)&byte, 1);
        _exit(0);
    }
    return pid;
}

// Children that end when the stage does, in a process group of their own.
static void make_children(long count)
{
    for (long i = 0; i < count; i++) {
        last_child = start_child();
        if (i == 0)
            first_child = last_child;
        must(setpgid(last_child, first_child), "setpgid");
    }
    group = first_child;
}

static uint64_t fork_in_group(long count)
{
    uint64_t start = ticks();
    for (long i = 0; i < count; i++) {
        long pid = call3(SYS_fork, 0, 0, 0);
        if (pid == 0) {
            call3(SYS_setpgid, 0, group, 0);
            call3(SYS_exit_group, 0, 0, 0);
        }
        must(call4(SYS_wait4, pid, 0, 0, 0), "wait");
    }
    return ticks() - start;
}

static uint64_t wait_for_last(long count) { REPEAT(call4(SYS_wait4, last_child, 0, WNOHANG, 0)); }
static uint64_t wait_for_any(long count) { REPEAT(call4(SYS_wait4, -1, 0, WNOHANG, 0)); }
static uint64_t find_process(long count) { REPEAT(call3(SYS_kill, last_child, 0, 0)); }
static uint64_t signal_group(long count) { REPEAT(call3(SYS_kill, -group, SIGCONT, 0)); }

static uint64_t change_group(long count)
{
    REPEAT(call3(SYS_setpgid, last_child, last_child, 0); call3(SYS_setpgid, last_child, group, 0));
}

static uint64_t read_file(const char *name, long count)
{
    int file = open(name, O_RDONLY);
    must(file, name);
    uint64_t start = ticks();
    for (long i = 0; i < count; i++)
        must(call4(SYS_pread64, file, (long)page, sizeof page, 0), name);
    uint64_t took = ticks() - start;
    close(file);
    return took;
}

static uint64_t read_uptime(long count) { return read_file("/proc/uptime", count); }
static uint64_t read_stat(long count) { return read_file("/proc/stat", count); }

static void start_children(long count)
{
    for (long i = 0; i < count; i++)
        start_child();
}

static uint64_t end_parent(long count) { return ending(start_children, count); }

// From the signal that ends all of a group until all were waited for.
static uint64_t end_children(long count)
{
    make_children(count);
    uint64_t start = ticks();
    call3(SYS_kill, -group, SIGKILL, 0);
    for (long i = 0; i < count; i++)
        must(call4(SYS_wait4, -1, 0, 0, 0), "wait");
    return ticks() - start;
}

const struct row process_rows[] = {
    { "processes-fork", make_children, fork_exit_wait, 5 },
    { "processes-fork-in-group", make_children, fork_in_group, 5 },
    { "processes-wait-one", make_children, wait_for_last, 20 },
    { "processes-wait-any", make_children, wait_for_any, 5 },
    { "processes-find", make_children, find_process, 50 },
    { "processes-setpgid", make_children, change_group, 5 },
    { "processes-uptime", make_children, read_uptime, 5 },
    { "processes-stat", make_children, read_stat, 5 },
    { "processes-kill-group", make_children, signal_group, 1 },
    { "processes-orphaned", NULL, end_parent, 0 },
    { "processes-end", NULL, end_children, 0 },
    { 0 },
};
