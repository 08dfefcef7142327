// A descriptor is closed while another thread makes one more of it, or locks its file: it is one thing or the other.
#include "together.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define ROUNDS 5000

static int fd, copy, target, ends[2], keeper;
static long wrong;

static void close_it(void)
{
    close(fd);
}

static void copy_it(void)
{
    copy = dup(fd);
}

static void make_set(void)
{
    REQUIRE((fd = epoll_create1(0)) >= 0);
    struct epoll_event event = { EPOLLIN, { .u32 = 1 } };
    REQUIRE(epoll_ctl(fd, EPOLL_CTL_ADD, target, &event) == 0);
}

// If there is a copy the set lives.
static void look_at_set(void)
{
    if (copy < 0)
        return;
    struct epoll_event event = { EPOLLIN, { .u32 = 1 } };
    wrong += epoll_wait(copy, &event, 1, 0) != 1;
    wrong += epoll_ctl(copy, EPOLL_CTL_DEL, target, NULL) != 0;
    wrong += epoll_ctl(copy, EPOLL_CTL_ADD, target, &event) != 0;
    close(copy);
}

static void make_pair(void)
{
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    // A socket that is closed with something unread resets its peer.
    REQUIRE(write(ends[1], "x", 1) == 1);
    fd = ends[0];
}

static void look_at_pair(void)
{
    char byte;
    if (copy >= 0) {
        wrong += recv(ends[1], &byte, 1, MSG_DONTWAIT) != -1 || errno != EAGAIN;
        wrong += read(copy, &byte, 1) != 1;
        close(copy);
    }
    close(ends[1]);
}

static void open_it(void)
{
    REQUIRE((fd = open("locked", O_RDWR)) >= 0);
}

static void lock_it(void)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    fcntl(fd, F_SETLK, &lock);
}

// Closing any descriptor of a file ends the process' locks on it, also one that is set just then.
static void look_at_lock(void)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    REQUIRE(fcntl(keeper, F_OFD_GETLK, &lock) == 0);
    wrong += lock.l_type != F_UNLCK;
}

int main(void)
{
    REQUIRE((target = eventfd(1, 0)) >= 0);
    together(ROUNDS, make_set, close_it, copy_it, look_at_set);
    CHECK("sets-lost", wrong);
    wrong = 0;
    together(ROUNDS, make_pair, close_it, copy_it, look_at_pair);
    CHECK("sockets-lost", wrong);
    wrong = 0;
    REQUIRE((keeper = open("locked", O_CREAT | O_RDWR, 0644)) >= 0);
    together(ROUNDS, open_it, lock_it, close_it, look_at_lock);
    CHECK("locks-left", wrong);
    return 0;
}
