// The memory devices: null, zero, full, random, urandom.
#include "../check.h"

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
    CHECK("null-truncating-open", open("/dev/null", O_WRONLY | O_TRUNC | O_CREAT, 0644) > 0);
    CHECK("tty-less", isatty(null));
    CHECK("null-is-no-directory", open("/dev/null/x", O_RDONLY));
    return 0;
}
