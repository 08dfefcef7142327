// FALLOC_FL_ZERO_RANGE: zeros, the size as it was or grown, and room that is there. A file system that has no such thing says so and is not asked further.
#include "../check.h"

#ifndef FALLOC_FL_ZERO_RANGE
#define FALLOC_FL_ZERO_RANGE 0x10
#endif

static int fd, is_there;

// Whether a range is made zeros, the rest stays, and the file has then so many bytes.
static int zeroed(int flags, off_t start, off_t length, off_t size)
{
    char bytes[12288];
    memset(bytes, 'x', sizeof bytes);
    REQUIRE(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, sizeof bytes, 0) == sizeof bytes);
    if (fallocate(fd, FALLOC_FL_ZERO_RANGE | flags, start, length) != 0)
        return 0;
    struct stat st;
    REQUIRE(fstat(fd, &st) == 0);
    if (st.st_size != size || st.st_blocks * 512 < (off_t)sizeof bytes)
        return 0;
    for (off_t at = 0; at < size; at++) {
        char byte;
        REQUIRE(pread(fd, &byte, 1, at) == 1);
        int is_zero = (at >= start && at < start + length) || at >= (off_t)sizeof bytes;
        if (byte != (is_zero ? 0 : 'x'))
            return 0;
    }
    return 1;
}

int main(void)
{
    fd = open("file", O_RDWR | O_CREAT, 0600);
    REQUIRE(fd >= 0);
    is_there = fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096) == 0 || errno != EOPNOTSUPP;
    CHECK_TRUE("pages", !is_there || zeroed(0, 4096, 4096, 12288));
    CHECK_TRUE("parts-of-pages", !is_there || zeroed(0, 100, 8000, 12288));
    CHECK_TRUE("within-one", !is_there || zeroed(0, 5000, 10, 12288));
    CHECK_TRUE("grows", !is_there || zeroed(0, 12000, 4000, 16000));
    CHECK_TRUE("keeps-size", !is_there || zeroed(FALLOC_FL_KEEP_SIZE, 12000, 4000, 12288));
    CHECK_TRUE("wrong-with-punch", fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 10) == -1);
    CHECK("no-length", fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 0));
    int read_only = open("file", O_RDONLY);
    CHECK("read-only", fallocate(read_only, FALLOC_FL_ZERO_RANGE, 0, 10));
    return 0;
}
