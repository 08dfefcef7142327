// A pseudo terminal: line discipline, signals from keys, sessions, window size.
#include "../check.h"
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

static int master;

// What comes out of the master side, with control characters made visible.
static const char *output(void)
{
    static char text[600];
    char raw[256];
    size_t at = 0;
    struct pollfd p = { master, POLLIN, 0 };
    while (poll(&p, 1, 50) == 1 && (p.revents & POLLIN)) {
        ssize_t got = read(master, raw, sizeof raw);
        for (ssize_t i = 0; i < got && at < sizeof text - 4; i++)
            if (raw[i] == '\n')
                at += sprintf(text + at, "\\n");
            else if (raw[i] == '\r')
                at += sprintf(text + at, "\\r");
            else if (raw[i] < ' ')
                at += sprintf(text + at, "\\%o", raw[i]);
            else
                text[at++] = raw[i];
    }
    text[at] = 0;
    return text;
}

static void type(const char *keys)
{
    REQUIRE(write(master, keys, strlen(keys)) == (ssize_t)strlen(keys));
}

int main(void)
{
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    if (master < 0) {
        CHECK("open", -1);
        return 0;
    }
    int unlock = 0, number = -1;
    CHECK("unlock", ioctl(master, TIOCSPTLCK, &unlock));
    REQUIRE(ioctl(master, TIOCGPTN, &number) == 0);
    char name[32], line[64] = { 0 };
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    int slave = open(name, O_RDWR | O_NOCTTY);
    REQUIRE(slave >= 0);
    CHECK("isatty", isatty(slave));
    struct termios t;
    REQUIRE(tcgetattr(slave, &t) == 0);
    CHECK("cooked", (t.c_lflag & (ICANON | ECHO | ISIG)) == (ICANON | ECHO | ISIG));
    CHECK("output-newlines", (t.c_oflag & (OPOST | ONLCR)) == (OPOST | ONLCR));
    CHECK("keys", t.c_cc[VINTR] * 1000000 + t.c_cc[VEOF] * 1000 + t.c_cc[VERASE]);
    REQUIRE(write(slave, "out\n", 4) == 4);
    CHECK_STR("output", output());
    type("abc\177d\r");
    CHECK_STR("echo", output());
    CHECK("line-read", read(slave, line, sizeof line));
    CHECK_TRUE("line", memcmp(line, "abd\n", 4) == 0);
    type("one two\027three\n");
    memset(line, 0, sizeof line);
    CHECK("word-erase", read(slave, line, sizeof line));
    CHECK_TRUE("word-erased", strcmp(line, "one three\n") == 0);
    type("gone\025kept\n");
    memset(line, 0, sizeof line);
    CHECK("line-kill", read(slave, line, sizeof line));
    type("partial\004");
    CHECK("end-of-file-flushes", read(slave, line, sizeof line));
    type("\004");
    CHECK("end-of-file", read(slave, line, sizeof line));
    output();
    type("two\nlines\n");
    CHECK("first-line-only", read(slave, line, sizeof line));
    CHECK("second-line", read(slave, line, sizeof line));
    struct pollfd p = { slave, POLLIN, 0 };
    type("no newline");
    CHECK("incomplete-not-ready", poll(&p, 1, 20));
    type("\n");
    CHECK("complete-ready", poll(&p, 1, -1));
    int bytes = 0;
    CHECK("bytes", ioctl(slave, FIONREAD, &bytes) == 0 ? bytes : -1);
    CHECK("flush", tcflush(slave, TCIFLUSH));
    CHECK("flushed", poll(&p, 1, 0));
    output();
    cfmakeraw(&t);
    CHECK("raw", tcsetattr(slave, TCSANOW, &t));
    type("x\003\r");
    CHECK("raw-read", read(slave, line, sizeof line));
    CHECK("raw-bytes", line[0] * 10000 + line[1] * 100 + line[2]);
    CHECK_STR("raw-no-echo", output());
    t.c_cc[VMIN] = 0;
    t.c_cc[VTIME] = 1;
    tcsetattr(slave, TCSANOW, &t);
    CHECK("timed-read", read(slave, line, sizeof line));
    t.c_lflag |= ICANON | ISIG | ECHO;
    t.c_iflag |= ICRNL;
    t.c_cc[VMIN] = 1;
    t.c_cc[VTIME] = 0;
    tcsetattr(slave, TCSANOW, &t);
    struct winsize size = { 33, 101, 0, 0 };
    CHECK("set-size", ioctl(master, TIOCSWINSZ, &size));
    size = (struct winsize){ 0 };
    CHECK("size", ioctl(slave, TIOCGWINSZ, &size) == 0 ? size.ws_row * 1000 + size.ws_col : -1);
    CHECK("no-controlling-terminal-yet", tcgetpgrp(slave));

    // A session with this terminal: keys become signals for its foreground group.
    pid_t leader = check_fork();
    if (leader == 0) {
        CHECK("setsid", setsid() == getpid());
        CHECK("set-controlling", ioctl(slave, TIOCSCTTY, 0));
        CHECK("open-tty", open("/dev/tty", O_RDWR) >= 0);
        CHECK("session-of-terminal", tcgetsid(slave) == getpid());
        CHECK("foreground", tcgetpgrp(slave) == getpid());
        pid_t job = check_fork();
        if (job == 0) {
            setpgid(0, 0);
            for (;;)
                pause();
        }
        setpgid(job, job);
        CHECK("give-terminal", tcsetpgrp(slave, job));
        CHECK("given", tcgetpgrp(slave) == job);
        int status;
        type("\032");
        REQUIRE(waitpid(job, &status, WUNTRACED) == job);
        CHECK_STATUS("control-z", status);
        kill(job, SIGCONT);
        REQUIRE(waitpid(job, &status, WCONTINUED) == job);
        type("\003");
        CHECK_STATUS("control-c", check_wait(job));
        // From the background the terminal cannot be taken without SIGTTOU, nor be read.
        job = check_fork();
        if (job == 0) {
            setpgid(0, 0);
            _exit(read(slave, line, 1) == 1 ? 0 : 1);
        }
        signal(SIGTTOU, SIG_IGN);
        CHECK("take-back", tcsetpgrp(slave, getpid()));
        setpgid(job, job);
        REQUIRE(waitpid(job, &status, WUNTRACED) == job);
        CHECK_STATUS("background-read", status);
        kill(job, SIGKILL);
        check_wait(job);
        signal(SIGHUP, SIG_DFL);
        _exit(0);
    }
    CHECK_STATUS("leader", check_wait(leader));
    close(slave);
    // With no slave left the master reads an error.
    while (read(master, line, sizeof line) > 0)
        ;
    CHECK("after-last-close", read(master, line, sizeof line));
    // A process whose terminal goes away gets SIGHUP.
    int second = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    unlock = 0;
    REQUIRE(ioctl(second, TIOCSPTLCK, &unlock) == 0 && ioctl(second, TIOCGPTN, &number) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    leader = check_fork();
    if (leader == 0) {
        close(second);
        setsid();
        int terminal = open(name, O_RDWR);
        REQUIRE(tcgetpgrp(terminal) == getpid() && write(fds[1], "r", 1) == 1);
        for (;;)
            pause();
    }
    REQUIRE(read(fds[0], line, 1) == 1);
    close(second);
    CHECK_STATUS("hang-up", check_wait(leader));
    return 0;
}
