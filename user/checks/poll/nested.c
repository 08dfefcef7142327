// epoll sets in sets, files that are closed while they are in a set, and many files in one set.
#include "../check.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

static int add(int epoll, int fd, uint32_t events)
{
    struct epoll_event event = { events, { .u64 = fd } };
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static int ready(int epoll)
{
    struct epoll_event got[256];
    return epoll_wait(epoll, got, 256, 0);
}

static void set(int fd)
{
    uint64_t one = 1;
    REQUIRE(write(fd, &one, 8) == 8);
}

static void clear(int fd)
{
    uint64_t count;
    REQUIRE(read(fd, &count, 8) == 8);
}

static void *later(void *fd)
{
    check_sleep_ms(20);
    set(*(int *)fd);
    return NULL;
}

int main(void)
{
    // A set in a set.
    int inner = epoll_create1(0), outer = epoll_create1(0), event = eventfd(0, EFD_NONBLOCK);
    REQUIRE(inner >= 0 && outer >= 0 && event >= 0);
    CHECK("add", add(inner, event, EPOLLIN));
    CHECK("nest", add(outer, inner, EPOLLIN));
    CHECK("circle", add(inner, outer, EPOLLIN));
    CHECK("quiet", ready(outer));
    set(event);
    CHECK("outer", ready(outer));
    CHECK("outer-again", ready(outer));
    struct pollfd by_poll = { .fd = outer, .events = POLLIN | POLLOUT };
    CHECK("poll", poll(&by_poll, 1, 0));
    CHECK("poll-events", by_poll.revents);
    clear(event);
    CHECK("cleared", ready(outer));
    CHECK("poll-cleared", poll(&by_poll, 1, 0));
    set(event);
    CHECK("once-more", ready(outer));
    clear(event);
    pthread_t thread;
    struct epoll_event got[4];
    REQUIRE(pthread_create(&thread, NULL, later, &event) == 0);
    CHECK("woken-through-both", epoll_wait(outer, got, 4, 2000));
    REQUIRE(pthread_join(thread, NULL) == 0);
    clear(event);
    REQUIRE(pthread_create(&thread, NULL, later, &event) == 0);
    CHECK("poll-woken", poll(&by_poll, 1, 2000));
    REQUIRE(pthread_join(thread, NULL) == 0);

    // Too deep.
    int chain[8];
    chain[0] = event;
    int refused = 0;
    for (int i = 1; i < 8; i++) {
        chain[i] = epoll_create1(0);
        if (add(chain[i], chain[i - 1], EPOLLIN) != 0) {
            refused = errno == ELOOP || errno == EINVAL;
            break;
        }
    }
    CHECK_TRUE("too-deep-refused", refused);

    // Closed files leave the set; a copy of the descriptor keeps them in.
    int set_of_pipes = epoll_create1(0), fds[2];
    REQUIRE(set_of_pipes >= 0 && pipe(fds) == 0 && write(fds[1], "x", 1) == 1);
    CHECK("add-pipe", add(set_of_pipes, fds[0], EPOLLIN));
    int copy = dup(fds[0]);
    close(fds[0]);
    CHECK("kept-by-copy", ready(set_of_pipes));
    CHECK("by-copy", epoll_ctl(set_of_pipes, EPOLL_CTL_DEL, copy, NULL));
    close(copy);
    CHECK("gone", ready(set_of_pipes));
    close(fds[1]);

    // Edges of a pipe.
    REQUIRE(pipe2(fds, O_NONBLOCK) == 0);
    CHECK("edge-reader", add(set_of_pipes, fds[0], EPOLLIN | EPOLLET));
    CHECK("edge-quiet", ready(set_of_pipes));
    REQUIRE(write(fds[1], "ab", 2) == 2);
    CHECK("edge-data", ready(set_of_pipes));
    CHECK("edge-told", ready(set_of_pipes));
    REQUIRE(write(fds[1], "c", 1) == 1);
    CHECK("edge-more-data", ready(set_of_pipes));
    close(fds[1]);
    CHECK("edge-hang-up", epoll_wait(set_of_pipes, got, 4, 0));
    CHECK("edge-hang-up-events", got[0].events);
    close(fds[0]);

    // Many files, few at a time.
    enum { MANY = 200 };
    static int many[MANY];
    int all = epoll_create1(0);
    for (int i = 0; i < MANY; i++) {
        many[i] = eventfd(0, EFD_NONBLOCK);
        REQUIRE(many[i] >= 0 && add(all, many[i], EPOLLIN) == 0);
    }
    CHECK("none", ready(all));
    for (int i = 0; i < MANY; i += 2)
        set(many[i]);
    CHECK("half", ready(all));
    static char told[4096];
    int rounds = 0, different = 0;
    for (; rounds < MANY / 2 / 4; rounds++) {
        int count = epoll_wait(all, got, 4, 0);
        for (int i = 0; i < count; i++)
            different += !told[got[i].data.u64]++;
    }
    CHECK("all-come-in-turn", different);
    for (int i = 0; i < MANY; i += 2)
        clear(many[i]);
    CHECK("none-again", ready(all));
    return 0;
}
