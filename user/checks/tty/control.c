// A terminal that controls a session: its foreground group, the signals of its keys, what the background may do, window sizes, and
// what happens when it goes away.
#include "../check.h"
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

static volatile sig_atomic_t seen[65];

static void note(int number)
{
    seen[number]++;
}

static void handle(int number, int flags)
{
    struct sigaction action = { .sa_handler = note, .sa_flags = flags };
    REQUIRE(sigaction(number, &action, NULL) == 0);
}

// Waits until a signal has come and tells how often it did.
static int came(int number)
{
    while (!seen[number])
        check_sleep_ms(5);
    int count = seen[number];
    seen[number] = 0;
    return count;
}

static int open_master(char *name, size_t size)
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    REQUIRE(master >= 0);
    int unlocked = 0, number;
    REQUIRE(ioctl(master, TIOCSPTLCK, &unlocked) == 0 && ioctl(master, TIOCGPTN, &number) == 0);
    snprintf(name, size, "/dev/pts/%d", number);
    return master;
}

// In a session of its own, whose terminal is the slave.
static void session(int master, const char *name)
{
    REQUIRE(setsid() == getpid());
    int slave = open(name, O_RDWR | O_NOCTTY);
    REQUIRE(slave >= 0);
    CHECK("not-by-noctty", open("/dev/tty", O_RDWR));
    CHECK("take", ioctl(slave, TIOCSCTTY, 0));
    CHECK("take-again", ioctl(slave, TIOCSCTTY, 0));
    int tty = open("/dev/tty", O_RDWR);
    CHECK_TRUE("has-terminal", tty >= 0);
    CHECK_TRUE("session", tcgetsid(tty) == getpid());
    CHECK_TRUE("foreground", tcgetpgrp(tty) == getpgrp());
    int group = 0;
    CHECK("master-knows", ioctl(master, TIOCGPGRP, &group));
    CHECK_TRUE("master-group", group == getpgrp());
    CHECK("bad-group", tcsetpgrp(tty, -5));
    // No process has such a number: it is above all values of pid_max.
    CHECK("missing-group", tcsetpgrp(tty, 1 << 30));

    // Keys.
    handle(SIGINT, 0);
    handle(SIGQUIT, 0);
    REQUIRE(write(master, "lost\003", 5) == 5);
    CHECK("interrupt", came(SIGINT));
    REQUIRE(write(master, "\034", 1) == 1);
    CHECK("quit", came(SIGQUIT));
    struct pollfd ready = { .fd = tty, .events = POLLIN };
    CHECK("typed-is-lost", poll(&ready, 1, 0));
    struct termios modes;
    REQUIRE(tcgetattr(tty, &modes) == 0);
    modes.c_lflag &= ~ISIG;
    CHECK("no-signals", tcsetattr(tty, TCSANOW, &modes));
    REQUIRE(write(master, "\003\n", 2) == 2);
    char text[16];
    CHECK("as-byte", read(tty, text, sizeof text));
    modes.c_lflag |= ISIG;
    REQUIRE(tcsetattr(tty, TCSANOW, &modes) == 0);

    // Window size.
    handle(SIGWINCH, 0);
    struct winsize size = { .ws_row = 50, .ws_col = 132 };
    CHECK("resize", ioctl(master, TIOCSWINSZ, &size));
    CHECK("told", came(SIGWINCH));
    CHECK("same-size", ioctl(master, TIOCSWINSZ, &size));
    check_sleep_ms(20);
    CHECK("not-told-again", seen[SIGWINCH]);

    // A group in the background.
    pid_t child = check_fork();
    if (child == 0) {
        setpgid(0, 0);
        signal(SIGINT, SIG_DFL);
        read(tty, text, 1);
        _exit(text[0] == 'x' ? 0 : 1);
    }
    setpgid(child, child);
    int status;
    REQUIRE(waitpid(child, &status, WUNTRACED) == child);
    CHECK_STATUS("background-read", status);
    CHECK("bring-it-forward", tcsetpgrp(tty, child));
    REQUIRE(kill(-child, SIGCONT) == 0);
    REQUIRE(write(master, "x\n", 2) == 2);
    REQUIRE(waitpid(child, &status, WUNTRACED) == child);
    CHECK_STATUS("foreground-read", status);
    // This process is in the background now.
    handle(SIGTTOU, 0);
    CHECK("change-from-background", tcsetpgrp(tty, getpgrp()));
    CHECK_TRUE("told-by-signal", seen[SIGTTOU] > 0);
    signal(SIGTTOU, SIG_IGN);
    CHECK("change-when-ignored", tcsetpgrp(tty, getpgrp()));
    signal(SIGTTOU, SIG_DFL);

    // Output from the background.
    for (int stop = 0; stop < 2; stop++) {
        modes.c_lflag = stop ? modes.c_lflag | TOSTOP : modes.c_lflag & ~TOSTOP;
        REQUIRE(tcsetattr(tty, TCSANOW, &modes) == 0);
        child = check_fork();
        if (child == 0) {
            setpgid(0, 0);
            _exit(write(tty, "o", 1) == 1 ? 0 : 1);
        }
        setpgid(child, child);
        REQUIRE(waitpid(child, &status, WUNTRACED) == child);
        CHECK_STATUS(stop ? "background-write-stops" : "background-write", status);
        if (WIFSTOPPED(status)) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
        }
    }
    modes.c_lflag &= ~TOSTOP;
    REQUIRE(tcsetattr(tty, TCSANOW, &modes) == 0);

    // A background reader that ignores the signal.
    CHECK_CHILD("ignoring-reader", {
        setpgid(0, 0);
        signal(SIGTTIN, SIG_IGN);
        _exit(read(tty, text, 1) == -1 && errno == EIO ? 0 : 1);
    });

    // Another session cannot take it.
    CHECK_CHILD("another-session", {
        setsid();
        CHECK("steal", ioctl(slave, TIOCSCTTY, 0));
        CHECK("not-mine", tcgetpgrp(slave));
    });

    // Giving it up.
    handle(SIGHUP, 0);
    handle(SIGCONT, 0);
    CHECK("give-up", ioctl(tty, TIOCNOTTY));
    CHECK("hang-up-told", came(SIGHUP));
    CHECK("continue-told", came(SIGCONT));
    CHECK("gone", open("/dev/tty", O_RDWR));
    CHECK("give-up-again", ioctl(slave, TIOCNOTTY));

    // Opening takes it again, and the end of the master is the end of the terminal.
    int again = open(name, O_RDWR);
    REQUIRE(again >= 0);
    CHECK_TRUE("taken-by-open", tcgetsid(again) == getpid());
    REQUIRE(write(again, "kept", 4) == 4);
    close(master);
    CHECK("master-closed", came(SIGHUP));
    CHECK("read-end", read(again, text, sizeof text));
    CHECK("write-end", write(again, "x", 1));
    ready.fd = again;
    ready.events = POLLIN | POLLOUT;
    CHECK("poll-end", poll(&ready, 1, 0));
    CHECK_TRUE("poll-hang-up", (ready.revents & (POLLHUP | POLLERR)) != 0);
    CHECK("open-end", open(name, O_RDWR | O_NOCTTY));
}

int main(void)
{
    char name[32];
    int master = open_master(name, sizeof name);
    pid_t child = check_fork();
    if (child == 0) {
        session(master, name);
        _exit(0);
    }
    close(master);
    CHECK_STATUS("session", check_wait(child));

    // The master is told when the last slave is closed.
    master = open_master(name, sizeof name);
    int slave = open(name, O_RDWR | O_NOCTTY);
    REQUIRE(slave >= 0 && write(slave, "last", 4) == 4);
    close(slave);
    char text[16];
    struct pollfd ready = { .fd = master, .events = POLLIN };
    CHECK("poll", poll(&ready, 1, -1));
    CHECK("events", ready.revents);
    CHECK("last-words", read(master, text, sizeof text));
    CHECK("then", read(master, text, sizeof text));
    slave = open(name, O_RDWR | O_NOCTTY);
    CHECK_TRUE("opens-again", slave >= 0);
    ready.revents = 0;
    CHECK("quiet-again", poll(&ready, 1, 0));
    return 0;
}
