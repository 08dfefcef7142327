// What the checks of netlink and packet sockets share.
#ifndef EBB_NETLINK_H
#define EBB_NETLINK_H
#include "inet.h"
#include "netlink_abi.h"

// A request in the making.
struct request {
    struct nlmsghdr header;
    char body[1024];
};

static inline void *begin(struct request *request, int type, int flags, size_t head)
{
    memset(request, 0, sizeof *request);
    request->header.nlmsg_len = NLMSG_LENGTH(head);
    request->header.nlmsg_type = type;
    request->header.nlmsg_flags = NLM_F_REQUEST | flags;
    request->header.nlmsg_seq = 42;
    return request->body;
}

static inline void add(struct request *request, int type, const void *value, size_t len)
{
    struct rtattr *at = (struct rtattr *)((char *)request + NLMSG_ALIGN(request->header.nlmsg_len));
    at->rta_type = type;
    at->rta_len = RTA_LENGTH(len);
    memcpy(RTA_DATA(at), value, len);
    request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len) + RTA_ALIGN(at->rta_len);
}

static inline void ask(int fd, struct request *request)
{
    REQUIRE(send(fd, request, request->header.nlmsg_len, 0) == (ssize_t)request->header.nlmsg_len);
}

// The attribute of a kind, of those behind the first bytes of a message's body.
static inline struct rtattr *find(struct nlmsghdr *message, size_t head, int type)
{
    struct rtattr *at = (struct rtattr *)((char *)message + NLMSG_LENGTH(NLMSG_ALIGN(head)));
    int len = (int)message->nlmsg_len - (int)NLMSG_LENGTH(NLMSG_ALIGN(head));
    for (; RTA_OK(at, len); at = RTA_NEXT(at, len))
        if ((at->rta_type & NLA_TYPE_MASK) == type)
            return at;
    return NULL;
}

// Waits for the outcome of a request, and prints it.
static inline void show_outcome(const char *name, int fd)
{
    char buffer[8192];
    for (;;) {
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        REQUIRE(got > 0);
        struct nlmsghdr *message = (struct nlmsghdr *)buffer;
        if (message->nlmsg_type == NLMSG_DONE) {
            // Some kernels tell errors of a dump here.
            int error = *(int *)NLMSG_DATA(message);
            errno = -error;
            check_line("%s: %s\n", name, error ? inet_error(errno) : "ok");
            return;
        }
        if (message->nlmsg_type != NLMSG_ERROR)
            continue;
        struct nlmsgerr *error = NLMSG_DATA(message);
        errno = -error->error;
        check_line("%s: %s\n", name, error->error ? inet_error(errno) : "ok");
        return;
    }
}

static inline int netlink(int protocol)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    REQUIRE(fd >= 0);
    return fd;
}

// The number by which sockets are listed.
static inline unsigned long inode_of(int fd)
{
    struct stat stat;
    REQUIRE(fstat(fd, &stat) == 0);
    return stat.st_ino;
}
#endif
