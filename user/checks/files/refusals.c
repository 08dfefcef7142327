// Which error comes first where a call finds several, and what calls say of files that they are not for.
#include "../check.h"
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define FICLONE _IOW(0x94, 9, int)

static long preadv2(int fd, const struct iovec *vector, int count, long offset, int flags)
{
    return syscall(SYS_preadv2, fd, vector, count, offset, 0L, flags);
}

static long pwritev2(int fd, const struct iovec *vector, int count, long offset, int flags)
{
    return syscall(SYS_pwritev2, fd, vector, count, offset, 0L, flags);
}

int main(void)
{
    char bytes[16] = "0123456789";
    struct iovec vector = { bytes, 4 };
    check_write_file("f", "0123456789");
    check_write_file("g", "");
    int file = open("f", O_RDWR), other = open("g", O_RDWR), read_only = open("f", O_RDONLY);
    int write_only = open("f", O_WRONLY), append = open("g", O_WRONLY | O_APPEND), path = open("f", O_PATH);
    int directory = open(".", O_RDONLY), null = open("/dev/null", O_RDWR);
    int pipes[2], more[2], sockets[2];
    REQUIRE(pipe(pipes) == 0 && pipe(more) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    REQUIRE(write(pipes[1], "content", 7) == 7);

    CHECK("preadv2-offset-of-pipe", preadv2(pipes[0], &vector, 1, 0, 0));
    CHECK("preadv2-offset-of-writing-end", preadv2(pipes[1], &vector, 1, 0, 0));
    CHECK("pwritev2-offset-of-reading-end", pwritev2(pipes[0], &vector, 1, 0, 0));
    CHECK("pwritev2-current-of-reading-end", pwritev2(pipes[0], &vector, 1, -1, 0));
    CHECK("pwritev2-read-only", pwritev2(read_only, &vector, 1, 0, 0));
    CHECK("preadv2-write-only", preadv2(write_only, &vector, 1, 0, 0));
    CHECK("preadv-of-path", preadv(path, &vector, 1, 0));
    CHECK("preadv2-unknown-flag", preadv2(file, &vector, 1, 0, 0x4000000));
    CHECK("pwritev2-unknown-flag-of-pipe", pwritev2(pipes[0], &vector, 1, 0, 0x4000000));
    CHECK("preadv-negative", preadv(pipes[0], &vector, 1, -2));
    vector.iov_len = -1;
    CHECK("pwritev2-length-first", pwritev2(file, &vector, 1, 0, 0));
    vector.iov_len = 4;

    CHECK("sync-range-of-pipe", sync_file_range(pipes[0], 0, 1, 0));
    CHECK("sync-range-of-null", sync_file_range(null, 0, 1, 0));
    CHECK("sync-range-of-socket", sync_file_range(sockets[0], 0, 1, 0));
    CHECK("sync-range-of-directory", sync_file_range(directory, 0, 1, 0));
    CHECK("sync-range-of-path", sync_file_range(path, 0, 1, 0));
    CHECK("sync-range-flags", sync_file_range(file, 0, 1, 99));
    CHECK("sync-range-all", sync_file_range(file, 0, 0, 7));

    loff_t far = INT64_MAX, start = 0, five = 5;
    CHECK("copy-too-far", copy_file_range(file, &start, other, &far, 1, 0));
    CHECK("copy-overflow", copy_file_range(file, &five, other, &start, SIZE_MAX, 0));
    CHECK("copy-from-behind-the-end", copy_file_range(file, &far, other, &start, 100, 0));
    CHECK("copy-to-appending", copy_file_range(file, &start, append, NULL, 1, 0));
    CHECK("copy-from-directory", copy_file_range(directory, NULL, other, NULL, 1, 0));
    CHECK("copy-from-pipe", copy_file_range(pipes[0], NULL, other, NULL, 1, 0));
    CHECK("copy-to-null", copy_file_range(file, NULL, null, NULL, 1, 0));
    CHECK("copy-flags", copy_file_range(file, NULL, other, NULL, 1, 1));
    CHECK("copy-nothing", copy_file_range(file, NULL, other, NULL, 0, 0));

    CHECK("clone-bad-source", ioctl(other, FICLONE, -1));
    CHECK("clone-from-directory", ioctl(other, FICLONE, directory));
    CHECK("clone-to-directory", ioctl(directory, FICLONE, file));
    CHECK("clone-across", ioctl(other, FICLONE, pipes[0]));
    CHECK("clone-write-only", ioctl(other, FICLONE, write_only));
    CHECK("clone-to-read-only", ioctl(read_only, FICLONE, other));
    CHECK("clone-to-appending", ioctl(append, FICLONE, file));

    CHECK("splice-to-appending", splice(pipes[0], NULL, append, NULL, 4, 0));
    CHECK("splice-to-reading-end", splice(file, NULL, more[0], NULL, 4, 0));
    CHECK("splice-from-writing-end", splice(more[1], NULL, file, NULL, 4, 0));
    CHECK("splice-to-read-only", splice(pipes[0], NULL, read_only, NULL, 4, 0));
    CHECK("splice-from-write-only", splice(write_only, NULL, more[1], NULL, 4, 0));
    CHECK("splice-of-path", splice(path, NULL, more[1], NULL, 4, 0));
    CHECK("splice-no-pipe", splice(file, NULL, other, NULL, 4, 0));
    CHECK("splice-to-itself", splice(pipes[0], NULL, pipes[1], NULL, 4, 0));
    CHECK("splice-pipe-offset", splice(pipes[0], &start, other, NULL, 4, 0));
    CHECK("splice-directory", splice(directory, NULL, more[1], NULL, 4, 0));
    CHECK("splice-nothing", splice(file, NULL, more[1], NULL, 0, 0));
    CHECK("splice-closed", splice(-1, NULL, more[1], NULL, 4, 0));
    CHECK("tee-to-itself", tee(pipes[0], pipes[1], 4, 0));
    CHECK("tee-reversed", tee(pipes[1], more[0], 4, 0));
    CHECK("tee-file", tee(file, more[1], 4, 0));
    CHECK("in-the-pipe", (ioctl(pipes[0], FIONREAD, &bytes), *(int *)bytes));

    CHECK("pipe-size-zero", fcntl(more[1], F_SETPIPE_SZ, 0));
    CHECK("pipe-size-huge", fcntl(more[1], F_SETPIPE_SZ, -1));
    CHECK("pipe-size-of-file", fcntl(file, F_SETPIPE_SZ, 4096));

    int epoll = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN };
    CHECK("epoll-path", epoll_ctl(epoll, EPOLL_CTL_ADD, path, &event));
    CHECK("epoll-in-path", epoll_ctl(path, EPOLL_CTL_ADD, pipes[0], &event));
    CHECK("epoll-file", epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event));
    CHECK("epoll-of-file", epoll_ctl(file, EPOLL_CTL_ADD, pipes[0], &event));
    CHECK("accept-path", accept(path, NULL, NULL));
    CHECK("accept-pipe", accept(pipes[0], NULL, NULL));
    CHECK("accept-connected", accept(sockets[0], NULL, NULL));
    CHECK("listen-path", listen(path, 1));
    CHECK("send-path", send(path, "x", 1, 0));
    CHECK("fchdir-path-of-file", fchdir(path));
    CHECK("fstat-path", fstat(path, &(struct stat){ 0 }));
    return 0;
}
