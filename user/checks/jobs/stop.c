// Stopping and continuing, and the parent's view of it.
#include "../check.h"

static volatile sig_atomic_t children, continued;

static void on_child(int number)
{
    children += number == SIGCHLD;
}

static void on_continue(int number)
{
    continued += number == SIGCONT;
}

// Waits for signals that may still be on their way, then tells how many came.
static int children_after(int expected)
{
    while (children < expected)
        check_sleep_ms(1);
    return children;
}

// A child that counts in shared steps: it writes a byte for each byte it reads.
static pid_t echo(int in, int out)
{
    pid_t pid = check_fork();
    if (pid == 0) {
        char c;
        while (read(in, &c, 1) == 1)
            if (write(out, &c, 1) != 1)
                break;
        _exit(0);
    }
    return pid;
}

int main(void)
{
    int to[2], from[2], status;
    char c;
    REQUIRE(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_NONBLOCK) == 0);
    pid_t pid = echo(to[0], from[1]);
    for (int number = 0; number < 4; number++) {
        static const int stops[] = { SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU };
        // In an orphaned process group only SIGSTOP stops; make sure that ours is not one: the child's
        // parent (this process) is in the same session but another group.
        setpgid(pid, pid);
        REQUIRE(kill(pid, stops[number]) == 0);
        REQUIRE(waitpid(pid, &status, WUNTRACED) == pid);
        CHECK_STATUS("stop", status);
        REQUIRE(write(to[1], "x", 1) == 1);
        check_sleep_ms(20);
        CHECK("nothing-while-stopped", read(from[0], &c, 1));
        REQUIRE(kill(pid, SIGCONT) == 0);
        REQUIRE(waitpid(pid, &status, WCONTINUED) == pid);
        CHECK_STATUS("cont", status);
        while (read(from[0], &c, 1) != 1)
            check_sleep_ms(1);
        check_line("goes-on\n");
    }
    // A stopped process is killed at once, other signals wait for its continuation.
    REQUIRE(kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid);
    kill(pid, SIGTERM);
    check_sleep_ms(20);
    CHECK("term-waits", waitpid(pid, &status, WNOHANG));
    kill(pid, SIGCONT);
    CHECK_STATUS("term-after-continue", check_wait(pid));
    pid = echo(to[0], from[1]);
    REQUIRE(kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid);
    kill(pid, SIGKILL);
    CHECK_STATUS("killed-while-stopped", check_wait(pid));
    // SIGCHLD comes for stop and continue, unless SA_NOCLDSTOP.
    struct sigaction action = { .sa_handler = on_child };
    REQUIRE(sigaction(SIGCHLD, &action, NULL) == 0);
    pid = echo(to[0], from[1]);
    kill(pid, SIGSTOP);
    while (waitpid(pid, &status, WUNTRACED) != pid)
        ;
    CHECK("told-of-stop", children_after(1));
    kill(pid, SIGCONT);
    while (waitpid(pid, &status, WCONTINUED) != pid)
        ;
    CHECK("told-of-continue", children_after(2));
    action.sa_flags = SA_NOCLDSTOP;
    REQUIRE(sigaction(SIGCHLD, &action, NULL) == 0);
    kill(pid, SIGSTOP);
    REQUIRE(waitpid(pid, &status, WUNTRACED) == pid);
    CHECK("not-told-of-stop", children);
    kill(pid, SIGKILL);
    check_wait(pid);
    CHECK("told-of-end", children_after(3));
    // SIGCONT continues even where it is caught, and the handler runs afterwards.
    signal(SIGCHLD, SIG_DFL);
    pid = check_fork();
    if (pid == 0) {
        signal(SIGCONT, on_continue);
        raise(SIGSTOP);
        _exit(continued + 30);
    }
    REQUIRE(waitpid(pid, &status, WUNTRACED) == pid);
    kill(pid, SIGCONT);
    CHECK_STATUS("handler-ran", check_wait(pid));
    // A pending stop is discarded by SIGCONT and the other way round.
    sigset_t both, pending;
    sigemptyset(&both);
    sigaddset(&both, SIGTSTP);
    sigaddset(&both, SIGCONT);
    sigprocmask(SIG_BLOCK, &both, NULL);
    signal(SIGCONT, on_continue);
    raise(SIGTSTP);
    sigpending(&pending);
    CHECK("stop-pending", sigismember(&pending, SIGTSTP));
    raise(SIGCONT);
    sigpending(&pending);
    CHECK("stop-discarded", sigismember(&pending, SIGTSTP) * 10 + sigismember(&pending, SIGCONT));
    signal(SIGTSTP, on_continue);
    raise(SIGTSTP);
    sigpending(&pending);
    CHECK("continue-discarded", sigismember(&pending, SIGTSTP) * 10 + sigismember(&pending, SIGCONT));
    // An orphaned group is not stopped by the terminal's signals.
    CHECK_CHILD("orphaned-group", setsid(); sigset_t none; sigemptyset(&none); sigprocmask(SIG_SETMASK, &none, NULL);
                signal(SIGTSTP, SIG_DFL); raise(SIGTSTP); _exit(8));
    return 0;
}
