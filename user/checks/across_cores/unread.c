// What is sent to an end that is closed at the same moment is refused, or its sender is told that it was not read.
#include "together.h"

#include <errno.h>
#include <sys/socket.h>

static int kind, pair[2], told;
static ssize_t sent;
static int reason;

static void make(void)
{
    REQUIRE(socketpair(AF_UNIX, kind, 0, pair) == 0);
}

static void send_one(void)
{
    sent = send(pair[0], "x", 1, MSG_NOSIGNAL);
    reason = errno;
}

static void close_other(void)
{
    close(pair[1]);
}

static void see(void)
{
    char byte;
    ssize_t got = recv(pair[0], &byte, 1, 0);
    told += sent == 1 ? got < 0 && errno == ECONNRESET : reason == EPIPE && got == 0;
    close(pair[0]);
}

int main(void)
{
    kind = SOCK_STREAM;
    together(4000, make, send_one, close_other, see);
    CHECK("told-of-a-stream", told);
    told = 0;
    kind = SOCK_SEQPACKET;
    together(4000, make, send_one, close_other, see);
    CHECK("told-of-packets", told);
    return 0;
}
