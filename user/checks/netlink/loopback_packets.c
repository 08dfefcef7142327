// What packet sockets see on the loopback device: datagrams, echo requests and connections, as they go and as they come: packet(7).
#include "../check.h"
#include "../netlink.h"

enum { ALL = 3, IPV4 = 0x800, IPV6 = 0x86dd, OUTGOING = 4 };
enum { FIN = 1, SYN = 2, RST = 4, PUSH = 8, ACK = 16 };
struct auxdata { uint32_t status, len, copied; uint16_t mac, net, tag, tag_protocol; };

struct seen {
    struct sockaddr_ll from;
    unsigned status, len;
    unsigned char bytes[70000];
    // The packet, its protocol, and what is behind the header.
    const unsigned char *packet, *body;
    int protocol, body_len;
};

static unsigned sum(const unsigned char *bytes, int len, unsigned long start)
{
    for (int i = 0; i < len; i++)
        start += i % 2 ? bytes[i] : bytes[i] << 8;
    while (start >> 16)
        start = (start & 0xffff) + (start >> 16);
    return start;
}

static unsigned word(const unsigned char *at) { return at[0] << 8 | at[1]; }
static unsigned long_word(const unsigned char *at) { return (unsigned)word(at) << 16 | word(at + 2); }

// The sum of the pseudo header.
static unsigned pseudo(const struct seen *seen)
{
    int v6 = seen->packet[0] >> 4 == 6;
    return sum(seen->packet + (v6 ? 8 : 12), v6 ? 32 : 8, seen->protocol + seen->body_len);
}

// Whether the checksums are right, where one is left that of the pseudo header.
static int is_right(const struct seen *seen)
{
    if (seen->packet[0] >> 4 == 4 && sum(seen->packet, 20, 0) != 0xffff)
        return 0;
    if (seen->protocol == IPPROTO_ICMP)
        return sum(seen->body, seen->body_len, 0) == 0xffff;
    unsigned field = word(seen->body + (seen->protocol == IPPROTO_UDP ? 6 : seen->protocol == IPPROTO_TCP ? 16 : 2));
    if (seen->status & 8)
        return field == pseudo(seen);
    return sum(seen->body, seen->body_len, pseudo(seen)) == 0xffff;
}

// The next frame; waits for it if `waits`.
static int next(int fd, int raw, int waits, struct seen *seen)
{
    struct iovec piece = { seen->bytes, sizeof seen->bytes };
    union { char bytes[256]; struct cmsghdr align; } control;
    struct msghdr message = { .msg_name = &seen->from, .msg_namelen = sizeof seen->from, .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    ssize_t len = recvmsg(fd, &message, waits ? 0 : MSG_DONTWAIT);
    if (len < 0)
        return 0;
    seen->len = len;
    seen->status = 0;
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
        if (one->cmsg_level == SOL_PACKET && one->cmsg_type == PACKET_AUXDATA)
            seen->status = ((struct auxdata *)CMSG_DATA(one))->status;
    seen->packet = seen->bytes + (raw ? 14 : 0);
    int v6 = seen->packet[0] >> 4 == 6;
    seen->protocol = seen->packet[v6 ? 6 : 9];
    seen->body = seen->packet + (v6 ? 40 : 20);
    seen->body_len = v6 ? (int)word(seen->packet + 4) : (int)word(seen->packet + 2) - 20;
    return 1;
}

// Whether a frame is about one of two ports, or the error about one.
static int is_about(const struct seen *seen, int port)
{
    const unsigned char *body = seen->body;
    if (seen->protocol == IPPROTO_ICMP || seen->protocol == IPPROTO_ICMPV6) {
        int v6 = seen->protocol == IPPROTO_ICMPV6;
        if (body[0] == (v6 ? 1 : 3))
            body += v6 ? 48 : 28;
        else
            return port == 0;
    } else if (port == 0) {
        return 0;
    }
    return (int)word(body) == port || (int)word(body + 2) == port;
}

static int open_packet(int kind, int protocol, int device)
{
    int fd = socket(AF_PACKET, kind, 0);
    struct sockaddr_ll name = { .sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = device };
    REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&name, sizeof name) == 0);
    REQUIRE(set_option(fd, SOL_PACKET, PACKET_AUXDATA, 1) == 0);
    return fd;
}

static struct seen seen;

static void show(const char *name, int fd, int raw, int port)
{
    int count = 0;
    while (next(fd, raw, 0, &seen)) {
        if (!is_about(&seen, port))
            continue;
        static const unsigned char nobody[12];
        check_line("%s-%d: %s of %#x, device %d type %d, address of %d, link %s, protocol %d, %d bytes, %s, checksums %s\n", name, count++,
                   seen.from.sll_pkttype == OUTGOING ? "outgoing" : seen.from.sll_pkttype == 0 ? "host" : "?", ntohs(seen.from.sll_protocol), seen.from.sll_ifindex,
                   seen.from.sll_hatype, seen.from.sll_halen, raw ? memcmp(seen.bytes, nobody, 12) ? "?" : "zeros" : "none", seen.protocol, seen.body_len,
                   seen.status & 8 ? "left" : "there", is_right(&seen) ? "right" : "wrong");
    }
    check_line("%s: %d frames\n", name, count);
}

// The segments of a connection that go, but those that only acknowledge; their numbers begin with 0 where each end's SYN is.
static void show_segments(const char *name, int fd, int client)
{
    unsigned first[2] = { 0 }, has[2] = { 0 }, acknowledged = 0, right = 1, copies = 0;
    int count = 0;
    while (next(fd, 1, 0, &seen)) {
        if (seen.protocol != IPPROTO_TCP || !is_about(&seen, client))
            continue;
        right &= is_right(&seen);
        if (seen.from.sll_pkttype != OUTGOING) {
            copies++;
            continue;
        }
        copies--;
        int is_client = (int)word(seen.body) == client, flags = seen.body[13] & (FIN | SYN | RST | ACK), header = seen.body[12] >> 4 << 2;
        int bytes = seen.body_len - header;
        unsigned sequence = long_word(seen.body + 4), acknowledgment = long_word(seen.body + 8);
        if (flags & SYN)
            first[!is_client] = sequence, has[!is_client] = 1;
        if (flags == ACK && !bytes) {
            acknowledged++;
            continue;
        }
        check_line("%s-%d: %s%s%s%s%s, %d bytes \"%.*s\", number %u", name, count++, is_client ? "client" : "server", flags & SYN ? " SYN" : "", flags & FIN ? " FIN" : "",
                   flags & RST ? " RST" : "", flags & ACK ? " ACK" : "", bytes, bytes < 20 ? bytes : 0, seen.body + header, has[!is_client] ? sequence - first[!is_client] : sequence);
        if (flags & ACK)
            check_line(", acknowledges %u", acknowledgment - first[is_client]);
        check_line("\n");
    }
    check_line("%s: %d segments, %s, checksums %s, %s\n", name, count, acknowledged ? "others acknowledge" : "no others", right ? "right" : "wrong", copies ? "not each has come" : "each has come");
}

static void datagrams(const char *name, int family, const char *ip)
{
    int watcher = open_packet(SOCK_RAW, ALL, 1);
    int to = socket(family, SOCK_DGRAM, 0), from = socket(family, SOCK_DGRAM, 0);
    REQUIRE((family == AF_INET ? bind4(to, ip, 0) : bind6(to, ip, 0)) == 0);
    int port = port_of(to);
    REQUIRE((family == AF_INET ? connect4(from, ip, port) : connect6(from, ip, port)) == 0);
    REQUIRE(send(from, "hello", 5, 0) == 5);
    char buffer[16];
    REQUIRE(recv(to, buffer, sizeof buffer, 0) == 5);
    show(name, watcher, 1, port);
    close(to);
    REQUIRE(send(from, "nobody", 6, 0) == 6);
    INET("nobody", recv(from, buffer, sizeof buffer, 0));
    show("nobody", watcher, 1, port);
    close(from);
    close(watcher);
}

static void echo(void)
{
    int watcher = open_packet(SOCK_DGRAM, ALL, 1), fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    unsigned char request[12] = { 8, 0, 0, 0, 0x47, 0x11, 0, 1, 'e', 'c', 'h', 'o' }, buffer[64];
    unsigned check = 0xffff ^ sum(request, sizeof request, 0);
    request[2] = check >> 8, request[3] = check;
    struct sockaddr_in to = v4("127.0.0.1", 0);
    REQUIRE(sendto(fd, request, sizeof request, 0, (struct sockaddr *)&to, sizeof to) == sizeof request);
    do
        REQUIRE(recv(fd, buffer, sizeof buffer, 0) > 0);
    while (buffer[20] != 0);
    show("echo", watcher, 0, 0);
    close(fd);
    close(watcher);
}

static int connect_client(int family, const char *ip, int port, int *client)
{
    *client = socket(family, SOCK_STREAM, 0);
    return family == AF_INET ? connect4(*client, ip, port) : connect6(*client, ip, port);
}

static void until_end(int fd)
{
    char buffer[4096];
    while (recv(fd, buffer, sizeof buffer, 0) > 0)
        ;
}

static void connection(const char *name, int family, const char *ip)
{
    int watcher = open_packet(SOCK_RAW, ALL, 0), listener = socket(family, SOCK_STREAM, 0), client, server;
    REQUIRE((family == AF_INET ? bind4(listener, ip, 0) : bind6(listener, ip, 0)) == 0 && listen(listener, 4) == 0);
    int port = port_of(listener);
    char buffer[32];

    REQUIRE(connect_client(family, ip, port, &client) == 0);
    int own = port_of(client);
    REQUIRE((server = accept(listener, NULL, NULL)) >= 0);
    REQUIRE(send(client, "hello", 5, 0) == 5 && recv(server, buffer, 5, MSG_WAITALL) == 5);
    REQUIRE(send(server, "hi!", 3, 0) == 3 && recv(client, buffer, 3, MSG_WAITALL) == 3);
    REQUIRE(shutdown(client, SHUT_WR) == 0);
    until_end(server);
    REQUIRE(send(server, "bye", 3, 0) == 3 && recv(client, buffer, 3, MSG_WAITALL) == 3);
    close(server);
    until_end(client);
    close(client);
    show_segments(name, watcher, own);

    // One that has read something when it closes, and one that does not want to linger.
    REQUIRE(connect_client(family, ip, port, &client) == 0);
    own = port_of(client);
    REQUIRE((server = accept(listener, NULL, NULL)) >= 0);
    struct linger at_once = { 1, 0 };
    REQUIRE(setsockopt(server, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    REQUIRE(send(client, "to nobody", 9, 0) == 9 && recv(server, buffer, 9, MSG_WAITALL) == 9);
    close(server);
    INET("reset", recv(client, buffer, sizeof buffer, 0));
    close(client);
    show_segments("reset", watcher, own);

    // One whose peer is gone.
    REQUIRE(connect_client(family, ip, port, &client) == 0);
    own = port_of(client);
    REQUIRE((server = accept(listener, NULL, NULL)) >= 0);
    close(server);
    until_end(client);
    INET("late", send(client, "late", 4, 0));
    INET("later", send(client, "later", 5, MSG_NOSIGNAL));
    close(client);
    show_segments("late", watcher, own);

    close(listener);
    client = socket(family, SOCK_STREAM, 0);
    REQUIRE((family == AF_INET ? bind4(client, ip, 0) : bind6(client, ip, 0)) == 0);
    own = port_of(client);
    INET("refused", family == AF_INET ? connect4(client, ip, port) : connect6(client, ip, port));
    close(client);
    show_segments("refused", watcher, own);
    close(watcher);
}

// What many bytes look like that come: each once, and in order.
static void many(void)
{
    enum { COUNT = 100000 };
    static unsigned char bytes[COUNT], copy[COUNT];
    for (int i = 0; i < COUNT; i++)
        bytes[i] = i * 7 + i / 251;
    int watcher = open_packet(SOCK_RAW, IPV4, 1), ends[2];
    connected4(ends);
    int own = port_of(ends[0]), done = 0, outgoing = 0;
    unsigned first = 0;
    for (int sent = 0; sent < COUNT; sent += 20000) {
        REQUIRE(send(ends[0], bytes + sent, 20000, 0) == 20000 && recv(ends[1], copy, 20000, MSG_WAITALL) == 20000);
        while (next(watcher, 1, 0, &seen)) {
            if (seen.protocol != IPPROTO_TCP || (int)word(seen.body) != own)
                continue;
            outgoing += seen.from.sll_pkttype == OUTGOING;
            int header = seen.body[12] >> 4 << 2, len = seen.body_len - header;
            if (seen.body[13] & SYN)
                first = long_word(seen.body + 4) + 1;
            else if (len)
                REQUIRE(long_word(seen.body + 4) - first == (unsigned)done && memcmp(seen.body + header, bytes + done, len) == 0);
            done += len;
        }
    }
    check_line("many: %d bytes, %d outgoing\n", done, outgoing);
    close(ends[0]), close(ends[1]), close(watcher);
}

int main(void)
{
    datagrams("udp", AF_INET, "127.0.0.1");
    datagrams("udp6", AF_INET6, "::1");
    echo();
    connection("tcp", AF_INET, "127.0.0.1");
    connection("tcp6", AF_INET6, "::1");
    many();
    return 0;
}
