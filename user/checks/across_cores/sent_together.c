// Two threads send into one inbox, or one sends while the other ends that: no more comes than fits, and nothing behind the end.
#include "together.h"
#include <sys/ioctl.h>
#include <sys/socket.h>

#define ROUNDS 3000
// As much as Linux lets wait at most, whatever it counts beside the bytes.
#define MOST 212992

static int ends[2];
static char piece[4096];
static int sent[2], ended;
static long overfull, refused, wrong;

static int send_piece(int fd)
{
    return send(fd, piece, sizeof piece, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof piece;
}

// Room for one piece more.
static void fill(void)
{
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    while (send_piece(ends[0]))
        ;
    REQUIRE(recv(ends[1], piece, sizeof piece, MSG_WAITALL) == sizeof piece);
}

static void send_one(void)
{
    sent[0] = send_piece(ends[0]);
}

static void send_another(void)
{
    sent[1] = send_piece(ends[0]);
}

static void look_how_much(void)
{
    int waiting;
    REQUIRE(ioctl(ends[1], FIONREAD, &waiting) == 0);
    overfull += waiting > MOST;
    refused += !sent[0] && !sent[1];
    close(ends[0]);
    close(ends[1]);
}

static int kind;

static void make_pair(void)
{
    REQUIRE(socketpair(AF_UNIX, kind, 0, ends) == 0);
}

static void shut_down_and_read(void)
{
    char byte;
    shutdown(ends[0], SHUT_WR);
    while (recv(ends[1], piece, sizeof piece, 0) > 0)
        ;
    ended = recv(ends[1], &byte, 1, MSG_DONTWAIT) == 0;
}

static void look_behind_end(void)
{
    char byte;
    wrong += !ended || recv(ends[1], &byte, 1, MSG_DONTWAIT) != 0;
    close(ends[0]);
    close(ends[1]);
}

// Whoever reads no more is sent no more, from when that is said.
static void stop_reading(void)
{
    REQUIRE(shutdown(ends[1], SHUT_RD) == 0);
    REQUIRE(ioctl(ends[1], FIONREAD, &ended) == 0);
}

static void look_what_came(void)
{
    int waiting;
    REQUIRE(ioctl(ends[1], FIONREAD, &waiting) == 0);
    wrong += waiting != ended || waiting != (sent[0] ? sizeof piece : 0);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    together(ROUNDS, fill, send_one, send_another, look_how_much);
    CHECK("overfull", overfull);
    CHECK("refused", refused);
    kind = SOCK_STREAM;
    together(4 * ROUNDS, make_pair, send_one, shut_down_and_read, look_behind_end);
    CHECK("behind-the-end-of-a-stream", wrong);
    wrong = 0;
    kind = SOCK_SEQPACKET;
    together(4 * ROUNDS, make_pair, send_one, shut_down_and_read, look_behind_end);
    CHECK("behind-the-end-of-packets", wrong);
    wrong = 0;
    kind = SOCK_STREAM;
    together(4 * ROUNDS, make_pair, send_one, stop_reading, look_what_came);
    CHECK("sent-to-who-does-not-read", wrong);
    return 0;
}
