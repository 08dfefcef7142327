// Buffers that run over the edge of what is mapped: how much is transferred, what is lost, and what the next call finds.
#include "../check.h"
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define PAGE 4096L
// Two pages that are mapped, and behind them one that is not.
static char *pages, *edge;

static void fill(int fd, long count, int flags)
{
    static char bytes[4 * 4096];
    for (long i = 0; i < count; i++)
        bytes[i] = 'a' + i % 26;
    if (flags)
        REQUIRE(send(fd, bytes, count, MSG_DONTWAIT) == count);
    else
        REQUIRE(write(fd, bytes, count) == count);
}

// What is left in a stream, and with which letter it begins.
static void left(const char *name, int fd)
{
    static char rest[65536];
    long got = read(fd, rest, sizeof rest);
    check_line("%s-left: %ld %c\n", name, got, got > 0 ? rest[0] : '-');
}

static void streams(const char *name, int out, int in)
{
    char text[64];
#define EACH(what, expr)                                     \
    do {                                                     \
        snprintf(text, sizeof text, "%s-%s", name, what);    \
        CHECK(text, expr);                                   \
    } while (0)
    // Reading: a little, and more than a page, before the edge.
    fill(out, 100, 0);
    EACH("read", read(in, edge - 10, 100));
    left(text, in);
    // Of a pipe, Linux gives the pages that have room; Ebb all or nothing, up to 64 KiB. Nothing is lost on either.
    fill(out, 3 * PAGE, 0);
    long sum = read(in, edge - PAGE - 10, 3 * PAGE), got;
    if (sum < 0)
        sum = 0;
    while ((got = read(in, pages, 2 * PAGE)) > 0)
        sum += got;
    EACH("read-much-sum", sum);
    fill(out, 100, 0);
    EACH("read-none", read(in, edge, 100));
    left(text, in);
    // Linux takes nothing of what was written at once if not all of it has room; Ebb what the first vectors have room for.
    struct iovec split[2] = { { pages, 20 }, { edge - 5, 50 } };
    struct iovec second_bad[2] = { { pages, 20 }, { edge, 50 } };
    fill(out, 100, 0);
    struct iovec first_bad[2] = { { edge, 20 }, { pages, 50 } };
    EACH("readv-first-bad", readv(in, first_bad, 2));
    left(text, in);
    // Writing.
    memset(pages, 'w', 2 * PAGE);
    EACH("write", write(out, edge - 10, 100));
    left(text, in);
    EACH("write-much", write(out, edge - PAGE - 10, 3 * PAGE));
    left(text, in);
    EACH("write-none", write(out, edge, 100));
    left(text, in);
    EACH("writev", writev(out, split, 2));
    left(text, in);
    EACH("writev-second-bad", writev(out, second_bad, 2));
    left(text, in);
    EACH("writev-first-bad", writev(out, first_bad, 2));
    left(text, in);
}

static void sockets(const char *name, int kind)
{
    char text[64];
    int pair[2];
    REQUIRE(socketpair(AF_UNIX, kind | SOCK_NONBLOCK, 0, pair) == 0);
    char rest[256];
    int is_stream = kind == SOCK_STREAM;
    // A message that finds no room is lost on Linux and stays on Ebb.
    fill(pair[0], 100, 1);
    EACH("receive", recv(pair[1], edge - 10, 100, 0));
    EACH("receive-rest", recv(pair[1], rest, sizeof rest, 0) == 100 || !is_stream);
    fill(pair[0], 100, 1);
    EACH("peek", recv(pair[1], edge - 10, 100, MSG_PEEK));
    EACH("peek-rest", recv(pair[1], rest, sizeof rest, 0));
    fill(pair[0], 100, 1);
    EACH("receive-none", recv(pair[1], edge, 100, 0));
    EACH("receive-none-rest", recv(pair[1], rest, sizeof rest, 0) == 100 || !is_stream);
    struct iovec split[2] = { { pages, 20 }, { edge - 5, 50 } };
    struct msghdr message = { .msg_iov = split, .msg_iovlen = 2 };
    fill(pair[0], 100, 1);
    EACH("recvmsg", recvmsg(pair[1], &message, 0));
    EACH("recvmsg-rest", recv(pair[1], rest, sizeof rest, 0) == 100 || !is_stream);
    EACH("send", send(pair[0], edge - 10, 100, 0));
    EACH("send-rest", recv(pair[1], rest, sizeof rest, 0));
    EACH("sendmsg", sendmsg(pair[0], &message, 0));
    EACH("sendmsg-rest", recv(pair[1], rest, sizeof rest, 0));
    // A peer's address that has no room: the message is gone.
    fill(pair[0], 50, 1);
    socklen_t length = 8;
    EACH("no-room-for-address", recvfrom(pair[1], rest, 10, 0, (void *)edge, &length));
    EACH("no-room-for-address-rest", recv(pair[1], rest, sizeof rest, 0));
    fill(pair[0], 50, 1);
    EACH("no-room-for-length", recvfrom(pair[1], rest, 10, 0, (void *)pages, (void *)edge));
    EACH("no-room-for-length-rest", recv(pair[1], rest, sizeof rest, 0));
    close(pair[0]);
    close(pair[1]);
}

static void files(void)
{
    char text[64];
    const char *name = "file";
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0644);
    REQUIRE(fd >= 0);
    fill(fd, 3 * PAGE, 0);
    EACH("read", pread(fd, edge - 10, 100, 0));
    EACH("read-across", pread(fd, edge - 10, 100, PAGE - 5));
    EACH("read-much", pread(fd, edge - PAGE - 10, 3 * PAGE, 7));
    EACH("read-none", pread(fd, edge, 10, 0));
    EACH("read-none-at-end", pread(fd, edge, 10, 3 * PAGE));
    EACH("write", pwrite(fd, edge - 10, 100, 0));
    EACH("write-much", pwrite(fd, edge - PAGE - 10, 3 * PAGE, 0));
    EACH("write-none", pwrite(fd, edge, 10, 0));
    EACH("write-beyond", pwrite(fd, edge - 10, 100, 5 * PAGE));
    CHECK("size", lseek(fd, 0, SEEK_END));
    struct iovec second_bad[2] = { { pages, 20 }, { edge, 50 } };
    EACH("writev-second-bad", pwritev(fd, second_bad, 2, 0));
    EACH("readv-second-bad", preadv(fd, second_bad, 2, 0));
    close(fd);
}

int main(void)
{
    pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED && munmap(pages + 2 * PAGE, PAGE) == 0);
    edge = pages + 2 * PAGE;
    int fds[2];
    REQUIRE(pipe2(fds, O_NONBLOCK) == 0);
    streams("pipe", fds[1], fds[0]);
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
    streams("stream", fds[0], fds[1]);
    sockets("stream", SOCK_STREAM);
    sockets("datagram", SOCK_DGRAM);
    sockets("packet", SOCK_SEQPACKET);
    files();
    int zero = open("/dev/zero", O_RDWR), event = eventfd(5, EFD_NONBLOCK);
    CHECK("zero", read(zero, edge - 10, 100));
    CHECK("zero-none", read(zero, edge, 100));
    CHECK("null-none", write(open("/dev/null", O_WRONLY), edge, 100));
    CHECK("random", getrandom(edge - 10, 100, 0));
    CHECK("random-none", getrandom(edge, 100, 0));
    // The count is lost on Linux and stays on Ebb.
    CHECK("event", read(event, edge - 4, 8));
    CHECK("event-write", write(event, edge - 4, 8));
    return 0;
}
