// How connections end: shutdown(2), close(2) with and without unread data, SO_LINGER, and what each end is told.
#include "../check.h"
#include "../inet.h"

static int ends[2];

static void end_pair(void)
{
    close(ends[0]);
    close(ends[1]);
}

static void show_error(const char *name, int fd)
{
    INET(name, get_option(fd, SOL_SOCKET, SO_ERROR));
}

int main(void)
{
    char text[64];
    signal(SIGPIPE, SIG_IGN);

    connected4(ends);
    INET("shut-write", shutdown(ends[0], SHUT_WR));
    show_poll("shut-write-own", ends[0], 0);
    show_poll("shut-write-peer", ends[1], POLLRDHUP);
    INET("shut-write-send", send(ends[0], "x", 1, 0));
    INET("shut-write-peer-reads", read(ends[1], text, sizeof text));
    INET("shut-write-peer-sends", send(ends[1], "abc", 3, 0));
    INET("shut-write-reads", read(ends[0], text, sizeof text));
    INET("shut-write-again", shutdown(ends[0], SHUT_WR));
    INET("shut-both", shutdown(ends[1], SHUT_WR));
    show_poll("shut-both-own", ends[0], POLLHUP);
    show_poll("shut-both-peer", ends[1], POLLHUP);
    INET("shut-both-reads", read(ends[0], text, sizeof text));
    show_peer("shut-both-name", ends[0]);
    INET("shut-both-sends", send(ends[0], "x", 1, 0));
    INET("shut-after-end", shutdown(ends[0], SHUT_RD));
    end_pair();

    connected4(ends);
    REQUIRE(send(ends[1], "abc", 3, 0) == 3);
    INET("shut-read", shutdown(ends[0], SHUT_RD));
    show_poll("shut-read-own", ends[0], 0);
    show_poll("shut-read-peer", ends[1], 0);
    INET("shut-read-reads", read(ends[0], text, 2));
    INET("shut-read-rest", read(ends[0], text, sizeof text));
    INET("shut-read-end", read(ends[0], text, sizeof text));
    INET("shut-read-peer-sends", send(ends[1], "d", 1, 0));
    INET("shut-read-reads-that", read(ends[0], text, sizeof text));
    INET("shut-read-end-again", read(ends[0], text, sizeof text));
    INET("shut-bad", shutdown(ends[0], 3));
    end_pair();

    // Closed with nothing left: the end, then what is sent is answered by a reset.
    connected4(ends);
    REQUIRE(send(ends[1], "abc", 3, 0) == 3);
    close(ends[1]);
    show_poll("closed-poll", ends[0], POLLRDHUP);
    INET("closed-reads", read(ends[0], text, sizeof text));
    INET("closed-end", read(ends[0], text, sizeof text));
    INET("closed-first-send", send(ends[0], "x", 1, 0));
    show_poll("closed-then-poll", ends[0], POLLHUP);
    INET("closed-second-send", send(ends[0], "x", 1, 0));
    INET("closed-third-send", send(ends[0], "x", 1, 0));
    INET("closed-end-again", read(ends[0], text, sizeof text));
    show_error("closed-error", ends[0]);
    close(ends[0]);

    // The error of a reset after the end is told once by the option.
    connected4(ends);
    close(ends[1]);
    show_poll("closed2-poll", ends[0], POLLRDHUP);
    REQUIRE(send(ends[0], "x", 1, 0) == 1);
    show_poll("closed2-then", ends[0], POLLHUP);
    show_error("closed2-error", ends[0]);
    show_error("closed2-error-again", ends[0]);
    close(ends[0]);

    // Closed with something unread: a reset.
    connected4(ends);
    REQUIRE(send(ends[0], "unread", 6, 0) == 6);
    REQUIRE(send(ends[1], "left", 4, 0) == 4);
    close(ends[1]);
    show_poll("reset-poll", ends[0], POLLHUP);
    show_peer("reset-peer", ends[0]);
    INET("reset-reads", read(ends[0], text, sizeof text));
    INET("reset-error", read(ends[0], text, sizeof text));
    INET("reset-end", read(ends[0], text, sizeof text));
    INET("reset-send", send(ends[0], "x", 1, 0));
    INET("reset-shutdown", shutdown(ends[0], SHUT_WR));
    close(ends[0]);

    connected4(ends);
    REQUIRE(send(ends[0], "unread", 6, 0) == 6);
    close(ends[1]);
    show_poll("reset2-poll", ends[0], POLLHUP);
    INET("reset2-send", send(ends[0], "x", 1, 0));
    INET("reset2-send-again", send(ends[0], "x", 1, 0));
    close(ends[0]);

    connected4(ends);
    struct linger linger = { 1, 0 };
    REQUIRE(setsockopt(ends[1], SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    close(ends[1]);
    show_poll("linger-poll", ends[0], POLLHUP);
    show_error("linger-error", ends[0]);
    INET("linger-read", read(ends[0], text, sizeof text));
    close(ends[0]);

    // SIGPIPE.
    signal(SIGPIPE, SIG_DFL);
    CHECK_CHILD("pipe-signal", connected4(ends); shutdown(ends[0], SHUT_WR); write(ends[0], "x", 1));
    CHECK_CHILD("pipe-no-signal", connected4(ends); shutdown(ends[0], SHUT_WR); send(ends[0], "x", 1, MSG_NOSIGNAL));
    CHECK_CHILD("reset-signal", connected4(ends); send(ends[0], "x", 1, 0); close(ends[1]); write(ends[0], "x", 1));
    signal(SIGPIPE, SIG_IGN);

    // A listener with connections that nobody accepted.
    int listener = listener4(5);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect4(client, "127.0.0.1", port_of(listener)) == 0);
    REQUIRE(send(client, "abc", 3, 0) == 3);
    int port = port_of(listener);
    close(listener);
    show_poll("unaccepted", client, POLLHUP);
    INET("unaccepted-read", read(client, text, sizeof text));
    int other = socket(AF_INET, SOCK_STREAM, 0);
    INET("after-listener", connect4(other, "127.0.0.1", port));
    close(client);

    listener = listener4(5);
    client = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect4(client, "127.0.0.1", port_of(listener)) == 0);
    INET("listener-shut-write", shutdown(listener, SHUT_WR));
    INET("listener-shut-read", shutdown(listener, SHUT_RD));
    show_poll("listener-shut-client", client, POLLHUP);
    INET("listener-shut-accept", accept(listener, NULL, NULL));
    INET("listener-listens-again", listen(listener, 2));
    close(client);

    // A client that left before it was accepted.
    client = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect4(client, "127.0.0.1", port_of(listener)) == 0);
    REQUIRE(send(client, "bye", 3, 0) == 3);
    close(client);
    int server = accept(listener, NULL, NULL);
    INET("left-accept", server >= 0);
    INET("left-read", read(server, text, sizeof text));
    INET("left-end", read(server, text, sizeof text));

    // Disconnected by name.
    connected4(ends);
    struct sockaddr none = { .sa_family = AF_UNSPEC };
    INET("unspec", connect(ends[0], &none, sizeof none));
    show_peer("unspec-peer", ends[0]);
    show_poll("unspec-poll-peer", ends[1], POLLHUP);
    INET("unspec-peer-read", read(ends[1], text, 1));
    REQUIRE(connect(ends[0], (struct sockaddr *)&(struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port_of(listener)), .sin_addr = { htonl(INADDR_LOOPBACK) } }, 16) == 0);
    show_peer("unspec-connected-anew", ends[0]);
    end_pair();
    return 0;
}
