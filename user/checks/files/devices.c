// The memory devices: null, zero, full, random, urandom.
#include "../check.h"
#include <sys/epoll.h>

int main(void)
{
    char buffer[4096];
    int null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDWR), full = open("/dev/full", O_RDWR);
    REQUIRE(null >= 0 && zero >= 0 && full >= 0);
    CHECK("null-read", read(null, buffer, 10));
    CHECK("null-write", write(null, buffer, sizeof buffer));
    CHECK("null-seek", lseek(null, 100, SEEK_SET));
    memset(buffer, 1, sizeof buffer);
    CHECK("zero-read", read(zero, buffer, sizeof buffer));
    int zeros = 0;
    for (size_t i = 0; i < sizeof buffer; i++)
        zeros += buffer[i] == 0;
    CHECK("zero-content", zeros);
    CHECK("zero-write", write(zero, buffer, 10));
    CHECK("full-read", read(full, buffer, 10));
    CHECK("full-write", write(full, buffer, 10));
    int random = open("/dev/urandom", O_RDONLY);
    char first[32] = { 0 }, second[32] = { 0 };
    CHECK("urandom-read", read(random, first, 32));
    CHECK("urandom-again", read(random, second, 32));
    CHECK_TRUE("urandom-differs", memcmp(first, second, 32) != 0);
    // However much is asked for; an offset means nothing, and only /dev/random can be waited for.
    static char much[300000];
    CHECK("urandom-much", read(random, much, sizeof much));
    int still_zero = 0;
    for (size_t i = 0; i + 16 <= sizeof much; i += 16)
        still_zero += memcmp(much + i, (char[16]){ 0 }, 16) == 0;
    CHECK("urandom-not-filled", still_zero);
    CHECK("urandom-at-offset", pread(random, first, 32, 1000));
    CHECK("urandom-seek", lseek(random, 100, SEEK_SET));
    CHECK("urandom-nothing", read(random, first, 0));
    CHECK("urandom-no-memory", read(random, (char *)1, 10));
    int blocking = open("/dev/random", O_RDONLY), epoll = epoll_create1(0);
    REQUIRE(blocking >= 0 && epoll >= 0);
    CHECK("random-much", read(blocking, much, sizeof much));
    struct epoll_event event = { .events = EPOLLIN };
    CHECK("urandom-waited-for", epoll_ctl(epoll, EPOLL_CTL_ADD, random, &event));
    CHECK("random-waited-for", epoll_ctl(epoll, EPOLL_CTL_ADD, blocking, &event));
    CHECK("null-truncating-open", open("/dev/null", O_WRONLY | O_TRUNC | O_CREAT, 0644) > 0);
    CHECK("tty-less", isatty(null));
    CHECK("null-is-no-directory", open("/dev/null/x", O_RDONLY));
    return 0;
}
