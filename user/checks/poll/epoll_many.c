// epoll with many files: each is told in its turn, whatever is changed, deleted or closed meanwhile.
#include "../check.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

enum { COUNT = 300 };

static int epoll, fds[COUNT];
static unsigned seen[COUNT];

static struct epoll_event event_of(int number, unsigned events)
{
    return (struct epoll_event){ events, { .u64 = number } };
}

// How many there are in `rounds` waits for 64, and how many different ones.
static void wait_for_64(const char *name, int rounds)
{
    struct epoll_event got[64];
    int all = 0, different = 0;
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < rounds; i++) {
        int count = epoll_wait(epoll, got, 64, 0);
        for (int j = 0; j < count; j++)
            different += seen[got[j].data.u64]++ == 0;
        all += count;
    }
    printf("%s: %d %d\n", name, all, different);
}

static void everything(const char *name)
{
    static struct epoll_event got[2 * COUNT];
    int count = epoll_wait(epoll, got, 2 * COUNT, 0);
    unsigned most = 0;
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < count; i++)
        if (++seen[got[i].data.u64] > most)
            most = seen[got[i].data.u64];
    printf("%s: %d, each at most %u\n", name, count, most);
}

int main(void)
{
    epoll = epoll_create1(0);
    REQUIRE(epoll >= 0);
    for (int i = 0; i < COUNT; i++) {
        struct epoll_event event = event_of(i, EPOLLIN);
        fds[i] = eventfd(1, EFD_NONBLOCK);
        REQUIRE(fds[i] >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) == 0);
    }
    wait_for_64("all-in-turn", 5);
    everything("level");

    // Changed, deleted and added again while they are ready.
    for (int i = 0; i < COUNT; i += 3) {
        struct epoll_event event = event_of(i, EPOLLIN | EPOLLET);
        REQUIRE(epoll_ctl(epoll, EPOLL_CTL_MOD, fds[i], &event) == 0);
        REQUIRE(epoll_ctl(epoll, EPOLL_CTL_MOD, fds[i], &event) == 0);
    }
    everything("edge-and-level");
    everything("level-only");
    for (int i = 0; i < COUNT; i++) {
        struct epoll_event event = event_of(i, i % 2 ? EPOLLIN : EPOLLIN | EPOLLONESHOT);
        REQUIRE(epoll_ctl(epoll, EPOLL_CTL_DEL, fds[i], NULL) == 0);
        REQUIRE(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) == 0);
    }
    everything("added-again");
    everything("without-one-shots");
    for (int i = 0; i < COUNT; i += 2) {
        struct epoll_event event = event_of(i, 0);
        REQUIRE(epoll_ctl(epoll, EPOLL_CTL_MOD, fds[i], &event) == 0);
    }
    everything("not-interested");
    for (int i = 0; i < COUNT; i++) {
        struct epoll_event event = event_of(i, EPOLLIN);
        REQUIRE(epoll_ctl(epoll, EPOLL_CTL_MOD, fds[i], &event) == 0);
    }
    everything("interested-again");

    // Ready no more.
    eventfd_t value;
    for (int i = 0; i < COUNT; i += 4)
        REQUIRE(eventfd_read(fds[i], &value) == 0);
    everything("some-were-read");
    for (int i = 0; i < COUNT; i += 4)
        REQUIRE(eventfd_write(fds[i], 1) == 0);
    everything("ready-again");

    // What does not fit into memory stays.
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED && mprotect(pages + 4096, 4096, PROT_NONE) == 0);
    memset(pages, 0, 4096);
    CHECK("room-for-20", epoll_wait(epoll, (void *)(pages + 4096 - 20 * 12), 64, 0));
    CHECK("room-for-none", epoll_wait(epoll, (void *)(pages + 4096), 64, 0));
    everything("still-there");

    // Closed without a word.
    for (int i = 0; i < COUNT; i += 5)
        close(fds[i]);
    everything("some-closed");
    for (int i = 0; i < COUNT; i += 5) {
        struct epoll_event event = event_of(i, EPOLLIN);
        fds[i] = eventfd(1, EFD_NONBLOCK);
        REQUIRE(fds[i] >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) == 0);
    }
    everything("others-in-their-place");
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < COUNT; i++) {
            struct epoll_event event = event_of(i, EPOLLIN);
            REQUIRE(epoll_ctl(epoll, EPOLL_CTL_DEL, fds[i], NULL) == 0);
            REQUIRE(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) == 0);
        }
    everything("deleted-and-added-often");

    // A set with many files in another set, and its end.
    int outer = epoll_create1(0);
    struct epoll_event event = event_of(0, EPOLLIN), got[4];
    REQUIRE(outer >= 0 && epoll_ctl(outer, EPOLL_CTL_ADD, epoll, &event) == 0);
    CHECK("inner-is-ready", epoll_wait(outer, got, 4, 0));
    everything("inner-lost-none");
    int copy = dup(epoll);
    CHECK("closed-once", close(epoll));
    epoll = copy;
    everything("copy-lives");
    CHECK("closed", close(epoll));
    CHECK("outer-is-empty", epoll_wait(outer, got, 4, 0));
    CHECK("files-live", eventfd_read(fds[1], &value));
    return 0;
}
