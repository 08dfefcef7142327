// read, write, pread, pwrite, lseek: positions, ends and gaps of a regular file.
#include "../check.h"

int main(void)
{
    char buffer[64];
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    REQUIRE(fd >= 0);
    CHECK("write", write(fd, "0123456789", 10));
    CHECK("read-at-end", read(fd, buffer, sizeof buffer));
    CHECK("seek-start", lseek(fd, 3, SEEK_SET));
    CHECK("read-part", read(fd, buffer, 4));
    CHECK_TRUE("content", memcmp(buffer, "3456", 4) == 0);
    CHECK("seek-relative", lseek(fd, -2, SEEK_CUR));
    CHECK("seek-end", lseek(fd, -1, SEEK_END));
    CHECK("short-read", read(fd, buffer, sizeof buffer));
    CHECK("seek-negative", lseek(fd, -1, SEEK_SET));
    CHECK("seek-bad-whence", lseek(fd, 0, 99));
    CHECK("pread", pread(fd, buffer, 4, 2));
    CHECK_TRUE("pread-content", memcmp(buffer, "2345", 4) == 0);
    CHECK("pread-past-end", pread(fd, buffer, 4, 100));
    CHECK("pread-negative-offset", pread(fd, buffer, 4, -1));
    CHECK("pread-keeps-position", lseek(fd, 0, SEEK_CUR));
    CHECK("pwrite", pwrite(fd, "AB", 2, 4));
    CHECK("pwrite-negative-offset", pwrite(fd, "AB", 2, -4));
    CHECK("pwrite-keeps-position", lseek(fd, 0, SEEK_CUR));
    CHECK("seek-past-end", lseek(fd, 20, SEEK_SET));
    CHECK("write-after-gap", write(fd, "end", 3));
    CHECK("size", lseek(fd, 0, SEEK_END));
    memset(buffer, 'x', sizeof buffer);
    CHECK("read-gap", pread(fd, buffer, sizeof buffer, 8));
    CHECK_TRUE("gap-is-zero", memcmp(buffer, "89\0\0\0\0\0\0\0\0\0\0end", 15) == 0);
    CHECK("read-zero-bytes", read(fd, buffer, 0));
    CHECK("write-zero-bytes", write(fd, buffer, 0));
    CHECK("read-bad-pointer", pread(fd, BAD_POINTER, 4, 0));
    CHECK("write-bad-pointer", pwrite(fd, BAD_POINTER, 4, 0));
    CHECK("read-huge-length", pread(fd, buffer, (size_t)-1 / 2 + 1, 0));
    CHECK("content-unchanged", lseek(fd, 0, SEEK_END));
    CHECK("fsync", fsync(fd));
    CHECK("fdatasync", fdatasync(fd));
    CHECK_STR("reopened", check_read_file("f"));
    return 0;
}
