// Unix sockets and what is on its way in them.
#include "kills.h"
#include <sys/eventfd.h>
#include <sys/un.h>

static char content[1 << 18];

static void pairs(int amount)
{
    int pair[2];
    while (amount-- > 0 && socketpair(AF_UNIX, (any(2) ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK, 0, pair) == 0)
        ;
}

static void full_pairs(int amount)
{
    static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
    int pair[2];
    for (int i = 0; i < amount; i++) {
        if (socketpair(AF_UNIX, types[any(3)] | SOCK_NONBLOCK, 0, pair) < 0)
            return;
        size_t each = 1 + any(once_in(2) ? 16 : 16000);
        int most = once_in(4) ? 5000 : 300;
        for (int message = 0; message < most && send(pair[0], content, each, MSG_NOSIGNAL) > 0; message++)
            ;
        if (any(4) == 0)
            close(pair[any(2)]);
    }
}

enum { IN_MESSAGE = 250 };

static long send_descriptors(int socket, const int *files, int count)
{
    struct {
        struct cmsghdr head;
        int files[IN_MESSAGE];
    } control = { .head = { .cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
    memcpy(control.files, files, count * sizeof(int));
    struct iovec byte = { "", 1 };
    struct msghdr message = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = control.head.cmsg_len };
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int a_file(void)
{
    int ends[2];
    switch (any(5)) {
    case 0:
        return eventfd(0, 0);
    case 3:
        return link_count > 0 ? dup(links[any(link_count)].inside) : -1;
    case 1:
        return pipe2(ends, O_NONBLOCK) == 0 ? close(ends[0]), (void)!write(ends[1], content, PAGE), ends[1] : -1;
    case 2:
        return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0 ? (void)!write(ends[0], content, PAGE), close(ends[0]), ends[1] : -1;
    default:
        return open("/tmp/page", O_RDONLY);
    }
}

// Descriptors that exist in messages only.
static void send_new_descriptors(int socket, int amount)
{
    while (amount > 0) {
        int files[IN_MESSAGE], made = 0, wanted = 1 + any(amount < IN_MESSAGE ? amount : IN_MESSAGE);
        while (made < wanted && (files[made] = a_file()) >= 0)
            made++;
        long sent = made > 0 ? send_descriptors(socket, files, made) : -1;
        for (int i = 0; i < made; i++)
            close(files[i]);
        if (sent < 0)
            return;
        amount -= made;
    }
}

static void rights(int amount)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0)
        send_new_descriptors(pair[0], amount);
}

// The same descriptor again and again.
static void same_rights(int amount)
{
    int pair[2], files[IN_MESSAGE], one = a_file();
    if (one < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
        return;
    for (int i = 0; i < IN_MESSAGE; i++)
        files[i] = one;
    for (; amount > 0; amount -= IN_MESSAGE)
        if (send_descriptors(pair[0], files, amount < IN_MESSAGE ? amount : IN_MESSAGE) < 0)
            return;
}

// What the process outside has not received.
static void rights_outside(int amount)
{
    int link = a_link_of(STREAM);
    if (link >= 0)
        send_new_descriptors(links[link].inside, amount);
}

// Sockets that hold each other, or themselves, in messages.
static void rings(int amount)
{
    int first[2], pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, first) < 0)
        return;
    int last[2] = { first[0], first[1] };
    for (int i = 0; i < amount && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0; i++) {
        if (once_in(4))
            send_descriptors(pair[0], pair, 2);
        send_descriptors(last[0], pair, 2);
        if (last[0] != first[0])
            close(last[0]), close(last[1]);
        last[0] = pair[0], last[1] = pair[1];
    }
    send_descriptors(last[0], first, 2);
    close(first[0]), close(first[1]);
    if (last[0] != first[0])
        close(last[0]), close(last[1]);
}

// Each in a message of the one before.
static void chain(int amount)
{
    int outer[2], pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, outer) < 0)
        return;
    for (int i = 0; i < amount && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0; i++) {
        long sent = send_descriptors(pair[0], outer, 2);
        close(outer[0]), close(outer[1]);
        outer[0] = pair[0], outer[1] = pair[1];
        if (sent < 0)
            return;
    }
}

// Connections that nobody has accepted.
static void listeners(int amount)
{
    static int number;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listener = -1;
    for (int i = 0; i < amount; i++) {
        if (i % 64 == 0) {
            listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
            snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "kills-%d-%d", getpid(), number++);
            if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 64) < 0)
                return;
        }
        int client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (client < 0 || connect(client, (struct sockaddr *)&address, sizeof address) < 0)
            return;
        if (any(2))
            (void)!write(client, content, any(PAGE));
        if (any(3) == 0)
            close(client);
    }
}

// Connections that nobody has accepted, whose other ends are gone.
static void backlogs(int amount)
{
    static int number;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "backlog-%d-%d", getpid(), number++);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 4096) < 0)
        return;
    for (int i = 0; i < amount; i++) {
        int client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (client < 0 || connect(client, (struct sockaddr *)&address, sizeof address) < 0)
            return;
        if (any(2))
            (void)!write(client, content, any(PAGE));
        close(client);
    }
}

const struct kind socket_kinds[] = {
    { "socket-pairs", 1500, pairs },
    { "full-sockets", 100, full_pairs },
    { "rights", 1500, rights },
    { "same-rights", 4000, same_rights },
    { "rights-outside", 500, rights_outside },
    { "rings", 300, rings },
    { "chain", 300, chain },
    { "listeners", 500, listeners },
    { "backlogs", 1000, backlogs },
    { 0 },
};
