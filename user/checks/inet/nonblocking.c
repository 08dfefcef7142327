// Connecting without waiting, what poll(2) and SO_ERROR say then, full queues of listeners, and times to wait.
#include "../check.h"
#include "../inet.h"

int main(void)
{
    char text[16];
    int listener = listener4(3);
    int port = port_of(listener);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    INET("connect", connect4(client, "127.0.0.1", port));
    show_poll("connected", client, POLLOUT);
    INET("error", get_option(client, SOL_SOCKET, SO_ERROR));
    INET("connect-second", connect4(client, "127.0.0.1", port));
    INET("connect-third", connect4(client, "127.0.0.1", port));
    INET("read-nothing", read(client, text, 1));
    close(client);

    // Nobody is there.
    int bound = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(bind4(bound, "127.0.0.1", 0) == 0);
    client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    INET("refused", connect4(client, "127.0.0.1", port_of(bound)));
    show_poll("refused-poll", client, POLLERR);
    INET("refused-error", get_option(client, SOL_SOCKET, SO_ERROR));
    INET("refused-error-again", get_option(client, SOL_SOCKET, SO_ERROR));
    show_poll("refused-poll-then", client, 0);
    INET("refused-second", connect4(client, "127.0.0.1", port_of(bound)));
    close(client);
    client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    INET("refused2", connect4(client, "127.0.0.1", port_of(bound)));
    show_poll("refused2-poll", client, POLLERR);
    INET("refused2-second", connect4(client, "127.0.0.1", port_of(bound)));
    INET("refused2-third", connect4(client, "127.0.0.1", port));
    show_poll("refused2-connected", client, POLLOUT);
    close(client);
    client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    INET("refused3", connect4(client, "127.0.0.1", port_of(bound)));
    show_poll("refused3-poll", client, POLLERR);
    INET("refused3-read", read(client, text, 1));
    INET("refused3-read-again", read(client, text, 1));
    close(client);

    // A queue that is full: who comes then waits to be let in.
    int full = listener4(1);
    int clients[4];
    for (int i = 0; i < 2; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM, 0);
        REQUIRE(connect4(clients[i], "127.0.0.1", port_of(full)) == 0);
    }
    clients[2] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    INET("full", connect4(clients[2], "127.0.0.1", port_of(full)));
    check_sleep_ms(20);
    show_poll("full-poll", clients[2], 0);
    INET("full-again", connect4(clients[2], "127.0.0.1", port_of(full)));
    INET("full-read", read(clients[2], text, 1));
    INET("full-send", send(clients[2], "x", 1, MSG_NOSIGNAL));
    show_peer("full-peer", clients[2]);
    struct timeval soon = { 0, 20000 };
    clients[3] = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(setsockopt(clients[3], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon) == 0);
    INET("full-in-time", connect4(clients[3], "127.0.0.1", port_of(full)));
    INET("full-in-time-again", connect4(clients[3], "127.0.0.1", port_of(full)));
    close(clients[3]);
    int server = accept(full, NULL, NULL);
    INET("accepted", server >= 0);
    show_poll("then-let-in", clients[2], POLLOUT);
    INET("let-in-error", get_option(clients[2], SOL_SOCKET, SO_ERROR));
    INET("let-in-send", send(clients[2], "x", 1, 0));

    // Accepting without waiting.
    int empty = listener4(1);
    fcntl(empty, F_SETFL, O_NONBLOCK);
    INET("accept-nothing", accept(empty, NULL, NULL));
    fcntl(empty, F_SETFL, 0);
    REQUIRE(setsockopt(empty, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon) == 0);
    INET("accept-in-time", accept(empty, NULL, NULL));
    client = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect4(client, "127.0.0.1", port_of(empty)) == 0);
    server = accept4(empty, NULL, NULL, SOCK_NONBLOCK);
    INET("accept-nonblocking", fcntl(server, F_GETFL) & O_NONBLOCK ? 1 : 0);
    INET("accept-bad-flags", accept4(empty, NULL, NULL, 1));
    INET("read-nonblocking", read(server, text, 1));
    REQUIRE(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon) == 0);
    INET("read-in-time", read(client, text, 1));
    INET("dontwait", recv(client, text, 1, MSG_DONTWAIT));

    // A peer that does not read.
    static char many[1 << 16];
    long sent = 0, got;
    while ((got = send(server, many, sizeof many, 0)) > 0)
        sent += got;
    INET("full-peer", got);
    CHECK_TRUE("full-peer-took", sent > 100000);
    show_poll("full-peer-poll", server, 0);
    REQUIRE(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0 }, sizeof soon) == 0);
    long received = 0;
    while (received < sent && (got = read(client, many, sizeof many)) > 0)
        received += got;
    CHECK_TRUE("full-peer-received", received == sent);
    show_poll("full-peer-then", server, POLLOUT);

    // A write that waits for a reader.
    int ends[2];
    connected4(ends);
    pid_t writer = check_fork();
    if (writer == 0) {
        static char more[3000000];
        for (size_t i = 0; i < sizeof more; i++)
            more[i] = i * 7 + i / 256;
        close(ends[1]);
        _exit(write(ends[0], more, sizeof more) == sizeof more ? 7 : 1);
    }
    close(ends[0]);
    unsigned long sum = 0, at = 0;
    int wrong = 0;
    while ((got = read(ends[1], many, sizeof many)) > 0) {
        for (long i = 0; i < got; i++, at++)
            wrong |= many[i] != (char)(at * 7 + at / 256);
        sum += got;
    }
    INET("long-write", sum);
    INET("long-wrong", wrong);
    CHECK_STATUS("long-writer", check_wait(writer));
    return 0;
}
