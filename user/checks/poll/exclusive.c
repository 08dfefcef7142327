// EPOLLEXCLUSIVE: of several sets that wait for one file, an event wakes one.
#include "../check.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { WAITERS = 6 };

static int *woken;

static int add(int epoll, int fd, uint32_t events)
{
    struct epoll_event event = { events, { .u64 = 1 } };
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

// Waits until a child sleeps.
static void until_asleep(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    for (;;) {
        const char *text = check_read_file(path), *end = strrchr(text, ')');
        if (end && end[2] == 'S')
            return;
        check_sleep_ms(1);
    }
}

static pid_t start(int fd, uint32_t events)
{
    pid_t pid = check_fork();
    if (pid != 0)
        return pid;
    int epoll = epoll_create1(0);
    REQUIRE(epoll >= 0 && add(epoll, fd, events) == 0);
    struct epoll_event got;
    REQUIRE(epoll_wait(epoll, &got, 1, -1) == 1);
    __atomic_fetch_add(woken, 1, __ATOMIC_SEQ_CST);
    // It waits for nothing any more, but its set is there as long as it is.
    pause();
    _exit(0);
}

// Has `WAITERS` wait for `fd`, of which the first `shared` do so without EPOLLEXCLUSIVE, and says how many events `cause` wakes, one after the other.
static void rounds(const char *name, int fd, int shared, void (*cause)(void))
{
    pid_t pids[WAITERS];
    *woken = 0;
    for (int i = 0; i < WAITERS; i++) {
        pids[i] = start(fd, EPOLLIN | EPOLLET | (i < shared ? 0 : EPOLLEXCLUSIVE));
        until_asleep(pids[i]);
    }
    for (int i = shared > 0 ? shared : 1; i <= WAITERS; i++) {
        cause();
        int expected = shared > 0 ? i + 1 : i;
        if (expected > WAITERS)
            break;
        while (__atomic_load_n(woken, __ATOMIC_SEQ_CST) < expected)
            check_sleep_ms(1);
        // Whoever else was woken has had time to say so.
        check_sleep_ms(20);
        char line[64];
        snprintf(line, sizeof line, "%s-%d", name, i);
        CHECK(line, *woken);
    }
    for (int i = 0; i < WAITERS; i++) {
        kill(pids[i], SIGKILL);
        check_wait(pids[i]);
    }
}

static int pipe_ends[2], event, sockets[2], listener;
static struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "listener" };

static void write_pipe(void)
{
    REQUIRE(write(pipe_ends[1], "x", 1) == 1);
}

static void write_event(void)
{
    uint64_t one = 1;
    REQUIRE(write(event, &one, 8) == 8);
}

static void write_socket(void)
{
    REQUIRE(write(sockets[1], "x", 1) == 1);
}

static void connect_socket(void)
{
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(client >= 0 && connect(client, (struct sockaddr *)&address, sizeof address) == 0);
}

int main(void)
{
    woken = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(woken != MAP_FAILED);
    int epoll = epoll_create1(0), inner = epoll_create1(0);
    event = eventfd(0, 0);
    CHECK("one-shot-refused", add(epoll, event, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT));
    CHECK("hang-up-of-one-side-refused", add(epoll, event, EPOLLIN | EPOLLEXCLUSIVE | EPOLLRDHUP));
    CHECK("set-refused", add(epoll, inner, EPOLLIN | EPOLLEXCLUSIVE));
    CHECK("added", add(epoll, event, EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLET | EPOLLEXCLUSIVE));
    struct epoll_event change = { EPOLLIN, { .u64 = 1 } };
    CHECK("change-refused", epoll_ctl(epoll, EPOLL_CTL_MOD, event, &change));
    CHECK("taken-out", epoll_ctl(epoll, EPOLL_CTL_DEL, event, NULL));
    CHECK("added-shared", add(epoll, event, EPOLLIN));
    change.events |= EPOLLEXCLUSIVE;
    CHECK("change-to-exclusive-refused", epoll_ctl(epoll, EPOLL_CTL_MOD, event, &change));
    close(epoll);
    REQUIRE(pipe(pipe_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 100) == 0);
    rounds("pipe", pipe_ends[0], 0, write_pipe);
    rounds("event", event, 0, write_event);
    rounds("socket", sockets[0], 0, write_socket);
    rounds("listener", listener, 0, connect_socket);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    REQUIRE(pipe(pipe_ends) == 0);
    rounds("mixed", pipe_ends[0], 2, write_pipe);
    // Sets of which nobody waits do not count, but they have it.
    int idle = epoll_create1(0);
    REQUIRE(add(idle, event, EPOLLIN | EPOLLET | EPOLLEXCLUSIVE) == 0);
    struct epoll_event got;
    uint64_t count;
    REQUIRE(epoll_wait(idle, &got, 1, 0) == 1 && read(event, &count, 8) == 8);
    rounds("beside-idle", event, 0, write_event);
    CHECK("idle-has-it", epoll_wait(idle, &got, 1, 0));
    // The end of the other side is for all.
    *woken = 0;
    REQUIRE(pipe(pipe_ends) == 0);
    pid_t pids[WAITERS];
    for (int i = 0; i < WAITERS; i++) {
        pid_t pid = check_fork();
        if (pid == 0) {
            close(pipe_ends[1]);
            int own = epoll_create1(0);
            REQUIRE(add(own, pipe_ends[0], EPOLLIN | EPOLLET | EPOLLEXCLUSIVE) == 0);
            REQUIRE(epoll_wait(own, &got, 1, -1) == 1);
            _exit(got.events == EPOLLHUP ? 0 : 1);
        }
        pids[i] = pid;
        until_asleep(pid);
    }
    close(pipe_ends[1]);
    for (int i = 0; i < WAITERS; i++)
        CHECK_STATUS("end-for-all", check_wait(pids[i]));
    return 0;
}
