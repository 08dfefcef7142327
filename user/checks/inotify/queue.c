// inotify(7): reading events, waiting for them, and being told of them.
#include "inotify.h"
#include <sys/epoll.h>
#include <sys/socket.h>

static int waiting(int fd)
{
    int bytes = -1;
    REQUIRE(ioctl(fd, FIONREAD, &bytes) == 0);
    return bytes;
}

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    REQUIRE(fd >= 0 && close(fd) == 0);
}

int main(void)
{
    REQUIRE(mkdir("d", 0755) == 0);
    touch("file");
    start_watching();
    watch("d", IN_CREATE | IN_DELETE);
    CHECK("nothing waits", waiting(watcher));
    touch("d/a");
    CHECK("a short name waits", waiting(watcher));
    touch("d/name-of-16-bytes");
    CHECK("a longer one, too", waiting(watcher));
    char buffer[4096] __attribute__((aligned(8)));
    CHECK("read of 0 bytes", read(watcher, buffer, 0));
    CHECK("read of too few bytes", read(watcher, buffer, 16));
    CHECK("read of one", read(watcher, buffer, 32));
    CHECK("read of the next, short", read(watcher, buffer, 47));
    CHECK("what waits", waiting(watcher));
    CHECK("read of the next", read(watcher, buffer, sizeof buffer));
    CHECK("read of nothing", read(watcher, buffer, sizeof buffer));
    CHECK("pread", pread(watcher, buffer, sizeof buffer, 0));
    CHECK("bad buffer, nothing there", read(watcher, BAD_POINTER, 4096));

    // Equal neighbours are one.
    int wd = watch("file", IN_MODIFY | IN_ATTRIB);
    int fd = open("file", O_RDWR);
    for (int i = 0; i < 10; i++)
        REQUIRE(write(fd, "x", 1) == 1);
    REQUIRE(fchmod(fd, 0600) == 0 && fchmod(fd, 0644) == 0);
    for (int i = 0; i < 10; i++)
        REQUIRE(write(fd, "x", 1) == 1);
    CHECK("merged", waiting(watcher));
    show("merged");
    watch("file", IN_MODIFY);
    REQUIRE(write(fd, "x", 1) == 1);
    touch("d/b");
    REQUIRE(write(fd, "x", 1) == 1);
    REQUIRE(unlink("d/b") == 0);
    show("not neighbours");
    REQUIRE(inotify_rm_watch(watcher, wd) == 0);
    show("removed");

    // Waiting.
    struct pollfd ready = { watcher, POLLIN | POLLOUT | POLLRDNORM, 0 };
    CHECK("poll of nothing", poll(&ready, 1, 0));
    touch("d/c");
    CHECK("poll", poll(&ready, 1, 0));
    check_line("ready: %#x\n", ready.revents);
    int set = epoll_create1(0);
    struct epoll_event interest = { EPOLLIN | EPOLLET, { .u32 = 7 } }, told;
    REQUIRE(epoll_ctl(set, EPOLL_CTL_ADD, watcher, &interest) == 0);
    CHECK("epoll", epoll_wait(set, &told, 1, 0));
    CHECK("the same edge", epoll_wait(set, &told, 1, 0));
    touch("d/d");
    CHECK("another edge", epoll_wait(set, &told, 1, 0));
    show("read");
    CHECK("nothing left", epoll_wait(set, &told, 1, 0));

    REQUIRE(fcntl(watcher, F_SETFL, 0) == 0);
    CHECK_CHILD("a child that makes a file later", {
        pid_t pid = check_fork();
        if (pid == 0) {
            check_sleep_ms(50);
            touch("d/late");
            _exit(0);
        }
        CHECK("read that waits", read(watcher, buffer, sizeof buffer));
        show_event((void *)buffer);
        check_wait(pid);
    });
    REQUIRE(fcntl(watcher, F_SETFL, O_NONBLOCK) == 0);

    // Signals.
    sigset_t io;
    sigemptyset(&io);
    sigaddset(&io, SIGIO);
    sigprocmask(SIG_BLOCK, &io, NULL);
    REQUIRE(fcntl(watcher, F_SETOWN, getpid()) == 0);
    CHECK("O_ASYNC", fcntl(watcher, F_SETFL, O_NONBLOCK | O_ASYNC));
    touch("d/signal");
    siginfo_t info;
    CHECK_TRUE("SIGIO", sigwaitinfo(&io, &info) == SIGIO);
    show("with a signal");
    CHECK("without", fcntl(watcher, F_SETFL, O_NONBLOCK));
    REQUIRE(unlink("d/signal") == 0);
    struct timespec none = { 0, 0 };
    CHECK("no signal", sigtimedwait(&io, &info, &none));
    show("without a signal");

    // The same queue, by others.
    int copy = dup(watcher);
    touch("d/e");
    CHECK("read by a copy", read(copy, buffer, sizeof buffer));
    CHECK("read after that", read(watcher, buffer, sizeof buffer));
    CHECK_CHILD("a child watches", {
        REQUIRE(inotify_add_watch(watcher, ".", IN_CREATE) > 0);
    });
    touch("new");
    CHECK("for its parent", read(watcher, buffer, sizeof buffer));
    CHECK_CHILD("a child reads", {
        touch("d/f");
        CHECK("read", read(copy, buffer, sizeof buffer));
    });
    // An instance that is lost with a message.
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
    memcpy(CMSG_DATA(&control.header), &watcher, sizeof(int));
    struct msghdr message = { .msg_iov = &(struct iovec){ "x", 1 }, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    REQUIRE(sendmsg(ends[0], &message, 0) == 1);
    REQUIRE(close(watcher) == 0 && close(copy) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
    touch("d/g");
    CHECK("an instance that was lost", unlink("d/g"));
    return 0;
}
