// posix_fadvise and readahead: which files and arguments they take. What they advise has no effect that can be seen.
#include "../check.h"
#include <sys/mman.h>
#include <sys/socket.h>

static void advise(const char *name, int fd)
{
    char text[64];
    snprintf(text, sizeof text, "%s-fadvise", name);
    CHECK(text, syscall(SYS_fadvise64, fd, 0L, 0L, POSIX_FADV_WILLNEED));
    snprintf(text, sizeof text, "%s-fadvise-junk", name);
    CHECK(text, syscall(SYS_fadvise64, fd, 0L, 0L, 99));
    snprintf(text, sizeof text, "%s-readahead", name);
    CHECK(text, syscall(SYS_readahead, fd, 0L, 4096L));
}

int main(void)
{
    check_write_file("f", "content of a file");
    int fd = open("f", O_RDWR), pipe_fds[2], pair[2];
    REQUIRE(fd >= 0 && pipe(pipe_fds) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    for (int advice = -1; advice < 8; advice++)
        CHECK("advice", syscall(SYS_fadvise64, fd, 0L, 4096L, advice));
    CHECK("length-negative", syscall(SYS_fadvise64, fd, 0L, -1L, POSIX_FADV_NORMAL));
    CHECK("offset-negative", syscall(SYS_fadvise64, fd, -5L, 1L, POSIX_FADV_NORMAL));
    CHECK("beyond-the-end", syscall(SYS_fadvise64, fd, 1L << 40, 1L, POSIX_FADV_WILLNEED));
    CHECK("overflow", syscall(SYS_fadvise64, fd, INT64_MAX, INT64_MAX, POSIX_FADV_DONTNEED));
    CHECK("nothing-lost", read(fd, (char[32]){ 0 }, 32));
    advise("file", fd);
    advise("write-only", open("f", O_WRONLY));
    advise("path-only", open("f", O_PATH));
    advise("directory", open(".", O_RDONLY));
    advise("pipe", pipe_fds[0]);
    advise("pipe-write", pipe_fds[1]);
    advise("socket", pair[0]);
    advise("null", open("/dev/null", O_RDWR));
    advise("zero", open("/dev/zero", O_RDWR));
    advise("memory", memfd_create("m", 0));
    advise("proc", open("/proc/self/status", O_RDONLY));
    advise("closed", 999);
    CHECK("readahead-nothing", syscall(SYS_readahead, fd, 0L, 0L));
    CHECK("readahead-offset-negative", syscall(SYS_readahead, fd, -1L, 10L));
    CHECK("readahead-long", syscall(SYS_readahead, fd, 0L, -1L));
    CHECK("readahead-beyond", syscall(SYS_readahead, fd, 1L << 40, 4096L));
    return 0;
}
