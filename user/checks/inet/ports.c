// Who may have a port: SO_REUSEADDR, SO_REUSEPORT, both families, privileges, and ports whose connections have just ended.
#include "../check.h"
#include "../inet.h"

static int make(int family, int reuse_address, int reuse_port)
{
    int fd = socket(family, SOCK_STREAM, 0);
    REQUIRE(fd >= 0);
    REQUIRE(set_option(fd, SOL_SOCKET, SO_REUSEADDR, reuse_address) == 0);
    REQUIRE(set_option(fd, SOL_SOCKET, SO_REUSEPORT, reuse_port) == 0);
    return fd;
}

int main(void)
{
    int first = make(AF_INET, 0, 0);
    REQUIRE(bind4(first, "127.0.0.1", 0) == 0);
    int port = port_of(first);
    INET("same", bind4(make(AF_INET, 0, 0), "127.0.0.1", port));
    INET("same-reuse", bind4(make(AF_INET, 1, 0), "127.0.0.1", port));
    INET("any", bind4(make(AF_INET, 0, 0), "0.0.0.0", port));
    INET("other-address", bind4(make(AF_INET, 0, 0), "127.0.0.2", port));
    INET("six-any", bind6(make(AF_INET6, 0, 0), "::", port));
    INET("six-loopback", bind6(make(AF_INET6, 0, 0), "::1", port));
    INET("six-mapped", bind6(make(AF_INET6, 0, 0), "::ffff:127.0.0.1", port));
    int only = make(AF_INET6, 0, 0);
    REQUIRE(set_option(only, IPPROTO_IPV6, IPV6_V6ONLY, 1) == 0);
    INET("six-only-after-loopback", bind6(only, "::", port));
    close(first);
    INET("same-after-close", bind4(make(AF_INET, 0, 0), "127.0.0.1", port));

    // All reuse it, until one listens.
    first = make(AF_INET, 1, 0);
    REQUIRE(bind4(first, "127.0.0.1", 0) == 0);
    port = port_of(first);
    int second = make(AF_INET, 1, 0);
    INET("reuse", bind4(second, "127.0.0.1", port));
    INET("reuse-any", bind4(make(AF_INET, 1, 0), "0.0.0.0", port));
    INET("reuse-listen", listen(first, 3));
    INET("reuse-listen-second", listen(second, 3));
    INET("reuse-third", bind4(make(AF_INET, 1, 0), "127.0.0.1", port));
    set_option(first, SOL_SOCKET, SO_REUSEADDR, 0);
    close(second);
    INET("reuse-late", bind4(make(AF_INET, 1, 0), "127.0.0.1", port));
    close(first);

    // Several share it.
    int sharers[4], counts[4] = { 0 };
    sharers[0] = make(AF_INET, 0, 1);
    REQUIRE(bind4(sharers[0], "127.0.0.1", 0) == 0 && listen(sharers[0], 100) == 0);
    port = port_of(sharers[0]);
    for (int i = 1; i < 4; i++) {
        sharers[i] = make(AF_INET, 0, 1);
        INET("share", bind4(sharers[i], "127.0.0.1", port));
        INET("share-listen", listen(sharers[i], 100));
    }
    INET("share-not", bind4(make(AF_INET, 0, 0), "127.0.0.1", port));
    INET("share-reuse", bind4(make(AF_INET, 1, 0), "127.0.0.1", port));
    CHECK_CHILD("share-other-user", REQUIRE(setuid(1000) == 0); INET("share-foreign", bind4(make(AF_INET, 0, 1), "127.0.0.1", port)));
    int clients[64];
    for (int i = 0; i < 64; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM, 0);
        REQUIRE(connect4(clients[i], "127.0.0.1", port) == 0);
    }
    int all = 0;
    for (int i = 0; i < 4; i++) {
        fcntl(sharers[i], F_SETFL, O_NONBLOCK);
        int fd;
        while ((fd = accept(sharers[i], NULL, NULL)) >= 0) {
            counts[i]++;
            close(fd);
        }
        all += counts[i];
    }
    INET("shared-all", all);
    CHECK_TRUE("shared-by-each", counts[0] && counts[1] && counts[2] && counts[3]);
    for (int i = 0; i < 64; i++)
        close(clients[i]);
    for (int i = 0; i < 4; i++)
        close(sharers[i]);

    // The exact address comes before any.
    int any = make(AF_INET, 1, 1), exact = make(AF_INET, 1, 1);
    REQUIRE(bind4(any, "0.0.0.0", 0) == 0 && listen(any, 3) == 0);
    INET("exact", bind4(exact, "127.0.0.1", port_of(any)));
    INET("exact-listen", listen(exact, 3));
    int client = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect4(client, "127.0.0.1", port_of(any)) == 0);
    show_poll("exact-ready", exact, POLLIN);
    show_poll("any-not", any, 0);
    int other = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect4(other, "127.0.0.2", port_of(any)) == 0);
    show_poll("any-ready", any, POLLIN);
    close(any), close(exact), close(client), close(other);

    // A connection keeps its port, and for a while after its end where it ended on this side first.
    for (int reuse = 0; reuse < 2; reuse++)
        for (int server_first = 0; server_first < 2; server_first++) {
            char name[64];
            int listener = make(AF_INET, reuse, 0);
            REQUIRE(bind4(listener, "127.0.0.1", 0) == 0 && listen(listener, 3) == 0);
            port = port_of(listener);
            int from = socket(AF_INET, SOCK_STREAM, 0);
            REQUIRE(connect4(from, "127.0.0.1", port) == 0);
            int own = port_of(from);
            int server = accept(listener, NULL, NULL);
            close(listener);
            for (int again = 0; again < 2; again++) {
                snprintf(name, sizeof name, "connected-%d%d%d", reuse, server_first, again);
                INET(name, bind4(make(AF_INET, again, 0), "127.0.0.1", port));
            }
            close(server_first ? server : from);
            show_poll("ended", server_first ? from : server, POLLRDHUP);
            close(server_first ? from : server);
            check_sleep_ms(20);
            for (int again = 0; again < 2; again++) {
                snprintf(name, sizeof name, "ended-%d%d%d", reuse, server_first, again);
                INET(name, bind4(make(AF_INET, again, 0), "127.0.0.1", port));
                snprintf(name, sizeof name, "ended-client-%d%d%d", reuse, server_first, again);
                INET(name, bind4(make(AF_INET, again, 0), "127.0.0.1", own));
            }
        }

    // A reset leaves nothing.
    int ends[2];
    connected4(ends);
    int own = port_of(ends[0]);
    set_option(ends[0], SOL_SOCKET, SO_LINGER, 0);
    struct linger linger = { 1, 0 };
    setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(ends[0]);
    INET("reset-port", bind4(make(AF_INET, 0, 0), "127.0.0.1", own));

    // Two connections with the same addresses.
    int listener = listener4(5);
    int one = make(AF_INET, 1, 0), two = make(AF_INET, 1, 0);
    REQUIRE(bind4(one, "127.0.0.1", 0) == 0);
    REQUIRE(bind4(two, "127.0.0.1", port_of(one)) == 0);
    INET("first-of-two", connect4(one, "127.0.0.1", port_of(listener)));
    INET("second-of-two", connect4(two, "127.0.0.1", port_of(listener)));
    int elsewhere = listener4(5);
    INET("second-elsewhere", connect4(two, "127.0.0.1", port_of(elsewhere)));

    // Privileges.
    INET("privileged", bind4(make(AF_INET, 1, 0), "127.0.0.1", 1023));
    CHECK_CHILD("unprivileged", REQUIRE(setuid(1000) == 0); INET("unprivileged-1023", bind4(make(AF_INET, 1, 0), "127.0.0.1", 1023));
                INET("unprivileged-1024", bind4(make(AF_INET, 1, 0), "127.0.0.1", 1024)); INET("unprivileged-any", bind4(make(AF_INET, 1, 0), "127.0.0.1", 0)));
    // Bound twice.
    one = make(AF_INET, 0, 0);
    REQUIRE(bind4(one, "127.0.0.1", 0) == 0);
    INET("twice", bind4(one, "127.0.0.1", 0));
    show_name("twice-name", one);
    return 0;
}
