// For the checks of the controller memory.
//
// Where it cannot be used EXPECT prints what Linux 6.1 shows and its Documentation/admin-guide/cgroup-v2.rst says. What Ebb does not charge (objects of the kernel) Linux does: so amounts are compared
// with room for that.
#ifndef EBB_CGROUP_MEMORY_H
#define EBB_CGROUP_MEMORY_H
#include "cgroup.h"
#include <sys/mman.h>

#define PAGE 4096L
#define MIB (1024 * 1024L)

static inline void memory_begin(void)
{
    cgroup_begin();
    if (usable && !has("cgroup.controllers"))
        usable = 0;
    if (usable) {
        // The controllers of the root were given by cgroup_begin, but for this one.
        int fd = open("cg/cgroup.subtree_control", O_WRONLY);
        int given = fd >= 0 && write(fd, "+memory", 7) == 7;
        close(fd);
        if (!given) {
            rmdir(top);
            usable = 0;
        }
    }
    CHECK_TRUE("the controller is there", usable || !is_ebb());
    EXPECT("give", "ok", put("cgroup.subtree_control", "+memory"));
}

static inline long number_of(const char *path)
{
    return strtol(get(path), NULL, 10);
}

// Runs in a child that is in the group; its exit status, or 1000 and the signal that ended it. -1 where groups cannot be used.
static inline int run_in(const char *group, void (*body)(void))
{
    if (!usable)
        return -1;
    pid_t child = check_fork();
    if (child == 0) {
        char file[128];
        snprintf(file, sizeof file, "%s/cgroup.procs", group);
        REQUIRE(strcmp(put(file, "0"), "ok") == 0);
        body();
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Maps so many bytes and writes to each page.
static inline char *touch(size_t bytes)
{
    char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(start != MAP_FAILED);
    for (size_t at = 0; at < bytes; at += PAGE)
        start[at] = 1;
    return start;
}

static inline int is_about(long number, long expected)
{
    return number >= expected - MIB / 2 && number <= expected + 2 * MIB;
}
#endif
