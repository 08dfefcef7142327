// Process groups and sessions.
#include "../check.h"

static pid_t sleeper(void)
{
    pid_t pid = check_fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    return pid;
}

int main(int argc, char **argv)
{
    if (argc > 1 && argv[1])
        return pause();
    // In a child that leads nothing, so that all calls are allowed as documented.
    CHECK_CHILD("all",
        pid_t me = getpid(); pid_t parent_group = getpgrp();
        CHECK("inherited", getpgid(getppid()) == parent_group);
        CHECK("own-group", setpgid(0, 0)); CHECK("leader", getpgrp() == me);
        pid_t child = sleeper();
        CHECK("child-in-group", getpgid(child) == me);
        CHECK("move-child", setpgid(child, child)); CHECK("moved", getpgid(child) == child);
        pid_t second = sleeper();
        CHECK("join", setpgid(second, child)); CHECK("joined", getpgid(second) == child);
        CHECK("negative", setpgid(child, -1)); CHECK("no-such-process", setpgid(0x3fffffff, 0));
        CHECK("no-such-group", setpgid(second, 0x3ffffff0)); CHECK("getpgid-missing", getpgid(0x3fffffff));
        CHECK("group-signal", kill(-child, SIGTERM));
        CHECK_STATUS("first", check_wait(child)); CHECK_STATUS("second", check_wait(second));
        CHECK("empty-group-signal", kill(-child, SIGTERM));
        CHECK("setsid-as-leader", setsid()); CHECK("same-session", getsid(0) == getsid(getppid())));
    CHECK_CHILD("session",
        CHECK("setsid", setsid() == getpid()); CHECK("session-id", getsid(0) == getpid()); CHECK("group-id", getpgrp() == getpid());
        CHECK("again", setsid()); CHECK("setpgid-of-leader", setpgid(0, 0));
        CHECK("no-terminal", open("/dev/tty", O_RDWR));
        pid_t child = sleeper(); CHECK("child-session", getsid(child) == getpid());
        CHECK("parent-group", setpgid(child, getpgid(getppid())));
        kill(child, SIGKILL); check_wait(child));
    // A child that has run another program cannot be moved any more.
    int fds[2];
    REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
    pid_t child = check_fork();
    if (child == 0) {
        execl("/proc/self/exe", "sleeper", "x", NULL);
        _exit(errno);
    }
    close(fds[1]);
    char c;
    // The pipe's end is closed by the exec.
    CHECK("exec-done", read(fds[0], &c, 1));
    CHECK("move-after-exec", setpgid(child, child));
    kill(child, SIGKILL);
    check_wait(child);
    // kill(0) reaches the own group only.
    CHECK_CHILD("own-group-only", REQUIRE(setpgid(0, 0) == 0); signal(SIGTERM, SIG_IGN); pid_t other = sleeper();
                signal(SIGUSR1, SIG_IGN); kill(0, SIGUSR1); CHECK_STATUS("other", check_wait(other)));
    return 0;
}
