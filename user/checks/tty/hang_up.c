// A master that is closed tells the leader of the session; the foreground group is told when the leader ends.
#include "../check.h"
#include <sys/ioctl.h>
#include <termios.h>

static sigset_t hang_up;

static int told(void)
{
    sigset_t pending;
    REQUIRE(sigpending(&pending) == 0);
    return sigismember(&pending, SIGHUP);
}

// Its signals are blocked, and come when it asks for them.
static void foreground(int from_leader, int to_check)
{
    char word;
    REQUIRE(read(from_leader, &word, 1) == 1);
    char answer = told() ? 'y' : 'n';
    REQUIRE(write(to_check, &answer, 1) == 1);
    // The leader ends: its end of the pipe, too.
    REQUIRE(read(from_leader, &word, 1) == 0);
    int number = 0;
    REQUIRE(sigwait(&hang_up, &number) == 0);
    answer = number == SIGHUP ? 'y' : 'n';
    REQUIRE(write(to_check, &answer, 1) == 1);
    _exit(0);
}

static void leader(int master, const char *name, int to_check)
{
    REQUIRE(setsid() == getpid());
    int slave = open(name, O_RDWR);
    REQUIRE(slave >= 0 && tcgetsid(slave) == getpid());
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    pid_t child = check_fork();
    if (child == 0) {
        close(pipe_ends[1]);
        close(master);
        foreground(pipe_ends[0], to_check);
    }
    REQUIRE(setpgid(child, child) == 0 && tcsetpgrp(slave, child) == 0);
    close(pipe_ends[0]);
    close(master);
    int number = 0;
    CHECK("leader-waits", sigwait(&hang_up, &number));
    CHECK_TRUE("leader-told", number == SIGHUP);
    CHECK_TRUE("leader-told-once", !told());
    CHECK("no-terminal", open("/dev/tty", O_RDWR));
    REQUIRE(write(pipe_ends[1], "?", 1) == 1);
    // It ends when the other has looked.
    check_sleep_ms(50);
    _exit(0);
}

int main(void)
{
    sigemptyset(&hang_up);
    sigaddset(&hang_up, SIGHUP);
    REQUIRE(sigprocmask(SIG_BLOCK, &hang_up, NULL) == 0);
    char name[32];
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), unlocked = 0, number;
    REQUIRE(master >= 0 && ioctl(master, TIOCSPTLCK, &unlocked) == 0 && ioctl(master, TIOCGPTN, &number) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t child = check_fork();
    if (child == 0) {
        close(ends[0]);
        leader(master, name, ends[1]);
    }
    close(master);
    close(ends[1]);
    char answers[2] = { 0 };
    REQUIRE(read(ends[0], &answers[0], 1) == 1);
    CHECK_TRUE("told-while-the-leader-lives", answers[0] == 'y');
    CHECK_STATUS("leader", check_wait(child));
    REQUIRE(read(ends[0], &answers[1], 1) == 1);
    CHECK_TRUE("told-when-the-leader-ends", answers[1] == 'y');
    return 0;
}
