// vfork, clone and clone3: shared memory, shared tables, exit signals.
#include "../check.h"
#include <sched.h>

static volatile int value;

static int set_value(void *argument)
{
    value = (int)(long)argument;
    return 12;
}

static int close_descriptor(void *argument)
{
    close((int)(long)argument);
    return 0;
}

static int change_directory(void *argument)
{
    return chdir(argument) == 0 ? 0 : errno;
}

struct clone3 {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};

int main(void)
{
    static char stack[65536] __attribute__((aligned(16)));
    char *top = stack + sizeof stack;
    int status;
    pid_t pid = vfork();
    if (pid == 0) {
        value = 5;
        _exit(3);
    }
    CHECK("vfork-shares-memory", value);
    CHECK_STATUS("vfork", check_wait(pid));
    pid = clone(set_value, top, SIGCHLD, (void *)9);
    CHECK_STATUS("clone", check_wait(pid));
    CHECK("clone-copies-memory", value);
    pid = clone(set_value, top, CLONE_VM | SIGCHLD, (void *)9);
    CHECK_STATUS("clone-vm", check_wait(pid));
    CHECK("clone-vm-shares", value);
    int fd = open("/dev/null", O_RDWR);
    pid = clone(close_descriptor, top, SIGCHLD, (void *)(long)fd);
    check_wait(pid);
    CHECK("own-table", fcntl(fd, F_GETFD));
    pid = clone(close_descriptor, top, CLONE_FILES | SIGCHLD, (void *)(long)fd);
    check_wait(pid);
    CHECK("shared-table", fcntl(fd, F_GETFD));
    REQUIRE(mkdir("d", 0755) == 0);
    check_write_file("marker", "");
    pid = clone(change_directory, top, SIGCHLD, "d");
    CHECK_STATUS("own-directory", check_wait(pid));
    CHECK("still-here", access("marker", F_OK));
    pid = clone(change_directory, top, CLONE_FS | SIGCHLD, "d");
    CHECK_STATUS("shared-directory", check_wait(pid));
    CHECK("moved-along", access("marker", F_OK));
    // A child that sends no SIGCHLD is only waited for with __WALL or __WCLONE.
    pid = clone(set_value, top, 0, (void *)1);
    CHECK("silent-child", waitpid(pid, &status, 0));
    CHECK("silent-child-all", waitpid(pid, &status, __WALL) == pid);
    CHECK("sighand-without-vm", clone(set_value, top, CLONE_SIGHAND | SIGCHLD, NULL));
    CHECK("thread-without-sighand", clone(set_value, top, CLONE_THREAD | CLONE_VM | SIGCHLD, NULL));
    pid_t parent_tid = 0, child_tid = -1;
    pid = clone(set_value, top, CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, (void *)2, &parent_tid, NULL, &child_tid);
    check_wait(pid);
    CHECK("parent-tid", parent_tid == pid);
    CHECK("child-tid-cleared", child_tid);
    struct clone3 arguments = { .exit_signal = SIGCHLD };
    pid = syscall(435, &arguments, sizeof arguments);
    if (pid == 0)
        _exit(21);
    if (pid < 0 && errno == ENOSYS) {
        // Some containers hide clone3; then fork must do.
        pid = fork();
        if (pid == 0)
            _exit(21);
    }
    CHECK_STATUS("clone3", check_wait(pid));
    return 0;
}
