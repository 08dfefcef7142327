// Control groups, for the checks of them.
//
// A system whose control groups of version 2 have no controllers (because they are in use by version 1, or this is a container) cannot say what is right. So each fact has the value that Linux
// gives, as it was seen on Debian's Linux 6.1 and, where that does not have it, is written in Linux's Documentation/admin-guide/cgroup-v2.rst: EXPECT prints what happens where the control groups can be used, and that value where not.
// Ebb must have them.
//
// All happens in a group of the check's own, `top`.
#ifndef EBB_CGROUP_H
#define EBB_CGROUP_H
#include "check.h"
#include <poll.h>
#include <sys/mount.h>

static int usable;
static char top[64];

// Prints a fact: what the string expression gives, or where control groups cannot be used what it should.
#define EXPECT(name, expected, actual) check_line("%s: %s\n", name, usable ? (actual) : (expected))
// As EXPECT, for a file that Linux 6.1 does not have.
#define EXPECT_NEW(file, name, expected, actual) \
    check_line("%s: %s\n", name, usable && (is_ebb() || has(file)) ? (actual) : (expected))
#define EXPECT_SOON(name, condition)                                 \
    do {                                                             \
        int expect_tries = 0;                                        \
        while (usable && !(condition) && ++expect_tries < 1000)      \
            check_sleep_ms(expect_tries < 10 ? 1 : 10);              \
        check_line("%s: %s\n", name, expect_tries < 1000 ? "yes" : "no"); \
    } while (0)
// What is done only where control groups can be used.
#define DO(...)          \
    do {                 \
        if (usable) {    \
            __VA_ARGS__; \
        }                \
    } while (0)

static inline const char *outcome(long result)
{
    return result < 0 ? check_errno_name(errno) : "ok";
}

// A path below the check's own group.
static inline const char *at(const char *path)
{
    static char paths[4][256];
    static int next;
    char *full = paths[next++ % 4];
    snprintf(full, sizeof paths[0], "%s/%s", top, path);
    return full;
}

static inline int has(const char *path)
{
    return access(at(path), F_OK) == 0;
}

static inline const char *make(const char *path)
{
    return outcome(mkdir(at(path), 0755));
}

static inline const char *take(const char *path)
{
    return outcome(rmdir(at(path)));
}

static inline const char *put(const char *path, const char *text)
{
    int fd = open(at(path), O_WRONLY);
    if (fd < 0)
        return check_errno_name(errno);
    ssize_t length = write(fd, text, strlen(text));
    int error = errno;
    close(fd);
    errno = error;
    return length == (ssize_t)strlen(text) ? "ok" : length < 0 ? check_errno_name(error) : "short";
}

static inline const char *put_pid(const char *path, pid_t pid)
{
    char text[16];
    snprintf(text, sizeof text, "%d\n", pid);
    return put(path, text);
}

// The text of a file, with a space for each newline but the last.
static inline const char *get(const char *path)
{
    static char texts[4][4096];
    static int next;
    char *copy = texts[next++ % 4];
    snprintf(copy, sizeof texts[0], "%s", check_read_file(at(path)));
    for (char *letter = copy; *letter; letter++)
        if (*letter == '\n')
            *letter = ' ';
    return copy;
}

// The number behind a key of a file with keys; -1 if there is none.
static inline long field(const char *path, const char *key)
{
    char text[4096];
    snprintf(text, sizeof text, " %s ", get(path));
    char pattern[64];
    snprintf(pattern, sizeof pattern, " %s ", key);
    char *found = strstr(text, pattern);
    return found ? strtol(found + strlen(pattern), NULL, 10) : -1;
}

// A child that waits for signals, in the group.
static inline pid_t sleeper(const char *group)
{
    if (!usable)
        return -1;
    pid_t child = check_fork();
    if (child == 0)
        for (;;)
            pause();
    char file[128];
    snprintf(file, sizeof file, "%s/cgroup.procs", group);
    REQUIRE(strcmp(put_pid(file, child), "ok") == 0);
    return child;
}

static inline void end(pid_t child)
{
    if (child > 0) {
        kill(child, SIGKILL);
        check_wait(child);
    }
}

// A process in a group is ready, says so by a pipe, with what the other one is to know, and waits to be killed; with a child that shares all with it, if it `forks`.
static inline void tell_and_stay(const int pipe[2], const void *own, size_t size, int forks)
{
    if (!forks || fork() != 0)
        REQUIRE(write(pipe[1], own, size) == (ssize_t)size);
    for (;;)
        pause();
}

static inline void hear(const int pipe[2], void *told, size_t size)
{
    REQUIRE(read(pipe[0], told, size) == (ssize_t)size);
    close(pipe[0]);
    close(pipe[1]);
}

// Kills all who are in a group, and waits for those of them that are the caller's.
static inline void kill_all(const char *group)
{
    char file[64];
    snprintf(file, sizeof file, "%s/cgroup.kill", group);
    REQUIRE(strcmp(put(file, "1"), "ok") == 0);
    int status;
    snprintf(file, sizeof file, "%s/cgroup.events", group);
    while (field(file, "populated") != 0) {
        waitpid(-1, &status, WNOHANG);
        check_sleep_ms(1);
    }
    // The last of them may not be a zombie yet.
    for (int i = 0, pid; i < 1000 && (pid = waitpid(-1, &status, WNOHANG)) >= 0; i += pid == 0)
        if (pid == 0)
            check_sleep_ms(1);
}

static inline long clone_into(int fd, uint64_t flags, size_t size)
{
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
    } arguments = { .flags = flags, .exit_signal = SIGCHLD, .cgroup = (uint64_t)(int64_t)fd };
    return syscall(SYS_clone3, &arguments, size);
}
#define INTO_CGROUP 0x200000000ULL

static inline void cgroup_begin(void)
{
    static char mount_point[] = "cg";
    REQUIRE(mkdir(mount_point, 0755) == 0);
    int is_mounted = mount("none", mount_point, "cgroup2", 0, NULL) == 0;
    char *controllers = is_mounted ? strdup(check_read_file("cg/cgroup.controllers")) : "";
    char list[512];
    snprintf(list, sizeof list, " %s ", controllers);
    usable = is_mounted && strstr(list, " cpu ") && strstr(list, " pids ");
    snprintf(top, sizeof top, "cg/ebb-check-%d", getpid());
    if (usable) {
        char name[64];
        snprintf(name, sizeof name, "%s", top);
        snprintf(top, sizeof top, "cg");
        usable = strcmp(put("cgroup.subtree_control", "+cpu +pids"), "ok") == 0;
        snprintf(top, sizeof top, "%s", name);
        usable = usable && mkdir(top, 0755) == 0;
    }
    CHECK_TRUE("control groups are there", usable || !is_ebb());
}

// All controllers that Ebb has below the check's own group, reclaim among them. Only where that is usable.
static inline void cgroup_give_all(void)
{
    char name[64];
    snprintf(name, sizeof name, "%s", top);
    snprintf(top, sizeof top, "cg");
    REQUIRE(strcmp(put("cgroup.subtree_control", "+memory +reclaim"), "ok") == 0);
    snprintf(top, sizeof top, "%s", name);
    REQUIRE(strcmp(put("cgroup.subtree_control", "+pids +memory +cpu +reclaim"), "ok") == 0);
}

static inline void cgroup_end(void)
{
    if (usable)
        CHECK_SOON("the group is removed", rmdir(top) == 0);
    else
        CHECK_TRUE("the group is removed", 1);
    umount2("cg", MNT_DETACH);
}
#endif
