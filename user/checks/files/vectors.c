// readv, writev, preadv, pwritev: scattered buffers and their limits.
#include "../check.h"
#include <limits.h>
#include <sys/uio.h>

int main(void)
{
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    REQUIRE(fd >= 0);
    char a[3] = { 0 }, b[5] = { 0 };
    struct iovec out[] = { { "one", 3 }, { "", 0 }, { "two", 3 }, { "three", 5 } };
    CHECK("writev", writev(fd, out, 4));
    struct iovec in[] = { { a, 3 }, { b, 5 } };
    REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
    CHECK("readv", readv(fd, in, 2));
    CHECK_TRUE("content", memcmp(a, "one", 3) == 0 && memcmp(b, "twoth", 5) == 0);
    CHECK("readv-short", readv(fd, in, 2));
    CHECK("readv-end", readv(fd, in, 2));
    CHECK("preadv", preadv(fd, in, 2, 1));
    CHECK_TRUE("preadv-content", memcmp(a, "net", 3) == 0 && memcmp(b, "wothr", 5) == 0);
    CHECK("pwritev", pwritev(fd, out, 1, 8));
    CHECK("position-kept", lseek(fd, 0, SEEK_CUR));
    CHECK_STR("text", check_read_file("f"));
    CHECK("no-vectors", writev(fd, out, 0));
    CHECK("negative-count", writev(fd, out, -1));
    CHECK("too-many", syscall(SYS_writev, fd, out, IOV_MAX + 1));
    struct iovec huge[] = { { a, 3 }, { b, SIZE_MAX } };
    CHECK("length-negative", writev(fd, huge, 2));
    CHECK("bad-vector-pointer", writev(fd, BAD_POINTER, 2));
    struct iovec partly_bad[] = { { "ok", 2 }, { BAD_POINTER, 4 } };
    int pipe_fds[2];
    REQUIRE(pipe(pipe_fds) == 0);
    CHECK("first-buffer-bad", writev(pipe_fds[1], partly_bad + 1, 1));
    CHECK("pwritev-on-pipe", pwritev(pipe_fds[1], out, 1, 0));
    CHECK("preadv-on-pipe", preadv(pipe_fds[0], in, 1, 0));
    return 0;
}
