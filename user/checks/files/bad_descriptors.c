// EBADF: each call on a descriptor that is not open.
#include "../check.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/uio.h>

int main(void)
{
    const int bad = 77;
    char buffer[256];
    struct stat st;
    struct statfs fs;
    struct iovec vector = { buffer, sizeof buffer };
    CHECK("read", read(bad, buffer, 1));
    CHECK("write", write(bad, buffer, 1));
    CHECK("pread", pread(bad, buffer, 1, 0));
    CHECK("pwrite", pwrite(bad, buffer, 1, 0));
    CHECK("readv", readv(bad, &vector, 1));
    CHECK("writev", writev(bad, &vector, 1));
    CHECK("lseek", lseek(bad, 0, SEEK_SET));
    CHECK("fstat", fstat(bad, &st));
    CHECK("fstatfs", fstatfs(bad, &fs));
    CHECK("ftruncate", ftruncate(bad, 0));
    CHECK("fchmod", fchmod(bad, 0644));
    CHECK("fchown", fchown(bad, 0, 0));
    CHECK("fchdir", fchdir(bad));
    CHECK("fsync", fsync(bad));
    CHECK("fcntl", fcntl(bad, F_GETFL));
    CHECK("flock", flock(bad, LOCK_SH));
    CHECK("ioctl", ioctl(bad, FIONREAD, &st));
    CHECK("getdents", syscall(SYS_getdents64, bad, buffer, sizeof buffer));
    CHECK("dup", dup(bad));
    CHECK("close", close(bad));
    CHECK_MAP("mmap", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, bad, 0));
    CHECK("openat", openat(bad, "x", O_RDONLY));
    CHECK_TRUE("openat-absolute", openat(bad, "/dev/null", O_RDONLY) >= 0);
    CHECK("unlinkat", unlinkat(bad, "x", 0));
    CHECK("mkdirat", mkdirat(bad, "x", 0755));
    CHECK("faccessat", faccessat(bad, "x", F_OK, 0));
    CHECK("epoll-wait", epoll_wait(bad, &(struct epoll_event){ 0 }, 1, 0));
    CHECK("epoll-ctl", epoll_ctl(bad, EPOLL_CTL_ADD, 0, &(struct epoll_event){ 0 }));
    CHECK("sendfile", sendfile(bad, 0, NULL, 1));
    struct pollfd entry = { bad, POLLIN, 0 };
    CHECK("poll", poll(&entry, 1, 0));
    CHECK("poll-invalid", entry.revents == POLLNVAL);
    CHECK("fallocate", fallocate(bad, 0, 0, 10));
    CHECK("futimens", futimens(bad, NULL));
    return 0;
}
