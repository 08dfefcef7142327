// Waiting for events: no event is lost, a descriptor that is replaced is always one file or the other, and what is closed ends who waits on it.
#include "stress.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#define SOURCES 4
#define TURNS 100

static int epoll, sources[SOURCES];
static atomic_long added, taken;
static atomic_int producing;

static void add_or_take(int index)
{
    uint64_t value;
    if (index < 2) {
        for (int i = 0; i < TURNS; i++) {
            value = 1 + any(3);
            MUST(write(sources[any(SOURCES)], &value, sizeof value) == sizeof value);
            atomic_fetch_add(&added, (long)value);
        }
        atomic_fetch_sub(&producing, 1);
        return;
    }
    // All that was added is taken, whoever is woken for it.
    long end = milliseconds() + 60000;
    while (producing > 0 || taken < added) {
        struct epoll_event events[2];
        int ready = epoll_wait(epoll, events, 2, 1);
        MUST(ready >= 0 || errno == EINTR);
        for (int i = 0; i < ready; i++) {
            int fd = sources[events[i].data.u32];
            if (read(fd, &value, sizeof value) == sizeof value)
                atomic_fetch_add(&taken, (long)value);
            else
                MUST(errno == EAGAIN);
            struct epoll_event event = { EPOLLIN | EPOLLONESHOT, { .u32 = events[i].data.u32 } };
            if (event.data.u32 % 2 == 1)
                MUST(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) == 0);
        }
        if (milliseconds() > end) {
            violation("an event was lost: %ld of %ld", taken, added);
            return;
        }
    }
}

static void epoll_round(void)
{
    MUST((epoll = epoll_create1(0)) >= 0);
    for (uint32_t i = 0; i < SOURCES; i++) {
        MUST((sources[i] = eventfd(0, EFD_NONBLOCK)) >= 0);
        // Half of them report once and are armed again.
        struct epoll_event event = { EPOLLIN | (i % 2 == 1 ? EPOLLONESHOT : 0), { .u32 = i } };
        MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, sources[i], &event) == 0);
    }
    added = taken = 0;
    producing = 2;
    threads(4, add_or_take);
    HOLDS(taken == added, "%ld of %ld were taken", taken, added);
    for (int i = 0; i < SOURCES; i++)
        close(sources[i]);
    close(epoll);
    count(2 * TURNS);
}

static int replaced, one, other;
static atomic_int over;

// `dup2` replaces a descriptor in one step: whoever uses it meanwhile finds one file or the other.
static void replace_or_read(int index)
{
    if (index == 0) {
        for (int i = 0; i < TURNS; i++)
            MUST(dup2(any(2) ? one : other, replaced) == replaced);
        over = 1;
        return;
    }
    while (!over) {
        char letter = 0;
        ssize_t got = pread(replaced, &letter, 1, 0);
        HOLDS(got == 1 && (letter == '1' || letter == '2'), "a descriptor that is replaced gives %ld (%s)", (long)got, strerror(errno));
        // New descriptors come and go beside it.
        int fd = dup(one);
        MUST(fd >= 0);
        HOLDS(fd != replaced, "a descriptor in use was given away");
        close(fd);
    }
}

static int file_with(const char *name, const char *text)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(fd >= 0 && write(fd, text, 1) == 1 && unlink(name) == 0);
    return fd;
}

static void replaced_round(void)
{
    over = 0;
    one = file_with("one", "1");
    other = file_with("other", "2");
    MUST((replaced = dup(one)) >= 0);
    threads(3, replace_or_read);
    close(one);
    close(other);
    close(replaced);
    count(TURNS);
}

static int ends[2];
static atomic_int waiting;

// Two wait for a pipe that nobody writes to; its writing end closes, or their own descriptor does and then the writing end.
static void wait_or_close(int index)
{
    char byte;
    if (index == 0) {
        while (waiting < 2)
            sched_yield();
        for (int i = (int)any(3); i > 0; i--)
            nap();
        if (any(2))
            close(ends[0]);
        close(ends[1]);
    } else if (index == 1) {
        atomic_fetch_add(&waiting, 1);
        struct pollfd wait = { ends[0], POLLIN, 0 };
        int ready = poll(&wait, 1, 60000);
        HOLDS(ready == 1 && wait.revents & (POLLHUP | POLLNVAL | POLLERR), "poll gives %d, %#x", ready, wait.revents);
    } else {
        atomic_fetch_add(&waiting, 1);
        ssize_t got = read(ends[0], &byte, 1);
        HOLDS(got == 0 || (got == -1 && errno == EBADF), "reading gives %ld (%s)", (long)got, strerror(errno));
    }
}

static void closed_round(void)
{
    waiting = 0;
    MUST(pipe(ends) == 0);
    threads(3, wait_or_close);
    // Closed already where they were closed.
    close(ends[0]);
    count(1);
}

static int set, copy, always_ready;
static atomic_int closed;

// A set is closed while another makes a copy of its descriptor and waits on it: a copy has all that was in the set.
static void copy_or_close(int index)
{
    if (index == 0) {
        closed = 1;
        close(set);
    } else if (index == 1) {
        while (!closed && any(8))
            ;
        copy = dup(set);
    } else {
        struct epoll_event event;
        int ready = epoll_wait(set, &event, 1, 0);
        HOLDS(ready == 1 || (ready == -1 && errno == EBADF), "waiting on a set that is closed gives %d (%s)", ready, strerror(errno));
    }
}

static void set_round(void)
{
    closed = 0;
    copy = -1;
    MUST((set = epoll_create1(0)) >= 0 && (always_ready = eventfd(1, 0)) >= 0);
    struct epoll_event event = { EPOLLIN, { .u32 = 0 } };
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, always_ready, &event) == 0);
    threads(3, copy_or_close);
    if (copy >= 0) {
        HOLDS(epoll_wait(copy, &event, 1, 0) == 1, "a set is empty after another descriptor of it was closed");
        close(copy);
    }
    close(always_ready);
    count(1);
}

#define ARMINGS 50

static atomic_int highest, armed;

// What is armed anew while it is told is told anew, to one of two who wait.
static void arm_or_wait(int index)
{
    struct epoll_event event;
    if (index > 0) {
        while (highest < ARMINGS) {
            if (epoll_wait(set, &event, 1, 10) != 1)
                continue;
            int now = highest;
            while (now < (int)event.data.u32 && !atomic_compare_exchange_weak(&highest, &now, (int)event.data.u32))
                ;
        }
        return;
    }
    for (armed = 1; armed <= ARMINGS; armed++) {
        event = (struct epoll_event){ EPOLLIN | EPOLLONESHOT, { .u32 = (uint32_t)armed } };
        MUST(epoll_ctl(set, EPOLL_CTL_MOD, always_ready, &event) == 0);
        if (any(4) == 0 || armed == ARMINGS)
            WAIT_FOR(highest == armed, "number %d was armed and %d told", armed, highest);
    }
    highest = ARMINGS;
}

static void armed_round(void)
{
    highest = 0;
    MUST((set = epoll_create1(0)) >= 0 && (always_ready = eventfd(1, 0)) >= 0);
    struct epoll_event event = { EPOLLIN | EPOLLONESHOT, { .u32 = 0 } };
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, always_ready, &event) == 0);
    threads(3, arm_or_wait);
    close(set);
    close(always_ready);
    count(ARMINGS);
}

#define PERIOD 300000L

static int timer;
static atomic_long expirations;

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// Two take what a timer counts; no sleep ends early.
static void take_or_sleep(int index)
{
    int64_t end = nanoseconds() + 20 * PERIOD;
    while (nanoseconds() < end) {
        uint64_t value;
        if (index < 2) {
            struct pollfd wait = { timer, POLLIN, 0 };
            poll(&wait, 1, 1);
            if (read(timer, &value, sizeof value) == sizeof value)
                atomic_fetch_add(&expirations, (long)value);
            else
                MUST(errno == EAGAIN);
        } else {
            long length = 1000 + any(500000);
            int64_t before = nanoseconds();
            MUST(nanosleep(&(struct timespec){ 0, length }, NULL) == 0);
            int64_t took = nanoseconds() - before;
            HOLDS(took >= length, "a sleep of %ld ns took %ld", length, (long)took);
        }
    }
}

// A timer counts each of its periods once, however many read it.
static void timers_round(void)
{
    MUST((timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)) >= 0);
    expirations = 0;
    int64_t start = nanoseconds();
    int64_t first = start + PERIOD;
    struct itimerspec setting = { { 0, PERIOD }, { first / 1000000000, first % 1000000000 } };
    MUST(timerfd_settime(timer, TFD_TIMER_ABSTIME, &setting, NULL) == 0);
    threads(4, take_or_sleep);
    int64_t least = (nanoseconds() - start) / PERIOD;
    // What is due by now is counted once the next one is.
    uint64_t value;
    struct pollfd wait = { timer, POLLIN, 0 };
    for (int i = 0; i < 2; i++) {
        HOLDS(poll(&wait, 1, 60000) == 1, "a timer does not go on");
        if (read(timer, &value, sizeof value) == sizeof value)
            atomic_fetch_add(&expirations, (long)value);
    }
    int64_t most = (nanoseconds() - start) / PERIOD;
    HOLDS(expirations >= least && expirations <= most, "a timer counted %ld periods, not %ld to %ld", expirations, (long)least, (long)most);
    close(timer);
    count(expirations);
}

const struct family event_families[] = {
    { "epoll", epoll_round },
    { "replaced-descriptors", replaced_round },
    { "closes-beside-waits", closed_round },
    { "copied-sets", set_round },
    { "armed-sets", armed_round },
    { "timers", timers_round },
    { NULL, NULL },
};
