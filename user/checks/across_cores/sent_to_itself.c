// A socket that only a message in its own inbox owns is thrown away with what else was sent to it, whatever else is closed or sent at the same moment.
#include "together.h"

#include <poll.h>
#include <sys/socket.h>

#define PAIRS 4

struct half {
    int pair[PAIRS][2];
    // Its writing end is only in the inboxes.
    int pipe[2];
};

static struct half halves[2];
static int thrown_away;

static void send_fds(int socket, const int *fds, int count)
{
    char byte = 0;
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr head;
    } control = { 0 };
    struct iovec piece = { &byte, 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
    control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
    REQUIRE(sendmsg(socket, &message, 0) == 1);
}

static void prepare(struct half *half)
{
    REQUIRE(pipe(half->pipe) == 0);
    for (int i = 0; i < PAIRS; i++) {
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, half->pair[i]) == 0);
        // Half of them are in two messages: one in their own inbox, and one that is thrown away unread.
        if (i % 2)
            send_fds(half->pair[i][0], &half->pair[i][0], 1);
        send_fds(half->pair[i][1], (int[]){ half->pair[i][0], half->pipe[1] }, 2);
    }
    close(half->pipe[1]);
}

static void prepare_both(void)
{
    prepare(&halves[0]);
    prepare(&halves[1]);
}

static void close_half(struct half *half)
{
    for (int i = 0; i < PAIRS; i++) {
        int last = i / 2 % 2;
        close(half->pair[i][!last]);
        close(half->pair[i][last]);
    }
}

static void close_first(void)
{
    close_half(&halves[0]);
}

static void close_second(void)
{
    close_half(&halves[1]);
}

static void wait_for_end(void)
{
    for (int i = 0; i < 2; i++) {
        struct pollfd end = { halves[i].pipe[0], POLLIN, 0 };
        // Linux looks when some socket is closed, but not while it looks.
        while (poll(&end, 1, 1) == 0)
            close(socket(AF_UNIX, SOCK_DGRAM, 0));
        thrown_away += end.revents == POLLHUP;
        close(halves[i].pipe[0]);
    }
}

int main(void)
{
    together(300, prepare_both, close_first, close_second, wait_for_end);
    CHECK("thrown-away", thrown_away);
    return 0;
}
