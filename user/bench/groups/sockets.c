// Unix sockets and what is on its way in them.
#include "groups.h"
#include <sys/socket.h>

static int pair[2], one;

static long make_pair(long index)
{
    (void)index;
    return call4(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, (long)pair);
}

static long make_pair_with_data(long index)
{
    static char content[PAGE];
    long result = make_pair(index);
    return result < 0 ? result : call3(SYS_write, pair[0], (long)content, sizeof content);
}

static long begin_rights(long count)
{
    (void)count;
    return one = call3(SYS_eventfd2, 0, 0, 0);
}

// Messages carry 250 descriptors each, since more than 253 do not fit, and a pair holds a hundred messages.
enum { IN_MESSAGE = 250, IN_PAIR = 100 * IN_MESSAGE };

static long send_rights(long index)
{
    static struct {
        struct cmsghdr head;
        int descriptors[IN_MESSAGE];
    } control;
    if (index % IN_MESSAGE != 0)
        return 0;
    long result = index % IN_PAIR == 0 ? make_pair(index) : 0;
    if (result < 0)
        return result;
    long count = many - index < IN_MESSAGE ? many - index : IN_MESSAGE;
    for (long i = 0; i < count; i++)
        control.descriptors[i] = one;
    control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
    struct iovec byte = { "", 1 };
    struct msghdr message = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_LEN(count * sizeof(int)) };
    return call3(SYS_sendmsg, pair[0], (long)&message, MSG_DONTWAIT);
}

const struct class socket_classes[] = {
    { "socket-pairs", 4000, NULL, NULL, make_pair, NULL },
    { "socket-data", 10000, NULL, NULL, make_pair_with_data, NULL },
    { "rights", 100, NULL, begin_rights, send_rights, NULL },
    { 0 },
};
