// Connections over the loopback device: addresses, both families, and what each call says in each state.
#include "../check.h"
#include "../inet.h"

static void one(const char *what, int listener, int client, int refused)
{
    char name[64], text[32];
    snprintf(name, sizeof name, "%s-peer", what);
    show_peer(name, client);
    if (refused)
        return;
    snprintf(name, sizeof name, "%s-client", what);
    show_name(name, client);
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    int server = accept4(listener, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
    snprintf(name, sizeof name, "%s-accepted", what);
    show_address(name, server, &from, len);
    snprintf(name, sizeof name, "%s-server", what);
    show_name(name, server);
    snprintf(name, sizeof name, "%s-server-peer", what);
    show_peer(name, server);
    snprintf(name, sizeof name, "%s-cloexec", what);
    INET(name, fcntl(server, F_GETFD));
    REQUIRE(send(client, "hello", 5, 0) == 5);
    snprintf(name, sizeof name, "%s-read", what);
    INET(name, read(server, text, sizeof text));
    REQUIRE(write(server, text, 3) == 3);
    snprintf(name, sizeof name, "%s-answer", what);
    INET(name, recv(client, text, sizeof text, 0));
    close(server);
    snprintf(name, sizeof name, "%s-end", what);
    INET(name, read(client, text, sizeof text));
    close(client);
}

int main(void)
{
    char text[16];
    int fresh = socket(AF_INET, SOCK_STREAM, 0);
    show_name("fresh-name", fresh);
    show_peer("fresh-peer", fresh);
    show_poll("fresh-poll", fresh, 0);
    INET("fresh-read", read(fresh, text, 1));
    INET("fresh-send", send(fresh, "x", 1, MSG_NOSIGNAL));
    INET("fresh-shutdown", shutdown(fresh, SHUT_RDWR));
    INET("fresh-accept", accept(fresh, NULL, NULL));
    CHECK_CHILD("fresh-write", write(socket(AF_INET, SOCK_STREAM, 0), "x", 1));
    int fresh6 = socket(AF_INET6, SOCK_STREAM, IPPROTO_TCP);
    show_name("fresh6-name", fresh6);

    int listener = socket(AF_INET, SOCK_STREAM, 0);
    INET("listen-unbound", listen(listener, 5));
    show_name("listen-unbound-name", listener);
    CHECK_TRUE("ephemeral", port_of(listener) >= 32768 && port_of(listener) <= 60999);
    INET("listen-again", listen(listener, 1));
    INET("bind-listening", bind4(listener, "127.0.0.1", 0));
    INET("connect-listening", connect4(listener, "127.0.0.1", 1));
    INET("send-listening", send(listener, "x", 1, MSG_NOSIGNAL));
    INET("recv-listening", recv(listener, text, 1, 0));
    show_poll("listening-poll", listener, 0);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    INET("connect", connect4(client, "127.0.0.1", port_of(listener)));
    show_poll("listening-ready", listener, POLLIN);
    INET("connect-again", connect4(client, "127.0.0.1", port_of(listener)));
    INET("bind-connected", bind4(client, "127.0.0.1", 0));
    INET("listen-connected", listen(client, 1));
    show_poll("connected-poll", client, 0);
    one("any", listener, client, 0);

    client = socket(AF_INET, SOCK_STREAM, 0);
    INET("connect-to-any", connect4(client, "0.0.0.0", port_of(listener)));
    one("to-any", listener, client, 0);
    client = socket(AF_INET, SOCK_STREAM, 0);
    INET("connect-to-other-loopback", connect4(client, "127.9.8.7", port_of(listener)));
    one("other", listener, client, 0);
    client = socket(AF_INET, SOCK_STREAM, 0);
    INET("bind-own", bind4(client, "127.0.0.3", 0));
    show_name("bound-name", client);
    INET("connect-from-own", connect4(client, "127.0.0.1", port_of(listener)));
    one("from-own", listener, client, 0);
    client = socket(AF_INET6, SOCK_STREAM, 0);
    INET("connect-mapped", connect6(client, "::ffff:127.0.0.1", port_of(listener)));
    one("mapped", listener, client, 0);

    int dual = socket(AF_INET6, SOCK_STREAM, 0);
    INET("bind-dual", bind6(dual, "::", 0));
    INET("listen-dual", listen(dual, 5));
    show_name("dual-name", dual);
    client = socket(AF_INET6, SOCK_STREAM, 0);
    INET("connect6", connect6(client, "::1", port_of(dual)));
    one("six", dual, client, 0);
    client = socket(AF_INET6, SOCK_STREAM, 0);
    INET("connect6-to-any", connect6(client, "::", port_of(dual)));
    one("six-to-any", dual, client, 0);
    client = socket(AF_INET, SOCK_STREAM, 0);
    INET("connect4-to-dual", connect4(client, "127.0.0.1", port_of(dual)));
    one("four-to-six", dual, client, 0);

    int only = socket(AF_INET6, SOCK_STREAM, 0);
    INET("only", set_option(only, IPPROTO_IPV6, IPV6_V6ONLY, 1));
    INET("only-get", get_option(only, IPPROTO_IPV6, IPV6_V6ONLY));
    REQUIRE(bind6(only, "::", 0) == 0 && listen(only, 1) == 0);
    INET("only-late", set_option(only, IPPROTO_IPV6, IPV6_V6ONLY, 0));
    client = socket(AF_INET, SOCK_STREAM, 0);
    INET("connect4-to-only", connect4(client, "127.0.0.1", port_of(only)));
    one("refused", only, client, 1);
    client = socket(AF_INET6, SOCK_STREAM, 0);
    REQUIRE(set_option(client, IPPROTO_IPV6, IPV6_V6ONLY, 1) == 0);
    INET("only-to-mapped", connect6(client, "::ffff:127.0.0.1", port_of(dual)));

    // Wrong addresses.
    struct sockaddr_in four = v4("127.0.0.1", 9);
    struct sockaddr_in6 six = v6("::1", 9);
    client = socket(AF_INET, SOCK_STREAM, 0);
    INET("short", connect(client, (struct sockaddr *)&four, 15));
    INET("shorter", connect(client, (struct sockaddr *)&four, 1));
    INET("other-family", connect(client, (struct sockaddr *)&six, sizeof six));
    INET("bind-short", bind(client, (struct sockaddr *)&four, 15));
    INET("bind-other-family", bind(client, (struct sockaddr *)&six, sizeof six));
    INET("bind-foreign", bind4(client, "192.0.2.1", 0));
    client = socket(AF_INET6, SOCK_STREAM, 0);
    INET("six-short", connect(client, (struct sockaddr *)&six, 23));
    INET("six-24", bind(client, (struct sockaddr *)&(struct sockaddr_in6){ .sin6_family = AF_INET6 }, 24));
    INET("six-other-family", connect(client, (struct sockaddr *)&four, sizeof four));
    INET("six-four-long", connect(client, (struct sockaddr *)&(struct sockaddr_storage){ .ss_family = AF_INET }, 28));
    client = socket(AF_INET6, SOCK_STREAM, 0);
    INET("six-bind-foreign", bind6(client, "2001:db8::1", 0));
    INET("six-bind-mapped", bind6(client, "::ffff:127.0.0.1", 0));
    show_name("six-bound-mapped", client);

    // Kinds and protocols.
    INET("protocol", socket(AF_INET, SOCK_STREAM, 99));
    INET("protocol-udp", socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
    INET("protocol-large", socket(AF_INET, SOCK_STREAM, 300));
    INET("protocol-negative", socket(AF_INET, SOCK_STREAM, -1));
    INET("seqpacket", socket(AF_INET, SOCK_SEQPACKET, 0));
    int pair[2];
    INET("pair", socketpair(AF_INET, SOCK_STREAM, 0, pair));

    // To whom nobody listens.
    client = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(bind4(fresh, "127.0.0.1", 0) == 0);
    INET("nobody", connect4(client, "127.0.0.1", port_of(fresh)));
    show_poll("nobody-poll", client, 0);
    INET("nobody-error", get_option(client, SOL_SOCKET, SO_ERROR));
    INET("nobody-again", connect4(client, "127.0.0.1", port_of(fresh)));
    INET("then-somebody", connect4(client, "127.0.0.1", port_of(listener)));

    // To itself.
    int self = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(bind4(self, "127.0.0.1", 0) == 0);
    INET("itself", connect4(self, "127.0.0.1", port_of(self)));
    show_peer("itself-peer", self);
    INET("itself-send", send(self, "echo", 4, 0));
    INET("itself-read", read(self, text, sizeof text));
    INET("itself-shutdown", shutdown(self, SHUT_WR));
    INET("itself-end", read(self, text, sizeof text));
    INET("itself-close", close(self));
    return 0;
}
