// Many open descriptors.
#include "many.h"
#include <sys/eventfd.h>
#include <sys/socket.h>

static void open_eventfds(long count)
{
    for (long i = 0; i < count; i++)
        must(eventfd(0, 0), "eventfd");
}

static void open_and_close(long count)
{
    int first = eventfd(0, 0);
    open_eventfds(count - 1);
    for (long i = 0; i < count; i++)
        close(first + i);
}

static void open_pairs(long count)
{
    for (long i = 0; i < count; i++) {
        int pair[2];
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    }
}

static void open_pipes(long count)
{
    for (long i = 0; i < count; i++) {
        int ends[2];
        must(pipe(ends), "pipe");
    }
}

static uint64_t dup_close(long count) { REPEAT(call3(SYS_close, call3(SYS_dup, 0, 0, 0), 0, 0)); }
static uint64_t end_eventfds(long count) { return ending(open_eventfds, count); }
static uint64_t end_pairs(long count) { return ending(open_pairs, count); }
static uint64_t end_pipes(long count) { return ending(open_pipes, count); }

const struct row descriptor_rows[] = {
    { "descriptors-dup-close", open_eventfds, dup_close, 100 },
    { "descriptors-fork", open_eventfds, fork_exit_wait, 3 },
    { "descriptors-fork-after", open_and_close, fork_exit_wait, 3 },
    { "descriptors-end", NULL, end_eventfds, 0 },
    { "pipes-end", NULL, end_pipes, 0 },
    { "pairs-end", NULL, end_pairs, 0 },
    { 0 },
};
