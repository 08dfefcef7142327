// Descriptors in messages (SCM_RIGHTS): what arrives, what does not fit, and what nobody can receive any more.
#include "../check.h"
#include <sys/resource.h>
#include <sys/socket.h>

#define ROOM 300

struct message {
    struct msghdr header;
    struct iovec piece;
    char byte;
    union {
        char bytes[CMSG_SPACE(ROOM * sizeof(int))];
        struct cmsghdr align;
    } control;
};

static void with_control(struct message *message, size_t control)
{
    memset(message, 0, sizeof *message);
    message->byte = 'x';
    message->piece = (struct iovec){ &message->byte, 1 };
    message->header = (struct msghdr){ .msg_iov = &message->piece, .msg_iovlen = 1, .msg_control = message->control.bytes, .msg_controllen = control };
}

// By the bare system call: a C library may take a copy of the control data, for which it has little room.
static long send_fds(int socket, const int *fds, int count)
{
    static struct message message;
    with_control(&message, CMSG_SPACE(count * sizeof(int)));
    struct cmsghdr *head = CMSG_FIRSTHDR(&message.header);
    *head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(head), fds, count * sizeof(int));
    return syscall(SYS_sendmsg, socket, &message.header, MSG_NOSIGNAL);
}

// Receives descriptors with room for so many; how many came, and the flags of the message.
static int receive_fds(int socket, int *fds, int room, int flags, int *told)
{
    static struct message message;
    with_control(&message, CMSG_LEN(room * sizeof(int)));
    REQUIRE(syscall(SYS_recvmsg, socket, &message.header, flags) == 1);
    *told = message.header.msg_flags;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message.header);
    if (!head || head->cmsg_type != SCM_RIGHTS)
        return 0;
    int count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(head), count * sizeof(int));
    return count;
}

static void pair(int fds[2])
{
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
}

// Sockets that are in flight to each other and nowhere else, many times over: more than a process or a machine may have open.
static void cycles(void)
{
    long made = 0;
    for (; made < 20000; made++) {
        int a[2], b[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, a) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, b) != 0)
            break;
        int to_a[] = { b[0], b[1] }, to_b[] = { a[0], a[1] };
        // Each end waits in the other's queue; every fourth is in its own as well.
        if (send_fds(a[0], to_a, 2) != 1 || send_fds(b[0], to_b, 2) != 1 || (made % 4 == 0 && send_fds(a[1], to_b, 2) != 1))
            break;
        close(a[0]);
        close(a[1]);
        close(b[0]);
        close(b[1]);
    }
    CHECK("cycles", made);
    // What can still be received is not taken for garbage.
    int outer[2], inner[2];
    pair(outer);
    pair(inner);
    int both[] = { inner[0], outer[1] };
    REQUIRE(write(inner[1], "kept", 4) == 4);
    REQUIRE(send_fds(outer[0], both, 2) == 1);
    close(inner[0]);
    int other[2];
    pair(other);
    close(other[0]);
    close(other[1]);
    int got[2], flags;
    char text[8] = { 0 };
    CHECK("kept-in-queue", receive_fds(outer[1], got, 2, 0, &flags));
    CHECK("kept-bytes", read(got[0], text, 8));
    CHECK_STR("kept-text", text);
}

// A chain of sockets, each in the queue of the next, whose last one is closed.
static void chain(void)
{
    int last[2];
    pair(last);
    int links = 0;
    for (; links < 300; links++) {
        int next[2];
        pair(next);
        if (send_fds(next[0], last, 2) != 1)
            break;
        close(last[0]);
        close(last[1]);
        memcpy(last, next, sizeof last);
    }
    CHECK("chain", links);
    close(last[0]);
    close(last[1]);
}

int main(void)
{
    int fds[2], pipe_fds[2], got[ROOM], flags;
    char text[8] = { 0 };
    pair(fds);
    REQUIRE(pipe(pipe_fds) == 0);
    CHECK("send", send_fds(fds[0], pipe_fds, 2));
    close(pipe_fds[0]);
    CHECK("receive", receive_fds(fds[1], got, ROOM, 0, &flags));
    CHECK("flags", flags);
    CHECK("write", write(got[1], "through", 7));
    CHECK("read", read(got[0], text, 8));
    CHECK("cloexec-not", fcntl(got[0], F_GETFD));
    close(got[0]);
    close(got[1]);
    CHECK("send-cloexec", send_fds(fds[0], pipe_fds + 1, 1));
    CHECK("receive-cloexec", receive_fds(fds[1], got, ROOM, MSG_CMSG_CLOEXEC, &flags));
    CHECK("cloexec", fcntl(got[0], F_GETFD));
    close(got[0]);
    // Too little room: the rest is closed.
    int three[] = { pipe_fds[1], pipe_fds[1], pipe_fds[1] };
    CHECK("send-three", send_fds(fds[0], three, 3));
    CHECK("room-for-two", receive_fds(fds[1], got, 2, 0, &flags));
    CHECK("truncated", flags & MSG_CTRUNC);
    close(got[0]);
    close(got[1]);
    CHECK("send-unwanted", send_fds(fds[0], three, 3));
    CHECK("plain-read", read(fds[1], text, 8));
    // Peeking gives copies.
    CHECK("send-peek", send_fds(fds[0], three, 1));
    CHECK("peek", receive_fds(fds[1], got, ROOM, MSG_PEEK, &flags));
    close(got[0]);
    CHECK("after-peek", receive_fds(fds[1], got, ROOM, 0, &flags));
    close(got[0]);
    // Bytes with descriptors are not joined with others.
    REQUIRE(write(fds[0], "a", 1) == 1);
    REQUIRE(send_fds(fds[0], three, 1) == 1);
    REQUIRE(write(fds[0], "b", 1) == 1);
    CHECK("up-to-rights", read(fds[1], text, 8));
    CHECK("behind", read(fds[1], text, 8));
    // Limits.
    static int many[ROOM];
    for (int i = 0; i < ROOM; i++)
        many[i] = pipe_fds[1];
    CHECK("most", send_fds(fds[0], many, 253));
    CHECK("most-received", receive_fds(fds[1], got, ROOM, 0, &flags));
    for (int i = 0; i < 253; i++)
        close(got[i]);
    CHECK("too-many", send_fds(fds[0], many, 254));
    int closed[] = { 999 };
    CHECK("closed", send_fds(fds[0], closed, 1));
    // At the limit of descriptors nothing is lost but what does not fit.
    struct rlimit limit, old;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &old) == 0);
    REQUIRE(send_fds(fds[0], three, 2) == 1);
    int highest = dup(0);
    close(highest);
    limit = (struct rlimit){ highest + 1, old.rlim_max };
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK("at-limit", receive_fds(fds[1], got, ROOM, 0, &flags));
    CHECK("at-limit-truncated", flags & MSG_CTRUNC);
    close(got[0]);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &old) == 0);
    // A closed socket lets go of what is in flight to it: the pipe's reader sees the end.
    REQUIRE(pipe(got) == 0);
    REQUIRE(send_fds(fds[0], got + 1, 1) == 1);
    close(got[1]);
    close(fds[1]);
    CHECK("end-of-pipe", read(got[0], text, 8));
    CHECK("to-closed", send_fds(fds[0], three, 1));
    cycles();
    chain();
    return 0;
}
