// Descriptors and what stands behind them.
#include "groups.h"
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>

// Long after the end of the measurement; not in order: neither the first nor the last to be armed is the next to expire.
#define LATE(index) { .it_value = { 1000000 + (index) * 7919 % 10007, 0 } }

static int one;

static long begin_eventfd(long count)
{
    (void)count;
    return one = call3(SYS_eventfd2, 0, 0, 0);
}

static long duplicate(long index)
{
    (void)index;
    return call3(SYS_dup, one, 0, 0);
}

static long make_eventfd(long index)
{
    (void)index;
    return call3(SYS_eventfd2, 0, 0, 0);
}

static long make_pipe(long index)
{
    int ends[2];
    (void)index;
    return call3(SYS_pipe2, (long)ends, O_NONBLOCK, 0);
}

static long make_full_pipe(long index)
{
    static char content[65536];
    int ends[2];
    (void)index;
    long result = call3(SYS_pipe2, (long)ends, O_NONBLOCK, 0);
    return result < 0 ? result : call3(SYS_write, ends[1], (long)content, sizeof content);
}

static long make_fifo(long index)
{
    (void)index;
    long result = call3(SYS_mknod, (long)"/tmp/fifo", S_IFIFO | 0600, 0);
    if (result < 0)
        return result;
    result = call3(SYS_open, (long)"/tmp/fifo", O_RDWR | O_NONBLOCK, 0);
    call3(SYS_unlink, (long)"/tmp/fifo", 0, 0);
    return result;
}

static long make_timerfd(long index)
{
    struct itimerspec late = LATE(index);
    long timer = call3(SYS_timerfd_create, CLOCK_MONOTONIC, 0, 0);
    return timer < 0 ? timer : call4(SYS_timerfd_settime, timer, 0, (long)&late, 0);
}

static long make_posix_timer(long index)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    struct itimerspec late = LATE(index);
    int timer;
    long result = call3(SYS_timer_create, CLOCK_MONOTONIC, (long)&event, (long)&timer);
    return result < 0 ? result : call4(SYS_timer_settime, timer, 0, (long)&late, 0);
}

static long make_signalfd(long index)
{
    uint64_t mask = 1 << (SIGUSR2 - 1);
    (void)index;
    return call4(SYS_signalfd4, -1, (long)&mask, sizeof mask, 0);
}

static long make_epoll_set(long index)
{
    (void)index;
    return call3(SYS_epoll_create1, 0, 0, 0);
}

static long begin_epoll_set(long count)
{
    (void)count;
    return one = call3(SYS_epoll_create1, 0, 0, 0);
}

static long make_epoll_item(long index)
{
    struct epoll_event event = { .events = EPOLLIN };
    long watched = call3(SYS_eventfd2, 0, 0, 0);
    (void)index;
    return watched < 0 ? watched : call4(SYS_epoll_ctl, one, EPOLL_CTL_ADD, watched, (long)&event);
}

static long make_inotify(long index)
{
    (void)index;
    return call3(SYS_inotify_init1, 0, 0, 0);
}

static long begin_inotify(long count)
{
    (void)count;
    return one = call3(SYS_inotify_init1, 0, 0, 0);
}

static long make_watch(long index) { return call3(SYS_inotify_add_watch, one, (long)file_name(index), IN_MODIFY); }

static long make_pty(long index)
{
    int unlocked = 0, number = 0;
    (void)index;
    long master = call3(SYS_open, (long)"/dev/ptmx", O_RDWR | O_NOCTTY, 0);
    if (master < 0)
        return master;
    long result = call3(SYS_ioctl, master, TIOCSPTLCK, (long)&unlocked);
    if (result >= 0)
        result = call3(SYS_ioctl, master, TIOCGPTN, (long)&number);
    return result < 0 ? result : call3(SYS_open, (long)numbered("/dev/pts/", number), O_RDWR | O_NOCTTY, 0);
}

const struct class descriptor_classes[] = {
    { "descriptors", 10, NULL, begin_eventfd, duplicate, NULL },
    { "pipes", 3000, NULL, NULL, make_pipe, NULL },
    { "full-pipes", 69000, NULL, NULL, make_full_pipe, NULL },
    { "fifos", 3500, NULL, NULL, make_fifo, NULL },
    { "eventfds", 400, NULL, NULL, make_eventfd, NULL },
    { "timerfds", 600, NULL, NULL, make_timerfd, NULL },
    { "posix-timers", 500, NULL, NULL, make_posix_timer, NULL },
    { "signalfds", 400, NULL, NULL, make_signalfd, NULL },
    { "epoll-sets", 600, NULL, NULL, make_epoll_set, NULL },
    { "epoll-items", 700, NULL, begin_epoll_set, make_epoll_item, NULL },
    { "inotify-instances", 700, NULL, NULL, make_inotify, NULL },
    { "inotify-watches", 2000, prepare_files, begin_inotify, make_watch, NULL },
    { "ptys", 40000, NULL, NULL, make_pty, NULL },
    { 0 },
};
