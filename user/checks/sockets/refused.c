// Datagram sockets whose peer has gone: the first that notices is refused, and has no peer any more.
#include "../check.h"
#include <sys/socket.h>
#include <sys/un.h>

static const struct sockaddr_un server = { .sun_family = AF_UNIX, .sun_path = "server" };
static const struct sockaddr_un own = { .sun_family = AF_UNIX, .sun_path = "own" };

static int listening(void)
{
    unlink(server.sun_path);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    REQUIRE(fd >= 0 && bind(fd, (const void *)&server, sizeof server) == 0);
    return fd;
}

int main(void)
{
    int peer = listening(), fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    struct sockaddr_un name;
    socklen_t length = sizeof name;
    char byte;
    CHECK("connect", connect(fd, (const void *)&server, sizeof server));
    CHECK("send", send(fd, "x", 1, 0));
    close(peer);
    // Nothing but a message to it finds out that it has gone.
    CHECK("name-of-peer", getpeername(fd, (void *)&name, &length));
    CHECK("receive", recv(fd, &byte, 1, 0));
    CHECK("refused", send(fd, "x", 1, 0));
    CHECK("then", send(fd, "x", 1, 0));
    CHECK("then-write", write(fd, "x", 1));
    CHECK("no-peer", getpeername(fd, (void *)&name, &length));
    CHECK("receive-then", recv(fd, &byte, 1, 0));
    CHECK("connect-to-nobody", connect(fd, (const void *)&server, sizeof server));
    CHECK("send-to-nobody", sendto(fd, "x", 1, 0, (const void *)&server, sizeof server));
    peer = listening();
    CHECK("connect-again", connect(fd, (const void *)&server, sizeof server));
    CHECK("send-again", send(fd, "y", 1, 0));
    CHECK("received-again", recv(peer, &byte, 1, 0));
    // A refusal for another address leaves the peer.
    int other = socket(AF_UNIX, SOCK_DGRAM, 0);
    REQUIRE(bind(other, (const void *)&own, sizeof own) == 0 && close(other) == 0);
    CHECK("to-another", sendto(fd, "x", 1, 0, (const void *)&own, sizeof own));
    CHECK("peer-left", send(fd, "z", 1, 0));
    CHECK("peer-heard", recv(peer, &byte, 1, 0));
    int pair[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    CHECK("pair", send(pair[0], "x", 1, 0));
    close(pair[1]);
    CHECK("pair-refused", send(pair[0], "x", 1, 0));
    CHECK("pair-then", send(pair[0], "x", 1, 0));
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    close(pair[1]);
    CHECK("packet", send(pair[0], "x", 1, MSG_NOSIGNAL));
    CHECK("packet-then", send(pair[0], "x", 1, MSG_NOSIGNAL));
    return 0;
}
