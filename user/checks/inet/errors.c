// What was sent and did not arrive: IP_RECVERR, IPV6_RECVERR and MSG_ERRQUEUE of ip(7).
#include "../check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

// As in ip(7).
struct extended_error {
    uint32_t ee_errno;
    uint8_t ee_origin, ee_type, ee_code, ee_pad;
    uint32_t ee_info, ee_data;
};

static int family;

static socklen_t size(void)
{
    return family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

// The loopback address with a port that nobody has.
static union address nobody(void)
{
    union address address = { .any = { .sa_family = (sa_family_t)family } };
    if (family == AF_INET)
        address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        address.v6.sin6_addr = in6addr_loopback;
    int fd = socket(family, SOCK_DGRAM, 0);
    socklen_t length = size();
    REQUIRE(bind(fd, &address.any, length) == 0 && getsockname(fd, &address.any, &length) == 0);
    close(fd);
    return address;
}

static int sender(int wants)
{
    int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    REQUIRE(fd >= 0);
    if (family == AF_INET)
        CHECK("wants", setsockopt(fd, IPPROTO_IP, IP_RECVERR, &wants, sizeof wants));
    else
        CHECK("wants", setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &wants, sizeof wants));
    return fd;
}

static int events(int fd)
{
    struct pollfd one = { .fd = fd, .events = POLLIN };
    return poll(&one, 1, 0) == 1 ? one.revents : 0;
}

static int pending(int fd)
{
    int error = 0;
    socklen_t length = sizeof error;
    REQUIRE(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0);
    return error;
}

// Takes one from the queue, and tells what is in it.
static void take(int fd, const union address *to, size_t room, int flags)
{
    char bytes[2048] = { 0 };
    union {
        struct cmsghdr header;
        char bytes[512];
    } control;
    union address name = { .any = { .sa_family = 0 } };
    struct iovec piece = { bytes, room };
    struct msghdr message = { .msg_name = &name, .msg_namelen = sizeof name, .msg_iov = &piece, .msg_iovlen = 1,
                              .msg_control = &control, .msg_controllen = sizeof control };
    long count = recvmsg(fd, &message, MSG_ERRQUEUE | flags);
    CHECK("taken", count);
    if (count < 0)
        return;
    CHECK("flags", message.msg_flags);
    check_line("bytes: %.8s\n", bytes);
    CHECK_TRUE("of-whom", message.msg_namelen == size() && memcmp(&name, to, family == AF_INET ? 8 : 24) == 0);
    int found = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
        int is_v4 = part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_RECVERR;
        int is_v6 = part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_RECVERR;
        if (!is_v4 && !is_v6)
            continue;
        found++;
        struct extended_error error;
        union address offender;
        CHECK("length", (long)part->cmsg_len);
        memcpy(&error, CMSG_DATA(part), sizeof error);
        memcpy(&offender, CMSG_DATA(part) + sizeof error, size());
        check_line("error: %s origin %d type %d code %d info %u data %u\n", check_errno_name((int)error.ee_errno), error.ee_origin, error.ee_type,
                   error.ee_code, error.ee_info, error.ee_data);
        CHECK("offender-family", offender.any.sa_family == family);
        char text[INET6_ADDRSTRLEN];
        CHECK_STR("offender", inet_ntop(family, family == AF_INET ? (void *)&offender.v4.sin_addr : (void *)&offender.v6.sin6_addr, text, sizeof text));
    }
    CHECK("found", found);
}

static void check_family(const char *name, int which)
{
    check_line("-- %s\n", name);
    family = which;
    union address to = nobody();
    char byte;

    // Who does not want to know is told only where he is connected.
    int fd = sender(0);
    CHECK("sent", sendto(fd, "unheard", 8, 0, &to.any, size()));
    CHECK("not-told", pending(fd));
    take(fd, &to, 100, 0);
    CHECK("connected", connect(fd, &to.any, size()));
    CHECK("sent-again", send(fd, "unheard", 8, 0));
    CHECK("ready", events(fd));
    take(fd, &to, 100, 0);
    CHECK("told", recv(fd, &byte, 1, 0));
    CHECK("once", recv(fd, &byte, 1, 0));
    close(fd);

    // Who wants to know, always.
    fd = sender(1);
    CHECK("nothing-yet", events(fd));
    take(fd, &to, 100, 0);
    CHECK("first", sendto(fd, "first", 6, 0, &to.any, size()));
    CHECK("ready", events(fd));
    CHECK("told-by-the-next-call", sendto(fd, "second", 7, 0, &to.any, size()));
    CHECK("still-ready", events(fd));
    CHECK("second", sendto(fd, "second", 7, 0, &to.any, size()));
    take(fd, &to, 100, 0);
    CHECK("the-next-one's", pending(fd));
    CHECK("ready-for-it", events(fd));
    take(fd, &to, 3, 0);
    CHECK("no-more", events(fd));
    CHECK("none-pending", pending(fd));
    take(fd, &to, 100, 0);
    CHECK("receives", recv(fd, &byte, 1, 0));

    // The error goes away with what is in the queue, and a peek leaves it.
    CHECK("third", sendto(fd, "third", 6, 0, &to.any, size()));
    take(fd, &to, 100, 0);
    CHECK("gone", pending(fd));

    // Long messages are quoted in part.
    static char large[1500];
    memset(large, 'x', sizeof large);
    CHECK("large", sendto(fd, large, sizeof large, 0, &to.any, size()));
    take(fd, &to, 2000, 0);

    // No more is kept than there is room for.
    int sent = 0, kept = 0;
    for (int i = 0; i < 20000; i++)
        sent += sendto(fd, "many", 5, 0, &to.any, size()) == 5;
    struct msghdr none = { .msg_name = NULL };
    while (recvmsg(fd, &none, MSG_ERRQUEUE) >= 0)
        kept++;
    CHECK_TRUE("bounded", sent > 5000 && kept > 10 && kept < sent);
    CHECK("empty", events(fd));

    // Switched off again, what is in the queue is forgotten.
    int no = 0;
    CHECK("before", sendto(fd, "before", 7, 0, &to.any, size()));
    CHECK("off", family == AF_INET ? setsockopt(fd, IPPROTO_IP, IP_RECVERR, &no, sizeof no) : setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &no, sizeof no));
    CHECK("forgotten", events(fd));
    CHECK("is-pending", pending(fd));
    take(fd, &to, 100, 0);
    CHECK("unheard", sendto(fd, "off", 4, 0, &to.any, size()));
    take(fd, &to, 100, 0);
    close(fd);
}

int main(void)
{
    check_family("IPv4", AF_INET);
    check_family("IPv6", AF_INET6);
    return 0;
}
