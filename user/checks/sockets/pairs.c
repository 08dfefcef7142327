// socketpair: the local sockets that programs use as two-way pipes.
#include "../check.h"
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(void)
{
    int fds[2];
    char text[32] = { 0 };
    CHECK("socketpair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    CHECK("cloexec", fcntl(fds[0], F_GETFD));
    CHECK("write", write(fds[0], "ping", 4));
    CHECK("read", read(fds[1], text, sizeof text));
    CHECK("send", send(fds[1], "pong", 4, 0));
    CHECK("peek", recv(fds[0], text, sizeof text, MSG_PEEK));
    CHECK("receive", recv(fds[0], text, 2, 0));
    CHECK("rest", recv(fds[0], text, sizeof text, 0));
    CHECK("nothing", recv(fds[0], text, sizeof text, MSG_DONTWAIT));
    struct pollfd p = { fds[0], POLLIN | POLLOUT, 0 };
    CHECK("poll", poll(&p, 1, 0) == 1 ? p.revents : -1);
    CHECK("shutdown", shutdown(fds[1], SHUT_WR));
    CHECK("end", read(fds[0], text, sizeof text));
    CHECK("other-way-open", write(fds[0], "x", 1));
    close(fds[1]);
    CHECK("broken", send(fds[0], "y", 1, MSG_NOSIGNAL));
    CHECK("seek", lseek(fds[0], 0, SEEK_SET));
    struct stat st;
    CHECK("is-socket", fstat(fds[0], &st) == 0 ? S_ISSOCK(st.st_mode) : -1);
    CHECK("not-a-socket", send(1, "z", 1, 0));
    CHECK("bad-family", socketpair(99, SOCK_STREAM, 0, fds));
    CHECK("bad-type", socketpair(AF_UNIX, 9, 0, fds));
    // Packets keep their bounds.
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0);
    CHECK("first-packet", write(fds[0], "one", 3));
    CHECK("second-packet", write(fds[0], "second", 6));
    CHECK("first-whole", read(fds[1], text, sizeof text));
    CHECK("second-cut", read(fds[1], text, 2));
    CHECK("rest-is-lost", recv(fds[1], text, sizeof text, MSG_DONTWAIT));
    struct iovec pieces[] = { { "ab", 2 }, { "cde", 3 } };
    struct msghdr message = { .msg_iov = pieces, .msg_iovlen = 2 };
    CHECK("sendmsg", sendmsg(fds[0], &message, 0));
    struct iovec parts[] = { { text, 1 }, { text + 8, 2 } };
    message = (struct msghdr){ .msg_iov = parts, .msg_iovlen = 2 };
    CHECK("recvmsg", recvmsg(fds[1], &message, 0));
    CHECK("truncated", (message.msg_flags & MSG_TRUNC) != 0);
    CHECK_TRUE("scattered", text[0] == 'a' && text[8] == 'b' && text[9] == 'c');
    CHECK_CHILD("child-writes", REQUIRE(write(fds[0], "from child", 10) == 10));
    CHECK("parent-reads", read(fds[1], text, sizeof text));
    return 0;
}
