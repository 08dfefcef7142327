// Sockets that are entered in an epoll set before they have a peer: what happens to that is told.
#include "../check.h"
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "name" };

static int set_of(int fd)
{
    struct epoll_event event = { EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, { 0 } };
    int set = epoll_create1(0);
    REQUIRE(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
    return set;
}

// What is told within a tenth of a second.
static unsigned told(int set)
{
    struct epoll_event event;
    return epoll_wait(set, &event, 1, 100) > 0 ? event.events : 0;
}

static void fill(int fd)
{
    while (send(fd, "x", 1, MSG_DONTWAIT) == 1)
        ;
}

static void empty(int fd)
{
    char bytes[4096];
    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
}

static void connected(const char *kind, int type)
{
    check_line("%s\n", kind);
    int other = socket(AF_UNIX, type, 0), fd = socket(AF_UNIX, type, 0), set = set_of(fd);
    REQUIRE(bind(other, (struct sockaddr *)&address, sizeof address) == 0);
    if (type != SOCK_DGRAM)
        REQUIRE(listen(other, 1) == 0);
    CHECK("alone", told(set));
    REQUIRE(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    // The change itself may be told as well.
    told(set);
    if (type != SOCK_DGRAM)
        other = accept(other, NULL, NULL);
    fill(fd);
    CHECK("full", told(set));
    empty(other);
    CHECK("room", told(set));
    close(other);
    if (type != SOCK_DGRAM)
        CHECK("closed", told(set));
    unlink("name");
}

int main(void)
{
    connected("stream", SOCK_STREAM);
    connected("packets", SOCK_SEQPACKET);
    connected("datagrams", SOCK_DGRAM);
    return 0;
}
