// signalfd: it is about the signals of whoever uses it, not of who made it.
#include "../state.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>

static int fd;

static long reads(void)
{
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) < 0 ? -errno : (long)info.ssi_signo;
}

static long polls(void)
{
    struct pollfd one = { fd, POLLIN, 0 };
    poll(&one, 1, -1);
    return one.revents;
}

static long selects(void)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    return select(fd + 1, &set, NULL, NULL, NULL);
}

static long waits(void)
{
    int set = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN };
    REQUIRE(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
    return epoll_wait(set, &event, 1, -1);
}

static void in_child(const char *name, long (*use)(void))
{
    pid_t child = check_fork();
    if (child == 0)
        _exit((int)use());
    check_waits(child);
    kill(child, SIGUSR1);
    CHECK_STATUS(name, check_wait(child));
}

static void *idle(void *_)
{
    (void)_;
    for (;;)
        pause();
    return NULL;
}

int main(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    REQUIRE(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    fd = signalfd(-1, &set, SFD_CLOEXEC);
    in_child("read in a child", reads);
    in_child("poll in a child", polls);
    in_child("select in a child", selects);
    in_child("epoll in a child", waits);
    struct pollfd one = { fd, POLLIN, 0 };
    CHECK("nothing here", poll(&one, 1, 0));
    pid_t child = check_fork();
    if (child == 0) {
        raise(SIGUSR1);
        CHECK("in a child", poll(&one, 1, 0));
        _exit(0);
    }
    check_wait(child);
    kill(getpid(), SIGUSR1);
    child = check_fork();
    if (child == 0) {
        CHECK("the parent's signals", poll(&one, 1, 0));
        _exit(0);
    }
    check_wait(child);
    CHECK("own signals", poll(&one, 1, 0));
    CHECK("read", reads());
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, idle, NULL) == 0 && pthread_kill(thread, SIGUSR1) == 0);
    CHECK("another thread's signals", poll(&one, 1, 0));
    return 0;
}
