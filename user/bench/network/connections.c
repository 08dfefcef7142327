// Many connections: one of them is busy, or none, and how much memory they take.
#include "network.h"
#include <sys/epoll.h>

enum { WATCHED = 1000, ROUND_TRIPS = 2000, IDLE = 2000 };

static int ends[IDLE][2];

static void make_connections(int count)
{
    struct sockaddr_in address;
    int listener = listening_socket(&address);
    for (int i = 0; i < count; i++)
        connect_and_accept(listener, &address, ends[i]);
    close(listener);
}

static void close_connections(int count)
{
    for (int i = 0; i < count; i++) {
        close(ends[i][0]);
        close(ends[i][1]);
    }
}

// Answers what comes over any of the connections, so many times.
static void serve(int count, long answers)
{
    struct epoll_event events[64];
    int set = epoll_create1(0);
    for (int i = 0; i < count; i++) {
        struct epoll_event event = { .events = EPOLLIN, .data.fd = ends[i][1] };
        if (epoll_ctl(set, EPOLL_CTL_ADD, ends[i][1], &event) < 0)
            _exit(1);
    }
    while (answers > 0) {
        int ready = epoll_wait(set, events, 64, -1);
        if (ready < 0)
            _exit(1);
        for (int i = 0; i < ready; i++, answers--) {
            char byte;
            if (read(events[i].data.fd, &byte, 1) != 1 || write(events[i].data.fd, &byte, 1) != 1)
                _exit(1);
        }
    }
    _exit(0);
}

// One byte there and back over one of many connections, each time another.
static void ask(int count, long times)
{
    uint64_t random = 88172645463325252;
    char byte = 0;
    for (long i = 0; i < times; i++) {
        // Marsaglia, Xorshift RNGs, with the triple (13, 7, 17).
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        int end = ends[random % count][0];
        if (write(end, &byte, 1) != 1 || read(end, &byte, 1) != 1)
            fail("the server is gone");
    }
}

static long one_of_many(void)
{
    make_connections(WATCHED);
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0)
        serve(WATCHED, 1 + ROUND_TRIPS);
    ask(WATCHED, 1);
    MARK_BEGIN();
    ask(WATCHED, ROUND_TRIPS);
    MARK_END();
    must(waitpid(pid, NULL, 0), "wait");
    close_connections(WATCHED);
    return ROUND_TRIPS;
}

static long free_memory(void)
{
    char line[128];
    long kib = -1;
    FILE *file = fopen("/proc/meminfo", "r");
    if (!file)
        fail("/proc/meminfo");
    while (kib < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "MemFree: %ld kB", &kib) != 1)
            kib = -1;
    fclose(file);
    return kib;
}

static long connection_bytes(int uses_each)
{
    // The tables of descriptors are not the connections'.
    int last = dup2(0, 2 * IDLE + 64);
    must(last, "dup2");
    long before = free_memory();
    make_connections(IDLE);
    for (int i = 0; uses_each && i < IDLE; i++)
        for (int end = 0; end < 2; end++) {
            char bytes[1024] = { 0 };
            if (write(ends[i][end], bytes, sizeof bytes) != sizeof bytes || read(ends[i][!end], bytes, sizeof bytes) != sizeof bytes)
                fail("a connection does not work");
        }
    long after = free_memory();
    close_connections(IDLE);
    close(last);
    return (before - after) * 1024 / IDLE;
}

static long new_connection_bytes(void) { return connection_bytes(0); }
static long used_connection_bytes(void) { return connection_bytes(1); }

const struct row connection_rows[] = {
    { "epoll-1000", one_of_many },
    { "memory-new", new_connection_bytes },
    { "memory-used", used_connection_bytes },
    { 0 },
};
