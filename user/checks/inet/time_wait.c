// What is left of a connection at the end that closed first: what /proc/net/tcp and sockstat tell of it, what ends it, and who gets its port: tcp(7).
#include "../check.h"
#include "../inet.h"

// The lines of a list of connections that are from one port to another.
static void show_rows(const char *name, const char *path, int from, int to)
{
    FILE *file = fopen(path, "r");
    char line[512];
    int count = 0;
    REQUIRE(file && fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        char local[64], remote[64], ends[2][8];
        unsigned local_port, remote_port, state, sending, receiving, timer, again, user, probes;
        unsigned long when, inode;
        int fields = sscanf(line, " %*d: %63[0-9A-F]:%x %63[0-9A-F]:%x %x %x:%x %x:%lx %x %u %u %lu %7s %*s %7s", local, &local_port, remote, &remote_port, &state, &sending, &receiving, &timer, &when, &again, &user, &probes, &inode, ends[0], ends[1]);
        REQUIRE(fields >= 14);
        if ((int)local_port != from || (int)remote_port != to)
            continue;
        check_line("%s: state %u, waiting %u %u, timer %u %s, again %u, user %u, probes %u, %s, %s\n", name, state, sending, receiving, timer, when == 0 ? "off" : when <= 6000 ? "in a minute" : "late", again, user, probes,
                   inode ? "an inode" : "no inode", fields == 14 ? "short" : "long");
        count++;
    }
    fclose(file);
    if (!count)
        check_line("%s: none\n", name);
}

static int told_by_sockstat(void)
{
    FILE *file = fopen("/proc/net/sockstat", "r");
    char line[256];
    int count = -1;
    REQUIRE(file);
    while (fgets(line, sizeof line, file))
        sscanf(line, "TCP: inuse %*d orphan %*d tw %d", &count);
    fclose(file);
    return count;
}

static void until_end(int fd)
{
    char buffer[64];
    while (recv(fd, buffer, sizeof buffer, 0) > 0)
        ;
}

// A connection that is made again and again: who connects has the port `own`, 0: any.
static int client_at(int own, int port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(fd >= 0 && set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) == 0 && bind4(fd, "127.0.0.1", own) == 0);
    if (connect4(fd, "127.0.0.1", port) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static void ends(int family, const char *ip, const char *path)
{
    int listener = socket(family, SOCK_STREAM, 0), client = socket(family, SOCK_STREAM, 0);
    REQUIRE((family == AF_INET ? bind4(listener, ip, 0) : bind6(listener, ip, 0)) == 0 && listen(listener, 4) == 0);
    int port = port_of(listener);
    REQUIRE((family == AF_INET ? connect4(client, ip, port) : connect6(client, ip, port)) == 0);
    int own = port_of(client), server = accept(listener, NULL, NULL);
    REQUIRE(server >= 0);
    show_rows("both", path, port, own);
    close(server);
    until_end(client);
    check_sleep_ms(20);
    show_rows("closed-first", path, port, own);
    show_rows("not-closed", path, own, port);
    close(client);
    check_sleep_ms(20);
    show_rows("closed-both", path, port, own);
    show_rows("closed-last", path, own, port);
    CHECK_TRUE("sockstat", told_by_sockstat() > 0);
    close(listener);
}

int main(void)
{
    ends(AF_INET, "127.0.0.1", "/proc/net/tcp");
    ends(AF_INET6, "::1", "/proc/net/tcp6");
    ends(AF_INET6, "::ffff:127.0.0.1", "/proc/net/tcp6");

    // Who only sends nothing more, and keeps the socket.
    int pair[2];
    connected4(pair);
    int own = port_of(pair[0]), port = port_of(pair[1]);
    REQUIRE(shutdown(pair[0], SHUT_WR) == 0);
    until_end(pair[1]);
    check_sleep_ms(20);
    show_rows("shut-down", "/proc/net/tcp", own, port);
    close(pair[1]);
    until_end(pair[0]);
    check_sleep_ms(20);
    show_rows("shut-down-both", "/proc/net/tcp", own, port);
    close(pair[0]);
    show_rows("shut-down-closed", "/proc/net/tcp", own, port);

    // What the other end sends, or its reset, ends it.
    connected4(pair);
    own = port_of(pair[0]), port = port_of(pair[1]);
    close(pair[0]);
    until_end(pair[1]);
    check_sleep_ms(20);
    show_rows("before-late", "/proc/net/tcp", own, port);
    INET("late", send(pair[1], "late", 4, 0));
    check_sleep_ms(20);
    show_rows("after-late", "/proc/net/tcp", own, port);
    close(pair[1]);
    connected4(pair);
    own = port_of(pair[0]), port = port_of(pair[1]);
    close(pair[0]);
    until_end(pair[1]);
    struct linger at_once = { 1, 0 };
    REQUIRE(setsockopt(pair[1], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    close(pair[1]);
    check_sleep_ms(20);
    show_rows("after-reset", "/proc/net/tcp", own, port);
    // A reset leaves nothing.
    connected4(pair);
    own = port_of(pair[0]), port = port_of(pair[1]);
    REQUIRE(setsockopt(pair[0], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    close(pair[0]);
    INET("reset", recv(pair[1], &at_once, 1, 0));
    close(pair[1]);
    show_rows("reset-one", "/proc/net/tcp", own, port);
    show_rows("reset-other", "/proc/net/tcp", port, own);

    // The same connection again: from the end that closed first, and from the other.
    int listener = listener4(4), client, server;
    port = port_of(listener);
    REQUIRE((client = client_at(0, port)) >= 0);
    own = port_of(client);
    REQUIRE((server = accept(listener, NULL, NULL)) >= 0);
    close(client), until_end(server), close(server);
    check_sleep_ms(20);
    INET("again", (client = client_at(own, port)) >= 0);
    REQUIRE((server = accept(listener, NULL, NULL)) >= 0);
    show_rows("again-rows", "/proc/net/tcp", own, port);
    close(server), until_end(client), close(client);
    check_sleep_ms(20);
    show_rows("server-rows", "/proc/net/tcp", port, own);
    INET("server-again", (client = client_at(own, port)) >= 0);
    REQUIRE((server = accept(listener, NULL, NULL)) >= 0);
    show_rows("server-again-rows", "/proc/net/tcp", port, own);
    // One that listens again where connections were.
    close(listener), close(server), until_end(client), close(client);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    INET("listen-not", bind4(fd, "127.0.0.1", port));
    REQUIRE(set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) == 0);
    INET("listen-unlike", bind4(fd, "127.0.0.1", port));
    return 0;
}
