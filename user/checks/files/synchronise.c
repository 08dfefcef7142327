// sync and its family: which descriptors and arguments they take.
#include "../check.h"
#include <sys/mman.h>
#include <sys/socket.h>

static void all(const char *name, int fd)
{
    char text[64];
#define EACH(call, ...)                                       \
    do {                                                      \
        snprintf(text, sizeof text, "%s-%s", name, #call);    \
        CHECK(text, syscall(SYS_##call, fd, ##__VA_ARGS__));  \
    } while (0)
    EACH(fsync);
    EACH(fdatasync);
    EACH(syncfs);
    EACH(sync_file_range, 0L, 4096L, SYNC_FILE_RANGE_WRITE);
}

int main(void)
{
    check_write_file("f", "content");
    int fd = open("f", O_RDWR), pipe_fds[2], pair[2];
    REQUIRE(fd >= 0 && pipe(pipe_fds) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    all("file", fd);
    all("read-only", open("f", O_RDONLY));
    all("path-only", open("f", O_PATH));
    all("directory", open(".", O_RDONLY | O_DIRECTORY));
    all("pipe", pipe_fds[1]);
    all("socket", pair[0]);
    all("null", open("/dev/null", O_RDWR));
    all("memory", memfd_create("m", 0));
    all("closed", 999);
    all("negative", -1);
    CHECK("range-flags", syscall(SYS_sync_file_range, fd, 0L, 1L, 8));
    CHECK("range-offset", syscall(SYS_sync_file_range, fd, -1L, 1L, 0));
    CHECK("range-length", syscall(SYS_sync_file_range, fd, 0L, -1L, 0));
    CHECK("range-end", syscall(SYS_sync_file_range, fd, INT64_MAX, 1L, 0));
    CHECK("range-flags-of-nothing", syscall(SYS_sync_file_range, 999, 0L, 1L, 8));
    return 0;
}
