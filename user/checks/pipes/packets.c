// Packets: O_DIRECT of pipe2, of open and of F_SETFL.
#include "../check.h"
#include <poll.h>
#include <sys/ioctl.h>

static int fds[2];

static void put(const char *name, const char *text)
{
    CHECK(name, write(fds[1], text, strlen(text)));
}

static void get(const char *name, size_t most)
{
    char buffer[64] = "";
    ssize_t got = read(fds[0], buffer, most);
    if (got < 0)
        check_result(name, got, errno);
    else
        check_line("%s: %zd %.*s\n", name, got, (int)got, buffer);
}

int main(void)
{
    static char block[200000];
    CHECK("make", pipe2(fds, O_DIRECT | O_NONBLOCK));
    CHECK_TRUE("reading end has it", fcntl(fds[0], F_GETFL) & O_DIRECT);
    CHECK_TRUE("writing end has it", fcntl(fds[1], F_GETFL) & O_DIRECT);
    put("first", "one");
    put("second", "two");
    put("empty", "");
    int waiting = 0;
    REQUIRE(ioctl(fds[0], FIONREAD, &waiting) == 0);
    CHECK("waiting", waiting);
    get("read all", 64);
    get("read part", 2);
    get("the rest is lost", 64);
    // Two kinds of bytes in one pipe.
    put("packet", "packet");
    REQUIRE(fcntl(fds[1], F_SETFL, O_NONBLOCK) == 0);
    put("bytes", "by");
    put("more bytes", "tes");
    REQUIRE(fcntl(fds[1], F_SETFL, O_NONBLOCK | O_DIRECT) == 0);
    get("packet again", 64);
    get("bytes together", 4);
    get("last byte", 64);
    // A packet takes a page, whatever is in it; large writes become several.
    int count = 0;
    while (write(fds[1], "x", 1) == 1)
        count++;
    CHECK("full", (errno = 0, write(fds[1], "x", 1)));
    CHECK("packets that fit", count);
    struct pollfd ready = { fds[1], POLLOUT, 0 };
    CHECK("writable when full", poll(&ready, 1, 0));
    CHECK("shrink", fcntl(fds[1], F_SETPIPE_SZ, 32768));
    CHECK("enlarge", fcntl(fds[1], F_SETPIPE_SZ, 131072));
    CHECK("room again", poll(&ready, 1, 0));
    while (read(fds[0], block, sizeof block) > 0)
        ;
    CHECK("large", write(fds[1], block, 10000));
    CHECK("its first page", read(fds[0], block, sizeof block));
    CHECK("its second page", read(fds[0], block, 100));
    CHECK("its end", read(fds[0], block, sizeof block));
    CHECK("too large", write(fds[1], block, sizeof block));
    close(fds[0]);
    close(fds[1]);
    // Set later, while bytes are in the pipe.
    REQUIRE(pipe(fds) == 0);
    put("before", "before");
    REQUIRE(fcntl(fds[1], F_SETFL, O_DIRECT) == 0);
    REQUIRE(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
    put("after", "after");
    put("and after", "that");
    get("up to a packet's end", 6);
    get("packet", 64);
    get("next", 64);
    get("nothing", 64);
    close(fds[0]);
    close(fds[1]);
    REQUIRE(mkfifo("fifo", 0644) == 0);
    CHECK("open a fifo so", open("fifo", O_RDWR | O_DIRECT | O_NONBLOCK));
    fds[0] = fds[1] = open("fifo", O_RDWR | O_NONBLOCK);
    CHECK("set it for a fifo", fcntl(fds[1], F_SETFL, O_DIRECT | O_NONBLOCK));
    put("fifo", "one");
    put("fifo again", "two");
    get("fifo's packet", 64);
    CHECK("bad flags", pipe2(fds, O_APPEND));
    return 0;
}
