// wait4 and waitid: selection, options, what is left behind.
#include "../check.h"
#include <sys/resource.h>

static pid_t child_that_exits(int code)
{
    pid_t pid = check_fork();
    if (pid == 0)
        _exit(code);
    return pid;
}

static pid_t child_that_waits(void)
{
    pid_t pid = check_fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    return pid;
}

int main(void)
{
    int status = -1;
    siginfo_t info;
    CHECK("no-children", waitpid(-1, &status, 0));
    CHECK("not-a-child", waitpid(1, &status, 0));
    pid_t pid = child_that_waits();
    CHECK("nohang-alive", waitpid(pid, &status, WNOHANG));
    CHECK("bad-options", waitpid(pid, &status, 0x40));
    kill(pid, SIGTERM);
    CHECK_TRUE("any", waitpid(-1, &status, 0) == pid);
    CHECK_STATUS("terminated", status);
    CHECK("reaped", waitpid(pid, &status, 0));
    CHECK("reaped-gone", kill(pid, 0));
    // A zombie still can be signalled (to no effect) until it is collected.
    pid = child_that_exits(3);
    memset(&info, 0, sizeof info);
    CHECK("waitid-nowait", waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
    CHECK("code", info.si_code == CLD_EXITED);
    CHECK("signal", info.si_signo == SIGCHLD);
    CHECK("status", info.si_status);
    CHECK_TRUE("pid", info.si_pid == pid);
    CHECK("uid", info.si_uid);
    CHECK("zombie-signal", kill(pid, SIGKILL));
    CHECK_TRUE("still-there", waitpid(pid, &status, 0) == pid);
    CHECK_STATUS("exited", status);
    // Killed, stopped, continued through waitid.
    pid = child_that_waits();
    kill(pid, SIGSTOP);
    REQUIRE(waitid(P_PID, pid, &info, WSTOPPED) == 0);
    CHECK("stopped", info.si_code == CLD_STOPPED ? info.si_status : -2);
    info.si_pid = 99;
    CHECK("stopped-once", waitid(P_PID, pid, &info, WSTOPPED | WNOHANG));
    CHECK("nothing-is-zero", info.si_pid);
    kill(pid, SIGCONT);
    REQUIRE(waitid(P_PID, pid, &info, WCONTINUED) == 0);
    CHECK("continued", info.si_code == CLD_CONTINUED ? info.si_status : -2);
    kill(pid, SIGSTOP);
    CHECK_TRUE("untraced", waitpid(pid, &status, WUNTRACED) == pid);
    CHECK_STATUS("untraced-status", status);
    kill(pid, SIGCONT);
    CHECK_TRUE("wcontinued", waitpid(pid, &status, WCONTINUED) == pid);
    CHECK_STATUS("wcontinued-status", status);
    kill(pid, SIGKILL);
    REQUIRE(waitid(P_PID, pid, &info, WEXITED) == 0);
    CHECK("killed", info.si_code == CLD_KILLED ? info.si_status : -2);
    CHECK("waitid-no-child", waitid(P_PID, pid, &info, WEXITED));
    CHECK("waitid-no-options", waitid(P_ALL, 0, &info, 0));
    CHECK("waitid-bad-type", waitid(77, 0, &info, WEXITED));
    // By process group.
    pid = child_that_exits(6);
    CHECK_TRUE("own-group", waitpid(0, &status, 0) == pid);
    pid_t other = check_fork();
    if (other == 0) {
        setpgid(0, 0);
        _exit(7);
    }
    setpgid(other, other);
    CHECK("own-group-without-it", waitpid(0, &status, WNOHANG));
    CHECK_TRUE("other-group", waitpid(-other, &status, 0) == other);
    CHECK_STATUS("other-status", status);
    // With SIGCHLD ignored children leave no zombie, and wait blocks until all are gone.
    signal(SIGCHLD, SIG_IGN);
    child_that_exits(1);
    child_that_exits(2);
    CHECK("ignored", waitpid(-1, &status, 0));
    signal(SIGCHLD, SIG_DFL);
    // wait4 fills in the child's usage.
    pid = check_fork();
    if (pid == 0) {
        while (clock() < CLOCKS_PER_SEC / 30)
            ;
        _exit(0);
    }
    struct rusage usage;
    memset(&usage, 0, sizeof usage);
    REQUIRE(wait4(pid, &status, 0, &usage) == pid);
    CHECK_TRUE("usage-counts", usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_sec * 1000000 +
                                       usage.ru_stime.tv_usec >
                                   1000);
    return 0;
}
