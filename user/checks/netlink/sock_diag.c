// Which sockets there are, as ss(8) asks: sock_diag(7).
#include "../check.h"
#include "../netlink.h"
#include <sys/un.h>


// The next message of a dump, or NULL at its end.
struct dump {
    int fd;
    char buffer[32768];
    ssize_t len;
    struct nlmsghdr *at;
};

static struct nlmsghdr *next(struct dump *dump)
{
    for (;;) {
        if (dump->at && NLMSG_OK(dump->at, dump->len)) {
            struct nlmsghdr *message = dump->at;
            dump->at = NLMSG_NEXT(dump->at, dump->len);
            if (message->nlmsg_type == NLMSG_DONE)
                return NULL;
            REQUIRE(message->nlmsg_type == SOCK_DIAG_BY_FAMILY && message->nlmsg_seq == 42);
            return message;
        }
        dump->len = recv(dump->fd, dump->buffer, sizeof dump->buffer, 0);
        REQUIRE(dump->len > 0);
        dump->at = (struct nlmsghdr *)dump->buffer;
    }
}

static struct request request;

static struct inet_diag_req_v2 *of_inet(int family, int protocol, int states, int flags)
{
    struct inet_diag_req_v2 *head = begin(&request, SOCK_DIAG_BY_FAMILY, flags, sizeof *head);
    head->sdiag_family = family;
    head->sdiag_protocol = protocol;
    head->idiag_states = states;
    head->id.idiag_cookie[0] = head->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return head;
}

// Those of a dump that have one of these ports at one of their ends.
static void show_inet(const char *name, int fd, int port, int own)
{
    struct dump dump = { .fd = fd };
    struct nlmsghdr *message;
    int found = 0;
    ask(fd, &request);
    while ((message = next(&dump))) {
        struct inet_diag_msg *socket = NLMSG_DATA(message);
        if (ntohs(socket->id.idiag_sport) != port && ntohs(socket->id.idiag_dport) != port)
            continue;
        char ip[64], other[64];
        inet_ntop(socket->idiag_family, socket->id.idiag_src, ip, sizeof ip);
        inet_ntop(socket->idiag_family, socket->id.idiag_dst, other, sizeof other);
        int is_server = ntohs(socket->id.idiag_sport) == port;
        int has_peer = socket->id.idiag_dport != 0;
        int shutdown = find(message, sizeof *socket, INET_DIAG_SHUTDOWN) ? *(unsigned char *)RTA_DATA(find(message, sizeof *socket, INET_DIAG_SHUTDOWN)) : -1;
        check_line("%s: family %d state %d %s %s%s%s queue %d user %d shutdown %d%s%s%s\n", name, socket->idiag_family, socket->idiag_state, ip, other,
                   is_server ? " server" : " client", has_peer ? " with a peer" : "", (int)socket->idiag_rqueue, (int)socket->idiag_uid, shutdown,
                   own >= 0 && socket->idiag_inode == (unsigned)inode_of(own) ? ", the one" : "",
                   find(message, sizeof *socket, INET_DIAG_INFO) ? ", with info" : "",
                   find(message, sizeof *socket, INET_DIAG_CONG) ? ", with a congestion control" : "");
        found++;
    }
    check_line("%s: %d found\n", name, found);
}

// A program that compares a port.
static void add_filter(unsigned char code, unsigned short port, int no)
{
    struct inet_diag_bc_op program[2] = { { code, sizeof program, no }, { 0, 0, port } };
    add(&request, INET_DIAG_REQ_BYTECODE, program, sizeof program);
}

enum { CROWD = 300 };

// Whether sockets are listed once each.
static int is_each_once(const int *listed)
{
    for (int i = 0; i < CROWD; i++)
        if (listed[i] != 1)
            return 0;
    return 1;
}

// Many sockets that share a port.
static void show_crowd(int fd)
{
    static int sockets[CROWD], listed[CROWD];
    static unsigned long inodes[CROWD];
    int port = 0;
    for (int i = 0; i < CROWD; i++) {
        sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
        REQUIRE(sockets[i] >= 0 && set_option(sockets[i], SOL_SOCKET, SO_REUSEPORT, 1) == 0);
        struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        REQUIRE(bind(sockets[i], (struct sockaddr *)&name, sizeof name) == 0);
        port = port_of(sockets[i]);
        inodes[i] = inode_of(sockets[i]);
    }
    of_inet(AF_INET, IPPROTO_UDP, -1, NLM_F_DUMP);
    ask(fd, &request);
    struct dump dump = { .fd = fd };
    struct nlmsghdr *message;
    while ((message = next(&dump)))
        for (int i = 0; i < CROWD; i++)
            listed[i] += ((struct inet_diag_msg *)NLMSG_DATA(message))->idiag_inode == inodes[i];
    CHECK_TRUE("crowd", is_each_once(listed));
    memset(listed, 0, sizeof listed);
    char line[256];
    FILE *file = fopen("/proc/net/udp", "r");
    REQUIRE(file);
    while (fgets(line, sizeof line, file)) {
        unsigned long inode;
        if (sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %lu", &inode) == 1)
            for (int i = 0; i < CROWD; i++)
                listed[i] += inode == inodes[i];
    }
    fclose(file);
    CHECK_TRUE("crowd-proc", is_each_once(listed));
    for (int i = 0; i < CROWD; i++)
        close(sockets[i]);
}

// What is left of a connection whose end at the listener closed first.
static void show_left(int fd)
{
    int listener = listener4(1), port = port_of(listener), client = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect4(client, "127.0.0.1", port) == 0);
    int own = port_of(client), server = accept(listener, NULL, NULL);
    char byte, buffer[4096];
    close(listener), close(server);
    REQUIRE(recv(client, &byte, 1, 0) == 0);
    check_sleep_ms(20);
    of_inet(AF_INET, IPPROTO_TCP, 1 << 5, NLM_F_DUMP);
    show_inet("fin-wait-2", fd, port, -1);
    close(client);
    check_sleep_ms(20);
    of_inet(AF_INET, IPPROTO_TCP, 1 << 5, NLM_F_DUMP);
    show_inet("no-fin-wait-2", fd, port, -1);
    of_inet(AF_INET, IPPROTO_TCP, 1 << 6, NLM_F_DUMP);
    show_inet("time-wait", fd, port, -1);
    struct inet_diag_req_v2 *head = of_inet(AF_INET, IPPROTO_TCP, 0, 0);
    head->id.idiag_sport = htons(port), head->id.idiag_dport = htons(own);
    head->id.idiag_src[0] = head->id.idiag_dst[0] = htonl(INADDR_LOOPBACK);
    ask(fd, &request);
    REQUIRE(recv(fd, buffer, sizeof buffer, 0) > 0);
    struct inet_diag_msg *one = NLMSG_DATA((struct nlmsghdr *)buffer);
    check_line("time-wait-one: state %d timer %d %s inode %u\n", one->idiag_state, one->idiag_timer, one->idiag_expires > 0 && one->idiag_expires <= 60000 ? "in a minute" : "late", one->idiag_inode);
}

int main(void)
{
    int fd = netlink(NETLINK_SOCK_DIAG);
    show_crowd(fd);
    show_left(fd);
    // TCP.
    int listener = listener4(5);
    int port = port_of(listener);
    of_inet(AF_INET, IPPROTO_TCP, -1, NLM_F_DUMP);
    show_inet("listener", fd, port, listener);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect4(client, "127.0.0.1", port) == 0);
    int server = accept(listener, NULL, NULL);
    REQUIRE(send(client, "waiting", 7, 0) == 7);
    of_inet(AF_INET, IPPROTO_TCP, 1 << 1, NLM_F_DUMP)->id.idiag_sport = htons(port);
    show_inet("server", fd, port, server);
    of_inet(AF_INET, IPPROTO_TCP, 1 << 1, NLM_F_DUMP)->id.idiag_dport = htons(port);
    show_inet("client", fd, port, client);
    of_inet(AF_INET, IPPROTO_TCP, 1 << 10, NLM_F_DUMP);
    show_inet("listeners", fd, port, listener);
    of_inet(AF_INET, IPPROTO_TCP, 1 << 7, NLM_F_DUMP);
    show_inet("closed", fd, port, -1);
    of_inet(AF_INET6, IPPROTO_TCP, -1, NLM_F_DUMP);
    show_inet("other-family", fd, port, -1);
    of_inet(AF_INET, IPPROTO_TCP, 1 << 1, NLM_F_DUMP)->idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
    add_filter(INET_DIAG_BC_D_EQ, port, 12);
    show_inet("filter", fd, port, client);
    of_inet(AF_INET, IPPROTO_TCP, 1 << 1, NLM_F_DUMP);
    add_filter(INET_DIAG_BC_S_LE, port - 1, 12);
    REQUIRE(port > 1);
    of_inet(AF_INET, IPPROTO_TCP, -1, NLM_F_DUMP);
    add_filter(INET_DIAG_BC_D_EQ, port, 10);
    ask(fd, &request);
    show_outcome("filter-wrong-jump", fd);
    of_inet(AF_INET, IPPROTO_TCP, -1, NLM_F_DUMP);
    add_filter(77, port, 12);
    ask(fd, &request);
    show_outcome("filter-unknown", fd);
    REQUIRE(shutdown(client, SHUT_WR) == 0);
    CHECK_SOON("half-closed", ({
        struct tcp_info info;
        socklen_t len = sizeof info;
        getsockopt(server, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 && info.tcpi_state == 8;
    }));
    of_inet(AF_INET, IPPROTO_TCP, 1 << 8, NLM_F_DUMP);
    show_inet("close-wait", fd, port, server);
    // One of them.
    struct inet_diag_req_v2 *head = of_inet(AF_INET, IPPROTO_TCP, 0, 0);
    head->id.idiag_sport = htons(port);
    head->id.idiag_src[0] = htonl(INADDR_LOOPBACK);
    ask(fd, &request);
    char buffer[4096];
    REQUIRE(recv(fd, buffer, sizeof buffer, 0) > 0);
    struct nlmsghdr *answer = (struct nlmsghdr *)buffer;
    struct inet_diag_msg *one = NLMSG_DATA(answer);
    check_line("one: type %d flags %d state %d %s\n", answer->nlmsg_type, answer->nlmsg_flags, one->idiag_state, one->idiag_inode == inode_of(listener) ? "the one" : "another");
    unsigned long long cookie = 0;
    socklen_t len = sizeof cookie;
    REQUIRE(getsockopt(listener, SOL_SOCKET, SO_COOKIE, &cookie, &len) == 0);
    CHECK_TRUE("cookie", one->id.idiag_cookie[0] == (unsigned)cookie && one->id.idiag_cookie[1] == (unsigned)(cookie >> 32));
    head->id.idiag_cookie[0] = 0x7fffffff;
    ask(fd, &request);
    show_outcome("one-stale", fd);
    head = of_inet(AF_INET, IPPROTO_TCP, 0, 0);
    head->id.idiag_sport = htons(1);
    head->id.idiag_src[0] = htonl(INADDR_LOOPBACK);
    ask(fd, &request);
    show_outcome("one-none", fd);
    // UDP.
    int udp = socket(AF_INET6, SOCK_DGRAM, 0);
    REQUIRE(bind6(udp, "::1", 0) == 0);
    of_inet(AF_INET6, IPPROTO_UDP, -1, NLM_F_DUMP);
    show_inet("udp", fd, port_of(udp), udp);
    // What is wrong.
    of_inet(AF_INET, 99, -1, NLM_F_DUMP);
    ask(fd, &request);
    show_outcome("no-such-protocol", fd);
    begin(&request, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, 4);
    request.body[0] = AF_INET;
    ask(fd, &request);
    show_outcome("short", fd);
    *(char *)begin(&request, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, 56) = 99;
    ask(fd, &request);
    show_outcome("no-family", fd);
    begin(&request, 4711, 0, 56);
    ask(fd, &request);
    show_outcome("no-kind", fd);

    // Unix.
    int pair[2], unix_listener = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0 && send(pair[0], "abc", 3, 0) == 3);
    struct sockaddr_un name = { AF_UNIX, "there" };
    REQUIRE(bind(unix_listener, (struct sockaddr *)&name, sizeof name.sun_family + 6) == 0 && listen(unix_listener, 3) == 0);
    struct unix_diag_req *of_unix = begin(&request, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, sizeof *of_unix);
    of_unix->sdiag_family = AF_UNIX;
    of_unix->udiag_states = -1;
    of_unix->udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN;
    struct dump dump = { .fd = fd };
    struct nlmsghdr *message;
    ask(fd, &request);
    char lines[3][256] = { "", "", "" };
    while ((message = next(&dump))) {
        struct unix_diag_msg *socket = NLMSG_DATA(message);
        int which = socket->udiag_ino == inode_of(pair[0]) ? 0 : socket->udiag_ino == inode_of(pair[1]) ? 1 : socket->udiag_ino == inode_of(unix_listener) ? 2 : -1;
        if (which < 0)
            continue;
        struct rtattr *at = find(message, sizeof *socket, UNIX_DIAG_NAME), *peer = find(message, sizeof *socket, UNIX_DIAG_PEER);
        struct unix_diag_rqlen *queues = RTA_DATA(find(message, sizeof *socket, UNIX_DIAG_RQLEN));
        int is_pair = peer && which < 2 && *(unsigned *)RTA_DATA(peer) == inode_of(pair[1 - which]);
        snprintf(lines[which], sizeof lines[which], "type %d state %d name %s%s queue %d", socket->udiag_type, socket->udiag_state,
                 at ? (char *)RTA_DATA(at) : "-", is_pair ? " its pair" : peer ? " another" : "", which == 0 ? 0 : (int)queues->udiag_rqueue);
    }
    for (int i = 0; i < 3; i++)
        check_line("unix-%d: %s\n", i, lines[i]);
    of_unix = begin(&request, SOCK_DIAG_BY_FAMILY, 0, sizeof *of_unix);
    of_unix->sdiag_family = AF_UNIX;
    of_unix->udiag_ino = 0x7ffffff0;
    of_unix->udiag_cookie[0] = of_unix->udiag_cookie[1] = -1;
    ask(fd, &request);
    show_outcome("unix-none", fd);

    // /proc/net/unix has them too.
    FILE *file = fopen("/proc/net/unix", "r");
    char line[512];
    REQUIRE(file);
    while (fgets(line, sizeof line, file)) {
        char *at = strstr(line, " there\n");
        unsigned long inode;
        if (at && sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &inode) == 1 && inode == inode_of(unix_listener))
            CHECK_TRUE("proc-unix", strstr(line, " 00000000 00010000 0001 01 ") != NULL);
    }
    fclose(file);
    return 0;
}
