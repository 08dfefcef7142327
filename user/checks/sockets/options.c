// Options, credentials and flags of Unix sockets.
#include "../check.h"
#include <sys/ioctl.h>
#include <sys/socket.h>

static void show_credentials(const char *name, const struct ucred *who)
{
    check_line("%s: pid %s, uid %d, gid %d\n", name, who->pid == getpid() ? "own" : who->pid == 0 ? "none" : "other", (int)who->uid, (int)who->gid);
}

static long get(int fd, int option)
{
    int value = -7;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

int main(void)
{
    int fds[2];
    struct ucred who;
    socklen_t len = sizeof who;
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    CHECK("type", get(fds[0], SO_TYPE));
    CHECK("domain", get(fds[0], SO_DOMAIN));
    CHECK("protocol", get(fds[0], SO_PROTOCOL));
    CHECK("error", get(fds[0], SO_ERROR));
    CHECK("listening", get(fds[0], SO_ACCEPTCONN));
    CHECK("passcred", get(fds[0], SO_PASSCRED));
    CHECK("peer", getsockopt(fds[0], SOL_SOCKET, SO_PEERCRED, &who, &len));
    show_credentials("peer-is", &who);
    CHECK("unknown", getsockopt(fds[0], SOL_SOCKET, 9999, &who, &len));
    CHECK("set-unknown", setsockopt(fds[0], SOL_SOCKET, 9999, &len, sizeof len));
    CHECK("other-level", setsockopt(fds[0], 6, 1, &len, sizeof len));
    CHECK("too-short", setsockopt(fds[0], SOL_SOCKET, SO_PASSCRED, &len, 2));
    CHECK("not-a-socket", getsockopt(0, SOL_SOCKET, SO_TYPE, &who, &len));
    len = 2;
    int type = -1;
    CHECK("short-answer", getsockopt(fds[0], SOL_SOCKET, SO_TYPE, &type, &len));
    CHECK("short-length", len);
    len = (socklen_t)-1;
    CHECK("negative-length", getsockopt(fds[0], SOL_SOCKET, SO_TYPE, &type, &len));
    // The sender of a message.
    int on = 1;
    CHECK("set-passcred", setsockopt(fds[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    REQUIRE(write(fds[0], "x", 1) == 1);
    char byte, control[CMSG_SPACE(sizeof(struct ucred))];
    struct iovec piece = { &byte, 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    CHECK("recvmsg", recvmsg(fds[1], &message, 0));
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    CHECK_TRUE("has-credentials", head && head->cmsg_type == SCM_CREDENTIALS);
    memcpy(&who, CMSG_DATA(head), sizeof who);
    show_credentials("sender", &who);
    CHECK_CHILD("child", REQUIRE(setgid(7) == 0 && setuid(1000) == 0); REQUIRE(write(fds[0], "y", 1) == 1));
    message.msg_controllen = sizeof control;
    CHECK("recvmsg-child", recvmsg(fds[1], &message, 0));
    memcpy(&who, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof who);
    show_credentials("child-is", &who);
    CHECK_CHILD("pretend", REQUIRE(setuid(1000) == 0); memcpy(CMSG_DATA(head), &(struct ucred){ getpid(), 0, 0 }, sizeof who);
                message.msg_controllen = sizeof control; CHECK("refused", sendmsg(fds[0], &message, 0)));
    // Bytes that wait.
    REQUIRE(write(fds[0], "12345", 5) == 5);
    int waiting = 0;
    CHECK("waiting", ioctl(fds[1], FIONREAD, &waiting) == 0 ? waiting : -1);
    char text[8];
    CHECK("peek", recv(fds[1], text, 8, MSG_PEEK));
    CHECK("peek-trunc", recv(fds[1], text, 2, MSG_PEEK | MSG_TRUNC));
    CHECK("take", recv(fds[1], text, 8, 0));
    CHECK("out-of-band", send(fds[0], "x", 1, MSG_OOB | MSG_NOSIGNAL) < 2);
    // Kinds and families.
    CHECK("raw", socket(AF_UNIX, SOCK_RAW, 0) >= 0);
    CHECK("rdm", socket(AF_UNIX, SOCK_RDM, 0));
    CHECK("bad-type", socket(AF_UNIX, 77, 0));
    CHECK("bad-protocol", socket(AF_UNIX, SOCK_STREAM, 3));
    CHECK("bad-family", socket(99, SOCK_STREAM, 0));
    int packets[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, packets) == 0);
    CHECK("nonblocking", fcntl(packets[0], F_GETFL));
    CHECK("nothing", read(packets[0], text, 8));
    CHECK("empty-message", send(packets[0], "", 0, 0));
    CHECK("empty-received", recv(packets[1], text, 8, 0));
    CHECK("shutdown-write", shutdown(packets[0], SHUT_WR));
    CHECK("write-after", send(packets[0], "x", 1, MSG_NOSIGNAL));
    CHECK("shutdown-bad", shutdown(packets[0], 7));
    CHECK("shutdown-unconnected", shutdown(socket(AF_UNIX, SOCK_STREAM, 0), SHUT_RD));
    CHECK("read-unconnected", read(socket(AF_UNIX, SOCK_STREAM, 0), text, 8));
    CHECK("write-unconnected", send(socket(AF_UNIX, SOCK_STREAM, 0), text, 8, MSG_NOSIGNAL));
    return 0;
}
