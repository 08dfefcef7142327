// Options of internet sockets: what they are at first, what can be set, and what is told then.
#include "../check.h"
#include "../inet.h"

static const struct {
    const char *name;
    int level, option, udp_too, value, wrong;
} numbers[] = {
    { "reuseaddr", SOL_SOCKET, SO_REUSEADDR, 1, 5, 0 },
    { "reuseport", SOL_SOCKET, SO_REUSEPORT, 1, 5, 0 },
    { "broadcast", SOL_SOCKET, SO_BROADCAST, 1, 5, 0 },
    { "keepalive", SOL_SOCKET, SO_KEEPALIVE, 1, 5, 0 },
    { "oobinline", SOL_SOCKET, SO_OOBINLINE, 1, 5, 0 },
    { "dontroute", SOL_SOCKET, SO_DONTROUTE, 1, 5, 0 },
    { "timestamp", SOL_SOCKET, SO_TIMESTAMP, 1, 1, 0 },
    { "priority", SOL_SOCKET, SO_PRIORITY, 1, 6, 0 },
    { "rcvlowat", SOL_SOCKET, SO_RCVLOWAT, 0, 7, 0 },
    { "tos", IPPROTO_IP, IP_TOS, 1, 16, 0 },
    { "ttl", IPPROTO_IP, IP_TTL, 1, 33, 256 },
    { "ttl-default", IPPROTO_IP, IP_TTL, 1, -1, -2 },
    { "mtu-discover", IPPROTO_IP, IP_MTU_DISCOVER, 1, 2, 9 },
    { "recverr", IPPROTO_IP, IP_RECVERR, 1, 3, 0 },
    { "pktinfo", IPPROTO_IP, IP_PKTINFO, 1, 3, 0 },
    { "recvttl", IPPROTO_IP, IP_RECVTTL, 1, 3, 0 },
    { "recvtos", IPPROTO_IP, IP_RECVTOS, 1, 3, 0 },
    { "freebind", IPPROTO_IP, IP_FREEBIND, 1, 3, 0 },
    { "no-port", IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1, 3, 0 },
    { "nodelay", IPPROTO_TCP, TCP_NODELAY, 0, 4, 0 },
    { "cork", IPPROTO_TCP, TCP_CORK, 0, 1, 0 },
    { "keepidle", IPPROTO_TCP, TCP_KEEPIDLE, 0, 10, 32768 },
    { "keepintvl", IPPROTO_TCP, TCP_KEEPINTVL, 0, 11, -1 },
    { "keepcnt", IPPROTO_TCP, TCP_KEEPCNT, 0, 12, 128 },
    { "syncnt", IPPROTO_TCP, TCP_SYNCNT, 0, 3, 200 },
    { "linger2", IPPROTO_TCP, TCP_LINGER2, 0, 5, 0 },
    { "defer-accept", IPPROTO_TCP, TCP_DEFER_ACCEPT, 0, 5, 0 },
    { "user-timeout", IPPROTO_TCP, TCP_USER_TIMEOUT, 0, 1234, -5 },
    { "notsent", IPPROTO_TCP, TCP_NOTSENT_LOWAT, 0, 99, 0 },
    { "unknown-tcp", IPPROTO_TCP, 999, 0, 1, 0 },
    { "unknown-ip", IPPROTO_IP, 999, 1, 1, 0 },
    { "unknown-socket", SOL_SOCKET, 9999, 1, 1, 0 },
    { "unknown-level", 4711, 1, 1, 1, 0 },
};

int main(void)
{
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s-first", numbers[i].name);
        INET(name, get_option(tcp, numbers[i].level, numbers[i].option));
        snprintf(name, sizeof name, "%s-set", numbers[i].name);
        INET(name, set_option(tcp, numbers[i].level, numbers[i].option, numbers[i].value));
        snprintf(name, sizeof name, "%s-then", numbers[i].name);
        INET(name, get_option(tcp, numbers[i].level, numbers[i].option));
        if (numbers[i].wrong) {
            snprintf(name, sizeof name, "%s-wrong", numbers[i].name);
            INET(name, set_option(tcp, numbers[i].level, numbers[i].option, numbers[i].wrong));
        }
        snprintf(name, sizeof name, "%s-short", numbers[i].name);
        INET(name, setsockopt(tcp, numbers[i].level, numbers[i].option, &numbers[i].value, 2) == 0 ? 0 : -1);
    }
    close(tcp);
    tcp = socket(AF_INET, SOCK_STREAM, 0);
    INET("type", get_option(tcp, SOL_SOCKET, SO_TYPE));
    INET("protocol", get_option(tcp, SOL_SOCKET, SO_PROTOCOL));
    INET("domain", get_option(tcp, SOL_SOCKET, SO_DOMAIN));
    INET("acceptconn", get_option(tcp, SOL_SOCKET, SO_ACCEPTCONN));
    INET("error", get_option(tcp, SOL_SOCKET, SO_ERROR));
    INET("set-type", set_option(tcp, SOL_SOCKET, SO_TYPE, 1));
    INET("set-error", set_option(tcp, SOL_SOCKET, SO_ERROR, 1));
    INET("sndlowat", get_option(tcp, SOL_SOCKET, SO_SNDLOWAT));
    INET("sndbuf", set_option(tcp, SOL_SOCKET, SO_SNDBUF, 10000));
    INET("sndbuf-then", get_option(tcp, SOL_SOCKET, SO_SNDBUF));
    INET("sndbuf-least", set_option(tcp, SOL_SOCKET, SO_SNDBUF, 1));
    INET("sndbuf-least-then", get_option(tcp, SOL_SOCKET, SO_SNDBUF));
    INET("rcvbuf", set_option(tcp, SOL_SOCKET, SO_RCVBUF, 10000));
    INET("rcvbuf-then", get_option(tcp, SOL_SOCKET, SO_RCVBUF));
    INET("rcvbuf-least", set_option(tcp, SOL_SOCKET, SO_RCVBUF, 1));
    INET("rcvbuf-least-then", get_option(tcp, SOL_SOCKET, SO_RCVBUF));
    struct linger linger = { 7, 7 };
    socklen_t len = sizeof linger;
    INET("linger", getsockopt(tcp, SOL_SOCKET, SO_LINGER, &linger, &len));
    check_line("linger-first: %d %d, %d bytes\n", linger.l_onoff, linger.l_linger, (int)len);
    linger = (struct linger){ 5, 20 };
    INET("linger-set", setsockopt(tcp, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    INET("linger-get", getsockopt(tcp, SOL_SOCKET, SO_LINGER, &linger, &len));
    check_line("linger-then: %d %d\n", linger.l_onoff, linger.l_linger);
    INET("linger-short", setsockopt(tcp, SOL_SOCKET, SO_LINGER, &linger, 4));
    char name[32];
    len = sizeof name;
    INET("congestion", getsockopt(tcp, IPPROTO_TCP, TCP_CONGESTION, name, &len));
    INET("congestion-length", len);
    INET("congestion-set", setsockopt(tcp, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
    len = sizeof name;
    INET("congestion-get", getsockopt(tcp, IPPROTO_TCP, TCP_CONGESTION, name, &len));
    check_line("congestion-then: %s\n", name);
    INET("congestion-unknown", setsockopt(tcp, IPPROTO_TCP, TCP_CONGESTION, "nonesuch", 8));
    uint64_t cookies[2] = { 0, 0 };
    len = sizeof cookies[0];
    INET("cookie", getsockopt(tcp, SOL_SOCKET, SO_COOKIE, &cookies[0], &len));
    INET("cookie-again", getsockopt(tcp, SOL_SOCKET, SO_COOKIE, &cookies[1], &len));
    CHECK_TRUE("cookie-same", cookies[0] != 0 && cookies[0] == cookies[1]);
    struct tcp_info info;
    len = sizeof info.tcpi_state;
    INET("info", getsockopt(tcp, IPPROTO_TCP, TCP_INFO, &info, &len));
    INET("info-state", info.tcpi_state);

    // What an accepted socket has of its listener.
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    set_option(listener, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(listener, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(listener, SOL_SOCKET, SO_RCVLOWAT, 3);
    set_option(listener, IPPROTO_IP, IP_TTL, 17);
    setsockopt(listener, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 9 }, sizeof linger);
    REQUIRE(listen(listener, 3) == 0);
    INET("listener-acceptconn", get_option(listener, SOL_SOCKET, SO_ACCEPTCONN));
    len = 1;
    REQUIRE(getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
    INET("listener-state", info.tcpi_state);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect4(client, "127.0.0.1", port_of(listener)) == 0);
    int server = accept(listener, NULL, NULL);
    INET("inherits-nodelay", get_option(server, IPPROTO_TCP, TCP_NODELAY));
    INET("inherits-keepalive", get_option(server, SOL_SOCKET, SO_KEEPALIVE));
    INET("inherits-rcvlowat", get_option(server, SOL_SOCKET, SO_RCVLOWAT));
    INET("inherits-ttl", get_option(server, IPPROTO_IP, IP_TTL));
    INET("inherits-acceptconn", get_option(server, SOL_SOCKET, SO_ACCEPTCONN));
    len = sizeof linger;
    getsockopt(server, SOL_SOCKET, SO_LINGER, &linger, &len);
    check_line("inherits-linger: %d %d\n", linger.l_onoff, linger.l_linger);
    len = 1;
    REQUIRE(getsockopt(server, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
    INET("connected-state", info.tcpi_state);
    // Enough to be read.
    REQUIRE(send(client, "ab", 2, 0) == 2);
    check_sleep_ms(20);
    show_poll("too-little", server, 0);
    REQUIRE(send(client, "c", 1, 0) == 1);
    show_poll("enough", server, POLLIN);
    int waiting;
    REQUIRE(ioctl(server, FIONREAD, &waiting) == 0);
    INET("fionread", waiting);
    REQUIRE(ioctl(client, TIOCOUTQ, &waiting) == 0);
    INET("outq", waiting);
    INET("fionread-listener", ioctl(listener, FIONREAD, &waiting));
    shutdown(server, SHUT_WR);
    show_poll("close-wait", client, POLLRDHUP);
    REQUIRE(getsockopt(client, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
    INET("close-wait-state", info.tcpi_state);

    // IPv6.
    int six = socket(AF_INET6, SOCK_STREAM, 0);
    INET("six-v6only", get_option(six, IPPROTO_IPV6, IPV6_V6ONLY));
    INET("six-hops", get_option(six, IPPROTO_IPV6, IPV6_UNICAST_HOPS));
    INET("six-hops-set", set_option(six, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 12));
    INET("six-hops-then", get_option(six, IPPROTO_IPV6, IPV6_UNICAST_HOPS));
    INET("six-hops-wrong", set_option(six, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 256));
    INET("six-tclass", set_option(six, IPPROTO_IPV6, IPV6_TCLASS, 8));
    INET("six-tclass-then", get_option(six, IPPROTO_IPV6, IPV6_TCLASS));
    INET("six-ip-ttl", get_option(six, IPPROTO_IP, IP_TTL));
    INET("six-domain", get_option(six, SOL_SOCKET, SO_DOMAIN));
    INET("six-unknown", get_option(six, IPPROTO_IPV6, 999));
    INET("four-six-set", set_option(tcp, IPPROTO_IPV6, IPV6_V6ONLY, 1));
    INET("four-six-get", get_option(tcp, IPPROTO_IPV6, IPV6_V6ONLY));
    INET("four-udp-set", set_option(tcp, 17, 1, 1));
    INET("four-udp-get", get_option(tcp, 17, 1));
    return 0;
}
