// A process that may have no more descriptors: calls that make one fail with EMFILE, and have done nothing.
#include "../check.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

static int limit_to(int count)
{
    struct rlimit limit;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = count;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

int main(void)
{
    REQUIRE(syscall(SYS_close_range, 3, ~0U, 0) == 0);
    check_write_file("kept", "content");
    REQUIRE(mkfifo("fifo", 0600) == 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "listener" };
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(listener, (void *)&address, sizeof address) == 0 && listen(listener, 4) == 0);
    REQUIRE(connect(client, (void *)&address, sizeof address) == 0);
    int pair[2], carried[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && pipe(carried) == 0);
    char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'r';
    struct iovec vector = { &byte, 1 };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control,
                              .msg_controllen = sizeof control };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) };
    memcpy(CMSG_DATA(header), &carried[0], sizeof(int));
    REQUIRE(sendmsg(pair[0], &message, 0) == 1);

    int highest = dup(0);
    REQUIRE(limit_to(highest + 1) == 0);
    CHECK("dup", dup(0));
    CHECK("open", open("kept", O_RDONLY));
    CHECK("truncate", open("kept", O_WRONLY | O_TRUNC));
    CHECK("create", open("new", O_RDWR | O_CREAT, 0600));
    CHECK("exclusive", open("new", O_RDWR | O_CREAT | O_EXCL, 0600));
    CHECK("temporary", open(".", O_RDWR | O_TMPFILE, 0600));
    CHECK("path", open("kept", O_PATH));
    CHECK("missing", open("missing", O_RDONLY));
    CHECK("fifo-not-waited-for", open("fifo", O_RDONLY));
    CHECK("accept", accept(listener, NULL, NULL));
    int out[2] = { -7, -7 };
    CHECK("pipe", pipe(out));
    CHECK("socket", socket(AF_UNIX, SOCK_STREAM, 0));
    CHECK("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, out));
    CHECK("eventfd", eventfd(0, 0));
    CHECK("timerfd", timerfd_create(CLOCK_MONOTONIC, 0));
    sigset_t none;
    sigemptyset(&none);
    CHECK("signalfd", signalfd(-1, &none, 0));
    CHECK("epoll", epoll_create1(0));
    CHECK("memfd", memfd_create("m", 0));
    CHECK("duplicate-from", fcntl(0, F_DUPFD, 0));
    CHECK_TRUE("numbers-untouched", out[0] == -7 && out[1] == -7);
    message.msg_controllen = sizeof control;
    CHECK("receive", recvmsg(pair[1], &message, 0));
    CHECK("receive-flags", message.msg_flags & MSG_CTRUNC);
    CHECK("receive-control", message.msg_controllen);

    REQUIRE(close(highest) == 0);
    // One is free, two are needed: the one stays free.
    CHECK("pipe-with-one", pipe(out));
    CHECK("socketpair-with-one", socketpair(AF_UNIX, SOCK_STREAM, 0, out));
    CHECK("pipe-bad-address", syscall(SYS_pipe2, BAD_POINTER, 0));
    CHECK_TRUE("still-free", dup(0) == highest);
    REQUIRE(close(highest) == 0 && limit_to(highest + 8) == 0);
    CHECK("pipe-to-nowhere", syscall(SYS_pipe2, BAD_POINTER, 0));
    CHECK("socketpair-to-nowhere", syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, BAD_POINTER));
    CHECK_TRUE("none-leaked", dup(0) == highest);
    REQUIRE(close(highest) == 0);

    CHECK_STR("kept", check_read_file("kept"));
    CHECK("new-not-made", access("new", F_OK));
    int flags = fcntl(listener, F_GETFL);
    REQUIRE(fcntl(listener, F_SETFL, flags | O_NONBLOCK) == 0);
    int accepted = accept(listener, NULL, NULL);
    CHECK_TRUE("accepted-afterwards", accepted == highest);
    CHECK("talks", write(client, "x", 1));
    CHECK("heard", read(accepted, &byte, 1));
    return 0;
}
