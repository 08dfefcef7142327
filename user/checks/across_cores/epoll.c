// Two threads wait on one set, and a third changes it: each is told what Linux tells it, and nothing is lost.
#include "together.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define ROUNDS 3000

static int set, event_fd, sets[2], added[2];
static atomic_int told, over, returned;
static long both;

// Waits until the condition holds: what takes ten seconds never comes.
#define COMES(condition)                                      \
    ({                                                        \
        time_t end = time(NULL) + 10;                         \
        while (!(condition) && time(NULL) < end)              \
            sched_yield();                                    \
        (condition);                                          \
    })

static void *note_highest(void *unused)
{
    while (!over) {
        struct epoll_event event;
        if (epoll_wait(set, &event, 1, 100) != 1)
            continue;
        int now = told;
        while (now < (int)event.data.u32 && !atomic_compare_exchange_weak(&told, &now, (int)event.data.u32))
            ;
    }
    return unused;
}

// What is set anew while it is told is told anew.
static void armed_while_told(void)
{
    pthread_t threads[2];
    REQUIRE((set = epoll_create1(0)) >= 0 && (event_fd = eventfd(1, 0)) >= 0);
    struct epoll_event event = { EPOLLIN | EPOLLONESHOT, { .u32 = 0 } };
    REQUIRE(epoll_ctl(set, EPOLL_CTL_ADD, event_fd, &event) == 0);
    over = 0;
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_create(&threads[i], NULL, note_highest, NULL) == 0);
    long lost = 0;
    for (int round = 1; round <= ROUNDS && lost == 0; round++) {
        for (int part = 0; part < 4; part++) {
            event.data.u32 = round * 4 + part;
            REQUIRE(epoll_ctl(set, EPOLL_CTL_MOD, event_fd, &event) == 0);
        }
        lost += !COMES(told == round * 4 + 3);
    }
    CHECK("armings-lost", lost);
    over = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    close(set);
    close(event_fd);
}

static atomic_int round_now;

static void *wait_each_round(void *unused)
{
    for (int round = 1; !over; round++) {
        while (round_now < round && !over)
            sched_yield();
        struct epoll_event event;
        while (!over && epoll_wait(set, &event, 1, 20000) != 1)
            ;
        returned++;
        while (round_now == round && returned % 2 != 0 && !over)
            sched_yield();
    }
    return unused;
}

// What stays ready is told to all who wait.
static void all_are_told(void)
{
    pthread_t threads[2];
    REQUIRE((set = epoll_create1(0)) >= 0 && (event_fd = eventfd(0, EFD_NONBLOCK)) >= 0);
    struct epoll_event event = { EPOLLIN, { .u32 = 0 } };
    REQUIRE(epoll_ctl(set, EPOLL_CTL_ADD, event_fd, &event) == 0);
    over = returned = round_now = 0;
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_create(&threads[i], NULL, wait_each_round, NULL) == 0);
    long lost = 0;
    for (int round = 1; round <= ROUNDS && lost == 0; round++) {
        uint64_t value = 1;
        round_now = round;
        REQUIRE(write(event_fd, &value, sizeof value) == sizeof value);
        lost += !COMES(returned == 2 * round);
        REQUIRE(read(event_fd, &value, sizeof value) == sizeof value);
    }
    CHECK("waiters-forgotten", lost);
    over = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    close(set);
    close(event_fd);
}

static void make_sets(void)
{
    REQUIRE((sets[0] = epoll_create1(0)) >= 0 && (sets[1] = epoll_create1(0)) >= 0);
}

static int put(int inner, int outer)
{
    struct epoll_event event = { EPOLLIN, { .u32 = 0 } };
    return epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event) == 0;
}

static void put_first(void)
{
    added[0] = put(sets[0], sets[1]);
}

static void put_second(void)
{
    added[1] = put(sets[1], sets[0]);
}

static void look_at_sets(void)
{
    both += added[0] + added[1] != 1;
    close(sets[0]);
    close(sets[1]);
}

int main(void)
{
    armed_while_told();
    all_are_told();
    together(ROUNDS, make_sets, put_first, put_second, look_at_sets);
    CHECK("sets-in-each-other", both);
    return 0;
}
