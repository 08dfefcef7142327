// Many descriptors in an epoll set, or asked by poll(2).
#include "many.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

static int set, last, other;
static struct epoll_event events[64];
static struct pollfd asked[10000];

static void make_set(long count, unsigned value)
{
    must(set = epoll_create1(0), "epoll_create1");
    must(other = eventfd(0, 0), "eventfd");
    for (long i = 0; i < count; i++) {
        must(last = eventfd(value, 0), "eventfd");
        struct epoll_event event = { .events = EPOLLIN, .data.fd = last };
        must(epoll_ctl(set, EPOLL_CTL_ADD, last, &event), "epoll_ctl");
        asked[i] = (struct pollfd){ last, POLLIN, 0 };
    }
}

static void make_ready(long count) { make_set(count, 1); }
static void make_idle(long count) { make_set(count, 0); }

static uint64_t wait_64(long count) { REPEAT(call4(SYS_epoll_wait, set, (long)events, 64, 0)); }

static uint64_t modify(long count)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = last };
    REPEAT(call4(SYS_epoll_ctl, set, EPOLL_CTL_MOD, last, (long)&event));
}

static uint64_t add_delete(long count)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = other };
    REPEAT(call4(SYS_epoll_ctl, set, EPOLL_CTL_ADD, other, (long)&event); call4(SYS_epoll_ctl, set, EPOLL_CTL_DEL, other, 0));
}

// One of them becomes ready, is told, and is ready no more.
static uint64_t wait_for_one(long count)
{
    uint64_t value = 1;
    REPEAT(call3(SYS_write, last, (long)&value, 8); call4(SYS_epoll_wait, set, (long)events, 64, 0); call3(SYS_read, last, (long)&value, 8));
}

static uint64_t poll_all(long count) { REPEAT(call3(SYS_poll, (long)asked, many, 0)); }
static uint64_t end_set(long count) { return ending(make_ready, count); }

const struct row epoll_rows[] = {
    { "epoll-wait-64", make_ready, wait_64, 5 },
    { "epoll-modify", make_ready, modify, 20 },
    { "epoll-wait-1", make_idle, wait_for_one, 20 },
    { "epoll-add-delete", make_idle, add_delete, 20 },
    { "poll-all", make_idle, poll_all, 3 },
    { "epoll-end", NULL, end_set, 0 },
    { 0 },
};
