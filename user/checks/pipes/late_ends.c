// FIFOs: who waits at one end is told that the other came and went, also where it was still being opened, or there was none, when the wait began.
#include "../state.h"
#include <poll.h>
#include <sys/epoll.h>

static char big[70000];

static pid_t opener(int flags)
{
    pid_t pid = check_fork();
    if (pid == 0) {
        int fd = open("fifo", flags);
        REQUIRE(fd >= 0);
        close(fd);
        _exit(0);
    }
    return check_waits(pid);
}

static void reads(void)
{
    int fd = open("fifo", O_RDONLY);
    _exit((int)read(fd, big, 9));
}

static void writes(void)
{
    int fd = open("fifo", O_WRONLY);
    while (write(fd, big, sizeof big) > 0)
        ;
    _exit(errno);
}

static void polls(void)
{
    struct pollfd one = { open("fifo", O_RDONLY), POLLIN, 0 };
    poll(&one, 1, -1);
    _exit(one.revents);
}

static void polls_first(void)
{
    struct pollfd one = { open("fifo", O_RDONLY | O_NONBLOCK), POLLIN, 0 };
    poll(&one, 1, -1);
    _exit(one.revents);
}

static void waits_for_event(int flags)
{
    int fd = open("fifo", O_RDONLY | O_NONBLOCK), set = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN | flags };
    REQUIRE(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0 && epoll_wait(set, &event, 1, -1) == 1);
    _exit((int)event.events);
}

static void level(void) { waits_for_event(0); }
static void edge(void) { waits_for_event(EPOLLET); }

enum { ROUNDS = 20 };

// The other end is being opened when this one comes.
static void meet(const char *name, int flags, void (*wait)(void))
{
    int status = -1;
    for (int i = 0; i < ROUNDS; i++) {
        pid_t other = opener(flags), own = check_fork();
        if (own == 0)
            wait();
        int now = check_wait(own);
        REQUIRE(i == 0 || now == status);
        status = now;
        REQUIRE(check_wait(other) == 0);
    }
    CHECK_STATUS(name, status);
}

// This end waits when the other comes.
static void come_later(const char *name, int flags, void (*wait)(void))
{
    int status = -1;
    for (int i = 0; i < ROUNDS; i++) {
        pid_t own = check_fork();
        if (own == 0)
            wait();
        check_waits(own);
        close(open("fifo", flags));
        int now = check_wait(own);
        REQUIRE(i == 0 || now == status);
        status = now;
    }
    CHECK_STATUS(name, status);
}

static void on_signal(int number) { (void)number; }

// What waits in open(2) goes on waiting when the FIFO has lost its name.
static void unlinked(const char *name, int flags, int restarts)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = restarts ? SA_RESTART : 0 };
    sigaction(SIGUSR1, &action, NULL);
    pid_t own = check_fork();
    if (own == 0) {
        int fd = open("fifo", flags);
        _exit(fd < 0 ? errno : 0);
    }
    check_waits(own);
    REQUIRE(unlink("fifo") == 0);
    kill(own, SIGUSR1);
    int status = check_wait(own);
    check_line("%s: %s\n", name, check_errno_name(WEXITSTATUS(status)));
    REQUIRE(mkfifo("fifo", 0600) == 0);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    REQUIRE(mkfifo("fifo", 0600) == 0);
    meet("read", O_WRONLY, reads);
    meet("write", O_RDONLY, writes);
    meet("poll", O_WRONLY, polls);
    come_later("poll before there is a writer", O_WRONLY, polls_first);
    come_later("poll before there is one that does not wait", O_WRONLY | O_NONBLOCK, polls_first);
    come_later("event before there is a writer", O_WRONLY, level);
    come_later("edge before there is a writer", O_WRONLY, edge);
    unlinked("read end of what is unlinked, interrupted", O_RDONLY, 0);
    unlinked("write end", O_WRONLY, 0);
    unlinked("read end, restarted", O_RDONLY, 1);
    unlinked("write end, restarted", O_WRONLY, 1);
    return 0;
}
