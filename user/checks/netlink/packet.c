// Packet sockets: what can be set, and the programs that choose among packets: packet(7).
#include "../check.h"
#include "../netlink.h"
#include <sys/mman.h>

static int attach(int fd, struct sock_filter *program, unsigned len)
{
    struct sock_fprog all = { len, program };
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof all);
}

#define ATTACH(fd, ...) attach(fd, (struct sock_filter[]){ __VA_ARGS__ }, sizeof((struct sock_filter[]){ __VA_ARGS__ }) / sizeof(struct sock_filter))

int main(void)
{
    INET("stream", socket(AF_PACKET, SOCK_STREAM, 0));
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    INET("raw", fd >= 0);
    INET("type", get_option(fd, SOL_SOCKET, SO_TYPE));
    INET("domain", get_option(fd, SOL_SOCKET, SO_DOMAIN));
    char buffer[2048];
    INET("nothing", recv(fd, buffer, sizeof buffer, MSG_DONTWAIT));
    struct sockaddr_ll name = { .sll_family = AF_PACKET, .sll_protocol = htons(0x88b5), .sll_ifindex = 1 };
    socklen_t len = sizeof name;
    INET("bind", bind(fd, (struct sockaddr *)&name, sizeof name));
    INET("name", getsockname(fd, (struct sockaddr *)&name, &len));
    check_line("named: %d bytes, family %d protocol %#x device %d type %d, address of %d\n", (int)len, name.sll_family, ntohs(name.sll_protocol), name.sll_ifindex, name.sll_hatype, name.sll_halen);
    name.sll_ifindex = 4711;
    INET("bind-none", bind(fd, (struct sockaddr *)&name, sizeof name) == -1 ? errno == ENODEV : -2);
    name.sll_family = AF_INET;
    INET("bind-family", bind(fd, (struct sockaddr *)&name, sizeof name));
    INET("bind-short", bind(fd, (struct sockaddr *)&name, 8));
    INET("listen", listen(fd, 1));
    INET("connect", connect(fd, (struct sockaddr *)&name, sizeof name));
    INET("peer", getpeername(fd, (struct sockaddr *)&name, &len));
    // Programs.
    INET("filter", ATTACH(fd, BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x800, 0, 1), BPF_STMT(BPF_RET | BPF_K, -1), BPF_STMT(BPF_RET | BPF_K, 0)));
    INET("filter-none", attach(fd, NULL, 0));
    static struct sock_filter longest[4096];
    for (int i = 0; i < 4096; i++)
        longest[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    // How much a program may take is a setting (net.core.optmem_max).
    CHECK_TRUE("filter-long", attach(fd, longest, 4096) == 0 || errno == ENOMEM);
    INET("filter-too-long", attach(fd, longest, 4097));
    INET("filter-no-memory", attach(fd, (void *)16, 2));
    INET("filter-no-end", ATTACH(fd, BPF_STMT(BPF_LD | BPF_IMM, 1)));
    INET("filter-jumps-out", ATTACH(fd, BPF_STMT(BPF_JMP | BPF_JA, 1), BPF_STMT(BPF_RET | BPF_K, 0)));
    INET("filter-jumps-far", ATTACH(fd, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0)));
    INET("filter-divides", ATTACH(fd, BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0)));
    INET("filter-shifts", ATTACH(fd, BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 32), BPF_STMT(BPF_RET | BPF_K, 0)));
    INET("filter-unwritten", ATTACH(fd, BPF_STMT(BPF_LD | BPF_MEM, 3), BPF_STMT(BPF_RET | BPF_A, 0)));
    INET("filter-written", ATTACH(fd, BPF_STMT(BPF_ST, 3), BPF_STMT(BPF_LD | BPF_MEM, 3), BPF_STMT(BPF_RET | BPF_A, 0)));
    INET("filter-word", ATTACH(fd, BPF_STMT(BPF_ST, 16), BPF_STMT(BPF_RET | BPF_A, 0)));
    INET("filter-unknown", ATTACH(fd, { 0xff, 0, 0, 0 }, BPF_STMT(BPF_RET | BPF_A, 0)));
    INET("filter-beside", ATTACH(fd, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_PKTTYPE), BPF_STMT(BPF_RET | BPF_A, 0)));
    INET("filter-beside-unknown", ATTACH(fd, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_MAX), BPF_STMT(BPF_RET | BPF_A, 0)));
    INET("detach", set_option(fd, SOL_SOCKET, SO_DETACH_FILTER, 0));
    INET("detach-again", set_option(fd, SOL_SOCKET, SO_DETACH_FILTER, 0));
    int locked = socket(AF_PACKET, SOCK_RAW, 0);
    INET("lock-not", set_option(locked, SOL_SOCKET, SO_LOCK_FILTER, 0));
    INET("lock-filter", ATTACH(locked, BPF_STMT(BPF_RET | BPF_K, 0)));
    INET("lock", set_option(locked, SOL_SOCKET, SO_LOCK_FILTER, 1));
    INET("lock-is", get_option(locked, SOL_SOCKET, SO_LOCK_FILTER));
    INET("lock-again", set_option(locked, SOL_SOCKET, SO_LOCK_FILTER, 1));
    INET("unlock", set_option(locked, SOL_SOCKET, SO_LOCK_FILTER, 0));
    INET("locked-attach", ATTACH(locked, BPF_STMT(BPF_RET | BPF_K, 0)));
    INET("locked-attach-none", attach(locked, NULL, 0));
    INET("locked-detach", set_option(locked, SOL_SOCKET, SO_DETACH_FILTER, 0));
    close(locked);
    // Options.
    struct tpacket_stats statistics = { 9, 9 };
    len = sizeof statistics;
    INET("statistics", getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &len));
    check_line("statistics-are: %u %u\n", statistics.tp_packets, statistics.tp_drops);
    INET("auxdata", set_option(fd, SOL_PACKET, PACKET_AUXDATA, 1));
    INET("auxdata-is", get_option(fd, SOL_PACKET, PACKET_AUXDATA));
    struct packet_mreq member = { .mr_ifindex = 1, .mr_type = PACKET_MR_PROMISC };
    INET("promiscuous", setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &member, sizeof member));
    member.mr_ifindex = 4711;
    INET("promiscuous-none", setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &member, sizeof member) == -1 ? errno == ENODEV : -2);
    INET("unknown-option", set_option(fd, SOL_PACKET, 99, 1));
    // Rings.
    int version = TPACKET_V2;
    len = sizeof version;
    INET("header", getsockopt(fd, SOL_PACKET, PACKET_HDRLEN, &version, &len) ? -1 : version);
    INET("version", set_option(fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2));
    INET("reserve", set_option(fd, SOL_PACKET, PACKET_RESERVE, 4));
    struct tpacket_req ring = { 4096, 4, 2048, 9 };
    INET("ring-uneven", setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring));
    ring = (struct tpacket_req){ 4000, 4, 2000, 8 };
    INET("ring-no-pages", setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring));
    ring = (struct tpacket_req){ 4096, 4, 16, 1024 };
    INET("ring-small", setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring));
    ring = (struct tpacket_req){ 4096, 4, 2048, 8 };
    INET("ring", setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring));
    char *mapped = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(mapped != MAP_FAILED);
    CHECK_TRUE("ring-keeps-pages", madvise(mapped, 4096, MADV_REMOVE) == -1);
    INET("ring-again", setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring));
    INET("version-late", set_option(fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2));
    close(fd);
    // Those that end before anybody has them leave no trace.
    for (int i = 0; i < 80; i++) {
        int pair[2];
        REQUIRE(socketpair(AF_PACKET, SOCK_RAW, htons(3), pair) == -1 && errno == EOPNOTSUPP);
    }
    for (int i = 0; i < 80; i++) {
        int pair[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
        int sent = socket(AF_PACKET, SOCK_RAW, htons(3));
        REQUIRE(sent >= 0);
        union { char bytes[CMSG_SPACE(sizeof sent)]; struct cmsghdr head; } control = { 0 };
        struct iovec piece = { "x", 1 };
        struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
        control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof sent), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
        memcpy(CMSG_DATA(&control.head), &sent, sizeof sent);
        REQUIRE(sendmsg(pair[0], &message, 0) == 1);
        close(sent);
        close(pair[0]);
        close(pair[1]);
    }
    CHECK_CHILD("ordinary-user", {
        REQUIRE(setgid(65534) == 0 && setuid(65534) == 0);
        INET("ordinary", socket(AF_PACKET, SOCK_RAW, 0));
    });
    return 0;
}
