// Sparse files: SEEK_DATA, SEEK_HOLE and fallocate.
#include "../check.h"

int main(void)
{
    const long mib = 1 << 20;
    struct stat st;
    char buffer[16];
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    REQUIRE(fd >= 0);
    REQUIRE(ftruncate(fd, 4 * mib) == 0);
    memset(buffer, 'd', sizeof buffer);
    char page[4096];
    memset(page, 'd', sizeof page);
    REQUIRE(pwrite(fd, page, sizeof page, 2 * mib) == sizeof page);
    CHECK("data", lseek(fd, 0, SEEK_DATA));
    CHECK("hole-at-start", lseek(fd, 0, SEEK_HOLE));
    CHECK("hole-after-data", lseek(fd, 2 * mib, SEEK_HOLE));
    CHECK("no-more-data", lseek(fd, 3 * mib, SEEK_DATA));
    CHECK("data-past-end", lseek(fd, 5 * mib, SEEK_DATA));
    CHECK("hole-past-end", lseek(fd, 4 * mib, SEEK_HOLE));
    CHECK("allocate", fallocate(fd, 0, 0, 8192));
    REQUIRE(fstat(fd, &st) == 0);
    CHECK("allocate-keeps-larger-size", st.st_size);
    int small = open("small", O_RDWR | O_CREAT, 0644);
    CHECK("allocate-grows", fallocate(small, 0, 0, 5000));
    REQUIRE(fstat(small, &st) == 0);
    CHECK("grown", st.st_size);
    CHECK("keep-size", fallocate(small, FALLOC_FL_KEEP_SIZE, 0, 20000));
    REQUIRE(fstat(small, &st) == 0);
    CHECK("kept", st.st_size);
    REQUIRE(pwrite(small, page, sizeof page, 0) == sizeof page);
    CHECK("punch", fallocate(small, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
    REQUIRE(pread(small, buffer, 4, 100) == 4);
    CHECK_TRUE("punched-zero", memcmp(buffer, "\0\0\0\0", 4) == 0);
    CHECK("zero-length", fallocate(small, 0, 0, 0));
    CHECK("negative", fallocate(small, 0, -1, 10));
    int read_only = open("small", O_RDONLY);
    CHECK("read-only", fallocate(read_only, 0, 0, 10));
    int pipe_fds[2];
    REQUIRE(pipe(pipe_fds) == 0);
    CHECK("pipe", fallocate(pipe_fds[1], 0, 0, 10));
    return 0;
}
