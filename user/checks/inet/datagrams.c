// Messages over the loopback device: addresses, connecting, who gets a message, refusals, and what is told beside the bytes.
#include "../check.h"
#include "../inet.h"

static int udp4(const char *ip, int port)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    REQUIRE(fd >= 0 && bind4(fd, ip, port) == 0);
    return fd;
}

static long to4(int fd, const char *ip, int port, const char *text)
{
    struct sockaddr_in address = v4(ip, port);
    return sendto(fd, text, strlen(text), 0, (struct sockaddr *)&address, sizeof address);
}

static long to6(int fd, const char *ip, int port, const char *text)
{
    struct sockaddr_in6 address = v6(ip, port);
    return sendto(fd, text, strlen(text), 0, (struct sockaddr *)&address, sizeof address);
}

// Receives at once and tells from where.
static void show(const char *name, int fd)
{
    char text[64] = { 0 }, line[128];
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    ssize_t got = recvfrom(fd, text, sizeof text - 1, MSG_DONTWAIT, (struct sockaddr *)&from, &len);
    snprintf(line, sizeof line, "%s (%s)", name, got >= 0 ? text : "nothing");
    show_address(line, got, &from, len);
}

// Prints the ancillary data of a message.
static void show_control(const char *name, int fd)
{
    char text[64], control[256];
    struct sockaddr_storage from;
    struct iovec piece = { text, sizeof text };
    struct msghdr message = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    ssize_t got = recvmsg(fd, &message, 0);
    check_line("%s: %d bytes, flags %#x\n", name, (int)got, message.msg_flags);
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        char ip[64], other[64];
        if (head->cmsg_level == IPPROTO_IP && head->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo *info = (void *)CMSG_DATA(head);
            inet_ntop(AF_INET, &info->ipi_addr, ip, sizeof ip);
            inet_ntop(AF_INET, &info->ipi_spec_dst, other, sizeof other);
            check_line("%s-info: device %d, to %s, own %s\n", name, info->ipi_ifindex, ip, other);
        } else if (head->cmsg_level == IPPROTO_IPV6 && head->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo *info = (void *)CMSG_DATA(head);
            inet_ntop(AF_INET6, &info->ipi6_addr, ip, sizeof ip);
            check_line("%s-info6: device %d, to %s\n", name, (int)info->ipi6_ifindex, ip);
        } else if (head->cmsg_level == SOL_SOCKET)
            check_line("%s-time: type %d, %d bytes\n", name, head->cmsg_type, (int)head->cmsg_len);
        else if (head->cmsg_len == CMSG_LEN(1))
            check_line("%s-byte: level %d type %d, %d\n", name, head->cmsg_level, head->cmsg_type, *CMSG_DATA(head));
        else
            check_line("%s-number: level %d type %d, %d, %d bytes\n", name, head->cmsg_level, head->cmsg_type, *(int *)CMSG_DATA(head), (int)head->cmsg_len);
    }
}

int main(void)
{
    char text[64];
    signal(SIGPIPE, SIG_DFL);
    int one = socket(AF_INET, SOCK_DGRAM, 0), other = udp4("127.0.0.1", 0);
    show_name("fresh-name", one);
    show_poll("fresh-poll", one, 0);
    INET("fresh-send", send(one, "x", 1, 0));
    INET("fresh-write", write(one, "x", 1));
    INET("fresh-recv", recv(one, text, 1, MSG_DONTWAIT));
    INET("fresh-listen", listen(one, 1));
    INET("fresh-accept", accept(one, NULL, NULL));
    INET("fresh-shutdown", shutdown(one, SHUT_RDWR));
    close(one);
    one = socket(AF_INET, SOCK_DGRAM, 0);
    INET("send", to4(one, "127.0.0.1", port_of(other), "hello"));
    show_name("sender-name", one);
    INET("bind-late", bind4(one, "127.0.0.1", 0));
    show_poll("poll", other, POLLIN);
    int waiting;
    REQUIRE(ioctl(other, FIONREAD, &waiting) == 0);
    INET("waiting", waiting);
    show("received", other);
    show("nothing", other);
    INET("empty", to4(one, "127.0.0.1", port_of(other), ""));
    show("empty-received", other);
    INET("to-any", to4(one, "0.0.0.0", port_of(other), "any"));
    show("to-any-received", other);
    INET("to-port-0", to4(one, "127.0.0.1", 0, "x"));
    INET("to-other-loopback", to4(one, "127.0.0.2", port_of(other), "x"));
    show("not-for-it", other);
    REQUIRE(to4(one, "127.0.0.1", port_of(other), "abcdefgh") == 8);
    INET("truncated", recv(other, text, 3, 0));
    REQUIRE(to4(one, "127.0.0.1", port_of(other), "abcdefgh") == 8);
    INET("truncated-told", recv(other, text, 3, MSG_TRUNC));
    REQUIRE(to4(one, "127.0.0.1", port_of(other), "abcdefgh") == 8);
    INET("peek", recv(other, text, 3, MSG_PEEK));
    struct iovec piece = { text, 3 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1 };
    INET("recvmsg", recvmsg(other, &message, 0));
    INET("recvmsg-flags", message.msg_flags);
    INET("oob", send(one, "x", 1, MSG_OOB));

    // Sizes.
    static char large[70000];
    struct sockaddr_in address = v4("127.0.0.1", port_of(other));
    INET("largest", sendto(one, large, 65507, 0, (struct sockaddr *)&address, sizeof address));
    INET("largest-received", recv(other, large, sizeof large, 0));
    INET("too-large", sendto(one, large, 65508, 0, (struct sockaddr *)&address, sizeof address));
    INET("much-too-large", sendto(one, large, 65536, 0, (struct sockaddr *)&address, sizeof address));
    INET("short-address", sendto(one, "x", 1, 0, (struct sockaddr *)&address, 15));
    address.sin_family = AF_UNIX;
    INET("wrong-family", sendto(one, "x", 1, 0, (struct sockaddr *)&address, sizeof address));

    // Connected: from there only.
    int third = udp4("127.0.0.1", 0);
    INET("connect", connect4(one, "127.0.0.1", port_of(other)));
    show_name("connected-name", one);
    show_peer("connected-peer", one);
    INET("send-connected", send(one, "to-peer", 7, 0));
    show("peer-received", other);
    REQUIRE(to4(third, "127.0.0.1", port_of(one), "foreign") == 7);
    show("foreign", one);
    REQUIRE(to4(other, "127.0.0.1", port_of(one), "own") == 3);
    show("own", one);
    INET("send-elsewhere", to4(one, "127.0.0.1", port_of(third), "else"));
    show("elsewhere-received", third);
    INET("connect-again", connect4(one, "127.0.0.1", port_of(third)));
    INET("disconnect", connect(one, &(struct sockaddr){ .sa_family = AF_UNSPEC }, sizeof(struct sockaddr)));
    show_peer("disconnected-peer", one);
    show_name("disconnected-name", one);
    INET("disconnected-send", send(one, "x", 1, 0));
    INET("connect-shutdown", (connect4(one, "127.0.0.1", port_of(other)), shutdown(one, SHUT_WR)));
    INET("shut-send", send(one, "x", 1, 0));
    INET("shut-read", shutdown(one, SHUT_RD));
    INET("shut-recv", recv(one, text, 1, 0));
    show_poll("shut-poll", one, 0);
    close(one);

    // To nobody.
    int gone = udp4("127.0.0.1", 0);
    int port = port_of(gone);
    close(gone);
    one = socket(AF_INET, SOCK_DGRAM, 0);
    INET("to-nobody", to4(one, "127.0.0.1", port, "x"));
    check_sleep_ms(10);
    INET("to-nobody-again", to4(one, "127.0.0.1", port, "x"));
    REQUIRE(connect4(one, "127.0.0.1", port) == 0);
    INET("refused-send", send(one, "x", 1, 0));
    show_poll("refused-poll", one, POLLERR);
    INET("refused", send(one, "x", 1, 0));
    INET("refused-then", send(one, "x", 1, 0));
    show_poll("refused-poll-again", one, POLLERR);
    INET("refused-recv", recv(one, text, 1, 0));
    INET("refused-recv-again", recv(one, text, 1, MSG_DONTWAIT));
    REQUIRE(send(one, "x", 1, 0) == 1);
    show_poll("refused-poll-third", one, POLLERR);
    INET("refused-error", get_option(one, SOL_SOCKET, SO_ERROR));
    INET("refused-error-again", get_option(one, SOL_SOCKET, SO_ERROR));
    close(one);

    // Ports.
    port = port_of(other);
    one = socket(AF_INET, SOCK_DGRAM, 0);
    INET("same-port", bind4(one, "127.0.0.1", port));
    INET("same-port-any", bind4(one, "0.0.0.0", port));
    INET("same-port-other-address", bind4(one, "127.0.0.2", port));
    REQUIRE(to4(third, "127.0.0.2", port, "two") == 3);
    show("by-address", one);
    close(one);
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    INET("tcp-same-port", bind4(tcp, "127.0.0.1", port));
    int reuse[2];
    for (int i = 0; i < 2; i++) {
        reuse[i] = socket(AF_INET, SOCK_DGRAM, 0);
        set_option(reuse[i], SOL_SOCKET, SO_REUSEADDR, 1);
        INET("reuse", bind4(reuse[i], "127.0.0.1", i ? port_of(reuse[0]) : 0));
    }
    REQUIRE(to4(third, "127.0.0.1", port_of(reuse[0]), "last") == 4);
    show("reuse-first", reuse[0]);
    show("reuse-last", reuse[1]);
    CHECK_CHILD("unprivileged", REQUIRE(setuid(1000) == 0); INET("unprivileged-bind", bind4(socket(AF_INET, SOCK_DGRAM, 0), "127.0.0.1", 99)));
    int sharers[4], got = 0, by = 0;
    for (int i = 0; i < 4; i++) {
        sharers[i] = socket(AF_INET, SOCK_DGRAM, 0);
        set_option(sharers[i], SOL_SOCKET, SO_REUSEPORT, 1);
        INET("share", bind4(sharers[i], "127.0.0.1", i ? port_of(sharers[0]) : 0));
    }
    for (int i = 0; i < 64; i++) {
        int sender = udp4("127.0.0.1", 0);
        REQUIRE(to4(sender, "127.0.0.1", port_of(sharers[0]), "x") == 1);
        close(sender);
    }
    for (int i = 0; i < 4; i++) {
        int own = 0;
        while (recv(sharers[i], text, 1, MSG_DONTWAIT) == 1)
            own++;
        got += own;
        by += own > 0;
    }
    INET("shared", got);
    INET("shared-by", by);

    // IPv6, and IPv4 through it.
    int six = socket(AF_INET6, SOCK_DGRAM, 0), sender6 = socket(AF_INET6, SOCK_DGRAM, 0);
    REQUIRE(bind6(six, "::", 0) == 0);
    INET("six-send", to6(sender6, "::1", port_of(six), "six"));
    show("six-received", six);
    INET("four-to-six", to4(third, "127.0.0.1", port_of(six), "four"));
    show("four-received", six);
    INET("mapped", to6(sender6, "::ffff:127.0.0.1", port_of(other), "mapped"));
    show("mapped-received", other);
    INET("six-connect", connect6(sender6, "::1", port_of(six)));
    show_name("six-connected", sender6);
    address = v4("127.0.0.1", port_of(other));
    int six4 = socket(AF_INET6, SOCK_DGRAM, 0);
    INET("six-by-four", sendto(six4, "4", 1, 0, (struct sockaddr *)&address, sizeof address));
    INET("six-connect-four", connect(six4, (struct sockaddr *)&address, sizeof address));
    show_peer("six-connected-four", six4);

    // What is told beside the bytes.
    while (recv(other, text, sizeof text, MSG_DONTWAIT) >= 0)
        ;
    set_option(other, IPPROTO_IP, IP_PKTINFO, 1);
    set_option(other, IPPROTO_IP, IP_RECVTTL, 1);
    set_option(other, IPPROTO_IP, IP_RECVTOS, 1);
    REQUIRE(to4(third, "127.0.0.1", port_of(other), "told") == 4);
    show_control("told", other);
    set_option(third, IPPROTO_IP, IP_TTL, 9);
    set_option(third, IPPROTO_IP, IP_TOS, 8);
    set_option(other, SOL_SOCKET, SO_TIMESTAMP, 1);
    REQUIRE(to4(third, "127.0.0.1", port_of(other), "told") == 4);
    show_control("told-time", other);
    set_option(six, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
    set_option(six, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
    set_option(six, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    REQUIRE(send(sender6, "told6", 5, 0) == 5);
    show_control("told6", six);
    char control[CMSG_SPACE(sizeof(int))] = { 0 };
    address = v4("127.0.0.1", port_of(other));
    struct iovec out = { "ttl", 3 };
    message = (struct msghdr){ .msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &out, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = IPPROTO_IP, .cmsg_type = IP_TTL };
    *(int *)CMSG_DATA(head) = 77;
    INET("send-ttl", sendmsg(third, &message, 0));
    show_control("told-ttl", other);

    // To all, and to groups.
    one = udp4("0.0.0.0", 0);
    INET("broadcast-not", to4(third, "127.255.255.255", port_of(one), "x"));
    set_option(third, SOL_SOCKET, SO_BROADCAST, 1);
    INET("broadcast", to4(third, "127.255.255.255", port_of(one), "all"));
    show("broadcast-received", one);
    struct ip_mreq group = { .imr_interface.s_addr = htonl(INADDR_LOOPBACK) };
    inet_pton(AF_INET, "239.1.2.3", &group.imr_multiaddr);
    INET("join", setsockopt(one, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group));
    INET("join-again", setsockopt(one, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group));
    INET("group-device", setsockopt(third, IPPROTO_IP, IP_MULTICAST_IF, &group.imr_interface, sizeof group.imr_interface));
    INET("group-send", to4(third, "239.1.2.3", port_of(one), "group"));
    show("group-received", one);
    INET("leave", setsockopt(one, IPPROTO_IP, IP_DROP_MEMBERSHIP, &group, sizeof group));
    INET("leave-again", setsockopt(one, IPPROTO_IP, IP_DROP_MEMBERSHIP, &group, sizeof group));
    group.imr_multiaddr.s_addr = htonl(INADDR_LOOPBACK);
    INET("join-no-group", setsockopt(one, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group));

    // Many at once.
    struct mmsghdr many[4] = { 0 };
    struct iovec pieces[4];
    char rooms[4][8];
    address = v4("127.0.0.1", port_of(one));
    for (int i = 0; i < 4; i++) {
        pieces[i] = (struct iovec){ i == 0 ? "a" : i == 1 ? "bb" : i == 2 ? "ccc" : "dddd", i + 1 };
        many[i].msg_hdr = (struct msghdr){ .msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &pieces[i], .msg_iovlen = 1 };
    }
    INET("sendmmsg", sendmmsg(third, many, 4, 0));
    check_line("sendmmsg-lengths: %u %u %u %u\n", many[0].msg_len, many[1].msg_len, many[2].msg_len, many[3].msg_len);
    for (int i = 0; i < 4; i++) {
        pieces[i] = (struct iovec){ rooms[i], 8 };
        many[i].msg_hdr = (struct msghdr){ .msg_iov = &pieces[i], .msg_iovlen = 1 };
        many[i].msg_len = 99;
    }
    INET("recvmmsg", recvmmsg(one, many, 3, MSG_DONTWAIT, NULL));
    check_line("recvmmsg-lengths: %u %u %u %u\n", many[0].msg_len, many[1].msg_len, many[2].msg_len, many[3].msg_len);
    INET("recvmmsg-rest", recvmmsg(one, many, 4, MSG_WAITFORONE, NULL));
    INET("recvmmsg-nothing", recvmmsg(one, many, 4, MSG_DONTWAIT, NULL));
    struct timespec soon = { 0, 10000000 };
    REQUIRE(to4(third, "127.0.0.1", port_of(one), "x") == 1);
    REQUIRE(setsockopt(one, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0, 20000 }, sizeof(struct timeval)) == 0);
    INET("recvmmsg-in-time", recvmmsg(one, many, 4, 0, &soon));
    INET("sendmmsg-none", sendmmsg(third, many, 0, 0));
    many[0].msg_hdr = (struct msghdr){ .msg_iov = &pieces[0], .msg_iovlen = 1 };
    INET("sendmmsg-first-fails", sendmmsg(third, many, 2, 0));

    // What does not fit is lost.
    REQUIRE(set_option(one, SOL_SOCKET, SO_RCVBUF, 4096) == 0);
    int lost = 0;
    for (int i = 0; i < 1000; i++)
        REQUIRE(to4(third, "127.0.0.1", port_of(one), "x") == 1);
    while (recv(one, text, 1, MSG_DONTWAIT) == 1)
        lost++;
    CHECK_TRUE("some-are-lost", lost > 0 && lost < 1000);
    return 0;
}
