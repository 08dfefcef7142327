// A descriptor that is closed and used again while its old file stays in the set, kept by a duplicate.
#include "../check.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

static int set;

static int control(int what, int fd, uint32_t events, uint64_t data)
{
    struct epoll_event event = { .events = events, .data.u64 = data };
    return epoll_ctl(set, what, fd, &event);
}

// The sum of the data of all that is ready, and a hundred for each.
static int ready(void)
{
    struct epoll_event events[16];
    int count = epoll_wait(set, events, 16, 0), sum = 0;
    for (int i = 0; i < count; i++)
        sum += 100 + events[i].data.u64;
    return sum;
}

int main(void)
{
    enum { AGAIN = 20, KEPT = 30, FILES = 4 };
    set = epoll_create1(0);
    for (int i = 0; i < FILES; i++) {
        int file = eventfd(1, 0);
        dup2(file, AGAIN);
        dup2(file, KEPT + i);
        close(file);
        CHECK("add", control(EPOLL_CTL_ADD, AGAIN, EPOLLIN, i));
        CHECK("add again", control(EPOLL_CTL_ADD, AGAIN, EPOLLIN, i));
    }
    CHECK("all are ready", ready());
    CHECK("modify the newest", control(EPOLL_CTL_MOD, AGAIN, EPOLLIN, 10));
    CHECK("ready", ready());
    CHECK("modify by another descriptor", control(EPOLL_CTL_MOD, KEPT + 1, EPOLLIN, 10));
    // An old one is found where its file has the descriptor again.
    dup2(KEPT + 1, AGAIN);
    CHECK("modify an old one", control(EPOLL_CTL_MOD, AGAIN, EPOLLIN, 20));
    CHECK("ready", ready());
    CHECK("delete it", control(EPOLL_CTL_DEL, AGAIN, 0, 0));
    CHECK("delete it again", control(EPOLL_CTL_DEL, AGAIN, 0, 0));
    CHECK("ready", ready());
    dup2(KEPT + 3, AGAIN);
    CHECK("delete the newest", control(EPOLL_CTL_DEL, AGAIN, 0, 0));
    CHECK("ready", ready());
    dup2(KEPT, AGAIN);
    CHECK("the first is there", control(EPOLL_CTL_ADD, AGAIN, EPOLLIN, 0));
    close(AGAIN);
    close(KEPT);
    CHECK("ready", ready());
    close(KEPT + 2);
    CHECK("ready", ready());
    return 0;
}
