// What the target of a splice has no room for is still in the pipe that it comes from.
#include "../check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <signal.h>

static char bytes[65536];

// Puts `count` bytes into a pipe, each another one than its neighbours.
static void fill(int fd, int count)
{
    for (int i = 0; i < count; i++)
        bytes[i] = i % 251;
    REQUIRE(write(fd, bytes, count) == count);
}

// Whether the next bytes in a pipe are those that `fill` wrote from `from` on, until there are no more; how many.
static int rest(int fd, int from)
{
    int count = 0, wrong = 0;
    ssize_t got;
    while ((got = read(fd, bytes, sizeof bytes)) > 0) {
        for (int i = 0; i < got; i++)
            wrong += bytes[i] != (char)((from + count + i) % 251);
        count += got;
    }
    return wrong ? -wrong : count;
}

int main(void)
{
    int source[2], target[2];
    REQUIRE(pipe2(source, O_NONBLOCK) == 0 && pipe2(target, O_NONBLOCK) == 0);
    fill(source[1], 16384);
    fill(target[1], 15 * 4096);
    CHECK("one-page-has-room", splice(source[0], NULL, target[1], NULL, 16384, SPLICE_F_NONBLOCK));
    CHECK("the-rest-is-there", rest(source[0], 4096));
    CHECK("nothing-left", splice(source[0], NULL, target[1], NULL, 16384, SPLICE_F_NONBLOCK));
    fill(source[1], 5000);
    CHECK("no-room", splice(source[0], NULL, target[1], NULL, 16384, SPLICE_F_NONBLOCK));
    CHECK("all-is-there", rest(source[0], 0));
    CHECK("target", read(target[0], bytes, 15 * 4096));
    CHECK("target-has", rest(target[0], 0));

    // To a file that may not become larger.
    int file = open("/tmp/spliced", O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(file >= 0);
    fill(source[1], 10000);
    close(target[0]);
    signal(SIGPIPE, SIG_IGN);
    CHECK("no-reader", splice(source[0], NULL, target[1], NULL, 10000, 0));
    CHECK("to-a-file", splice(source[0], NULL, file, NULL, 6000, 0));
    CHECK("behind-it", rest(source[0], 6000));
    CHECK("size", lseek(file, 0, SEEK_CUR));
    unlink("/tmp/spliced");
    return 0;
}
