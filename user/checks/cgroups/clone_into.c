// clone3 with CLONE_INTO_CGROUP.
#include "../cgroup.h"
#include <sched.h>

// What the child finds, and how the call went.
static const char *into(int fd, uint64_t flags, size_t size, const char *expected)
{
    long pid = clone_into(fd, flags, size);
    if (pid == 0)
        _exit(strstr(check_read_file("/proc/self/cgroup"), expected) ? 0 : 1);
    if (pid < 0)
        return check_errno_name(errno);
    return check_wait(pid) == 0 ? "ok" : "elsewhere";
}

// A thread in another group than its process: it is refused before anything of it runs.
static long thread_into(int fd)
{
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
    } arguments = { .flags = INTO_CGROUP | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, .cgroup = fd };
    return syscall(SYS_clone3, &arguments, sizeof arguments);
}

int main(void)
{
    cgroup_begin();
    EXPECT("give", "ok", put("cgroup.subtree_control", "+pids"));
    EXPECT("a", "ok", make("a"));
    int fd = -1, place = -1, file = -1, other = open(".", O_RDONLY | O_DIRECTORY);
    DO(fd = open(at("a"), O_RDONLY | O_DIRECTORY));
    DO(place = open(at("a"), O_PATH | O_DIRECTORY));
    DO(file = open(at("a/cgroup.procs"), O_RDONLY));
    EXPECT("into", "ok", into(fd, INTO_CGROUP, 88, "/a"));
    EXPECT("by a place", "ok", into(place, INTO_CGROUP, 88, "/a"));
    EXPECT("maker waits", "ok", into(fd, INTO_CGROUP | CLONE_VFORK, 88, "/a"));
    EXPECT("by a file", "EBADF", into(file, INTO_CGROUP, 88, "/a"));
    EXPECT("by another directory", "EBADF", into(other, INTO_CGROUP, 88, "/a"));
    EXPECT("no descriptor", "EBADF", into(1000, INTO_CGROUP, 88, "/a"));
    EXPECT("negative", "EINVAL", into(-1, INTO_CGROUP, 88, "/a"));
    EXPECT("too short for it", "EINVAL", into(fd, INTO_CGROUP, 80, "/a"));
    EXPECT("not asked for", "ok", into(1000, 0, 88, "0::/"));
    EXPECT("thread elsewhere", "EOPNOTSUPP", outcome(thread_into(fd)));
    EXPECT_SOON("empty", field("a/cgroup.events", "populated") == 0);

    // Where processes may not be.
    pid_t child = -1;
    EXPECT("b", "ok", make("a/b"));
    EXPECT("a gives", "ok", put("a/cgroup.subtree_control", "+pids"));
    DO(child = sleeper("a/b"));
    EXPECT("into one that gives", "EBUSY", into(fd, INTO_CGROUP, 88, "/a"));
    DO(end(child));
    EXPECT_SOON("nobody in b", field("a/cgroup.events", "populated") == 0);
    DO(child = sleeper("a"));
    int below = -1;
    DO(below = open(at("a/b"), O_RDONLY | O_DIRECTORY));
    EXPECT("into one below processes", "EOPNOTSUPP", into(below, INTO_CGROUP, 88, "/b"));
    DO(end(child));
    EXPECT_SOON("nobody in a", field("a/cgroup.events", "populated") == 0);

    // Who may.
    DO(child = check_fork());
    if (child == 0) {
        REQUIRE(setresuid(1000, 1000, 1000) == 0);
        EXPECT("as somebody else", "EACCES", into(below, INTO_CGROUP, 88, "/b"));
        _exit(0);
    }
    if (!usable)
        check_line("as somebody else: EACCES\n");
    DO(check_wait(child));

    EXPECT("remove b", "ok", take("a/b"));
    EXPECT("into a removed one", "ENOENT", into(below, INTO_CGROUP, 88, "/b"));
    DO(close(below); close(fd); close(place); close(file));
    EXPECT("remove a", "ok", take("a"));
    cgroup_end();
    return 0;
}
