// What is in a pipe is read or spliced, each byte once, by two at the same moment.
#include "together.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int source[2], target[2], good;
static char bytes[65536];
static char read_first[3000];
static ssize_t spliced, got;

static void fill(void)
{
    for (int i = 0; i < 8192; i++)
        bytes[i] = 1 + i % 127;
    REQUIRE(write(source[1], bytes, 8192) == 8192);
    memset(bytes, 0, sizeof bytes);
    REQUIRE(write(target[1], bytes, 15 * 4096) == 15 * 4096);
}

static void splice_it(void)
{
    spliced = splice(source[0], NULL, target[1], NULL, 8192, SPLICE_F_NONBLOCK);
}

static void read_it(void)
{
    got = read(source[0], read_first, sizeof read_first);
}

// How many bytes of a pipe were among those that it was filled with; the sum of their values is added up.
static int drain(int fd, long *sum)
{
    int count = 0;
    ssize_t part;
    while ((part = read(fd, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < part; i++) {
            count += bytes[i] != 0;
            *sum += bytes[i];
        }
    return count;
}

static void see(void)
{
    static long expected;
    long sum = 0;
    if (expected == 0)
        for (int i = 0; i < 8192; i++)
            expected += 1 + i % 127;
    for (ssize_t i = 0; i < got; i++)
        sum += read_first[i];
    int in_target = drain(target[0], &sum), left = drain(source[0], &sum);
    good += spliced == in_target && got + in_target + left == 8192 && sum == expected;
}

int main(void)
{
    REQUIRE(pipe2(source, O_NONBLOCK) == 0 && pipe2(target, O_NONBLOCK) == 0);
    together(3000, fill, splice_it, read_it, see);
    CHECK("each-byte-once", good);
    return 0;
}
