// What is appended to a file is all there, whatever is done with the file before it is written to the disk.
#include "../check.h"
#include <sys/mman.h>
#include <sys/statvfs.h>

#define PAGE 4096

static char block[64 * PAGE];

static int begin(const char *name, int pages)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    REQUIRE(fd >= 0);
    for (int i = 0; i < pages; i++)
        REQUIRE(write(fd, block + i * PAGE % sizeof block, PAGE) == PAGE);
    return fd;
}

// Whether the first bytes are what was written.
static int is_there(int fd, size_t len)
{
    static char found[sizeof block];
    return pread(fd, found, len, 0) == (ssize_t)len && memcmp(found, block, len) == 0;
}

static long blocks_of(int fd)
{
    struct stat status;
    REQUIRE(fstat(fd, &status) == 0);
    return status.st_blocks;
}

static long size_of(int fd)
{
    struct stat status;
    REQUIRE(fstat(fd, &status) == 0);
    return status.st_size;
}

int main(void)
{
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)(i * 7 + i / PAGE);
    int fd = begin("plain", 10);
    CHECK("size", size_of(fd));
    CHECK_TRUE("takes-room", blocks_of(fd) >= 10 * 8);
    CHECK_TRUE("there", is_there(fd, 10 * PAGE));
    CHECK("data", lseek(fd, 5000, SEEK_DATA));
    CHECK("hole", lseek(fd, 0, SEEK_HOLE));
    CHECK("sync", fsync(fd));
    CHECK_TRUE("there-after-sync", is_there(fd, 10 * PAGE));
    CHECK("more", pwrite(fd, block + 10 * PAGE, 3 * PAGE + 100, 10 * PAGE));
    CHECK("more", pwrite(fd, block + 13 * PAGE + 100, PAGE, 13 * PAGE + 100));
    CHECK("size", size_of(fd));
    CHECK_TRUE("there-with-more", is_there(fd, 14 * PAGE + 100));
    CHECK("over", pwrite(fd, block + 9 * PAGE, 3 * PAGE, 9 * PAGE));
    CHECK("sync", fdatasync(fd));
    CHECK_TRUE("there-after-all", is_there(fd, 14 * PAGE + 100));

    fd = begin("cut", 10);
    CHECK("cut", ftruncate(fd, 5 * PAGE + 10));
    CHECK("longer", ftruncate(fd, 8 * PAGE));
    CHECK_TRUE("there-before-cut", is_there(fd, 5 * PAGE + 10));
    char byte = 1;
    CHECK("behind-cut", pread(fd, &byte, 1, 5 * PAGE + 10));
    CHECK("is-zero", byte);
    CHECK("empty", ftruncate(fd, 0));
    CHECK("no-room", blocks_of(fd));

    fd = begin("punched", 10);
    CHECK("punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * PAGE, 4 * PAGE));
    CHECK_TRUE("there-before-hole", is_there(fd, 2 * PAGE));
    CHECK("hole-begins", lseek(fd, 0, SEEK_HOLE));
    CHECK("hole-ends", lseek(fd, 2 * PAGE, SEEK_DATA));
    CHECK("size", size_of(fd));

    fd = begin("ahead", 4);
    CHECK("ahead", posix_fallocate(fd, 0, 12 * PAGE));
    CHECK_TRUE("there-before-ahead", is_there(fd, 4 * PAGE));
    CHECK("size", size_of(fd));

    fd = begin("sparse", 0);
    CHECK("sparse", ftruncate(fd, 100 * PAGE));
    CHECK("at-end", pwrite(fd, block, PAGE, 100 * PAGE));
    CHECK("in-hole", pwrite(fd, block, PAGE, 50 * PAGE));
    CHECK("far", pwrite(fd, block, 10, 200 * PAGE + 5));
    CHECK("first-data", lseek(fd, 0, SEEK_DATA));
    CHECK("second-data", lseek(fd, 51 * PAGE, SEEK_DATA));
    CHECK("size", size_of(fd));

    fd = begin("mapped", 4);
    char *map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(map != MAP_FAILED);
    CHECK_TRUE("mapping-shows", memcmp(map, block, 4 * PAGE) == 0);
    map[3 * PAGE] = block[3 * PAGE];
    CHECK("append-to-mapped", pwrite(fd, block + 4 * PAGE, PAGE, 4 * PAGE));
    CHECK("msync", msync(map, 4 * PAGE, MS_SYNC));
    CHECK_TRUE("there-mapped", is_there(fd, 5 * PAGE));

    fd = begin("replaced", 2);
    close(fd);
    fd = begin("replacing", 3);
    CHECK("replace", rename("replacing", "replaced"));
    CHECK_TRUE("there-replacing", is_there(fd, 3 * PAGE));
    close(fd);
    fd = open("replaced", O_RDONLY);
    CHECK_TRUE("there-replaced", is_there(fd, 3 * PAGE));

    fd = begin("nameless", 5);
    CHECK("unlink", unlink("nameless"));
    CHECK("append-nameless", pwrite(fd, block + 5 * PAGE, PAGE, 5 * PAGE));
    CHECK_TRUE("there-nameless", is_there(fd, 6 * PAGE));
    CHECK("sync-nameless", fsync(fd));
    CHECK_TRUE("there-nameless-after", is_there(fd, 6 * PAGE));
    close(fd);

    fd = begin("odd", 0);
    int at = 0;
    for (int len = 1; at + len < (int)sizeof block; len = len * 3 % 5003 + 1) {
        REQUIRE(write(fd, block + at, len) == len);
        at += len;
        if (len % 5 == 0)
            REQUIRE(fdatasync(fd) == 0);
        if (at > 40 * PAGE)
            break;
    }
    CHECK("size", size_of(fd));
    CHECK_TRUE("there-odd", is_there(fd, at));
    CHECK("attribute", fchmod(fd, 0600));
    CHECK("size", size_of(fd));
    CHECK("link", link("odd", "even"));
    CHECK("size", size_of(fd));
    int second = open("even", O_WRONLY | O_APPEND);
    CHECK("append", write(second, block + at, 100));
    CHECK("size", size_of(fd));
    CHECK_TRUE("there-even", is_there(fd, at + 100));
    // A page that is not there ends what is written.
    fd = begin("short", 1);
    char *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(two != MAP_FAILED && mprotect(two + PAGE, PAGE, PROT_NONE) == 0);
    CHECK("faults", write(fd, two + PAGE, PAGE));
    CHECK("size", size_of(fd));
    CHECK("short", write(fd, two, 2 * PAGE));
    CHECK("size", size_of(fd));
    return 0;
}
