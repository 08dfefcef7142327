// Files with many pages and holes: every page is where it was written, whatever is cut out around it.
#include "../check.h"
#include <sys/mman.h>

#define PAGE 4096L
#define PAGES 1000

static unsigned char expected[PAGES];
static int fd;

static void put(int page, int value)
{
    unsigned char byte = value;
    REQUIRE(pwrite(fd, &byte, 1, page * PAGE + 7) == 1);
    expected[page] = value;
}

static void compare(const char *name)
{
    struct stat status;
    REQUIRE(fstat(fd, &status) == 0);
    int wrong = 0;
    for (int page = 0; page < PAGES; page++) {
        unsigned char byte = 0;
        ssize_t got = pread(fd, &byte, 1, page * PAGE + 7);
        int inside = page * PAGE + 7 < status.st_size;
        wrong += got != inside || byte != (inside ? expected[page] : 0);
    }
    check_line("%s: %d wrong, %ld bytes, %ld blocks\n", name, wrong, (long)status.st_size, (long)status.st_blocks);
}

static void ends(const char *name, int page)
{
    long data = lseek(fd, page * PAGE, SEEK_DATA), hole = lseek(fd, page * PAGE, SEEK_HOLE);
    check_line("%s: data %ld hole %ld\n", name, data < 0 ? data : data / PAGE, hole < 0 ? hole : hole / PAGE);
}

static void cut(const char *name, int first, int count)
{
    CHECK(name, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, first * PAGE, count * PAGE));
    memset(expected + first, 0, count);
    compare(name);
    ends(name, first);
}

int main(void)
{
    fd = memfd_create("pieces", 0);
    REQUIRE(fd >= 0 && ftruncate(fd, PAGES * PAGE) == 0);
    ends("empty", 0);
    unsigned random = 1;
    for (int i = 0; i < 3 * PAGES; i++) {
        random = random * 1664525 + 1013904223;
        put((random >> 10) % PAGES, i % 250 + 1);
    }
    compare("scattered");
    for (int page = 0; page < PAGES; page++)
        put(page, page % 255 + 1);
    compare("full");
    ends("full", 0);
    cut("within", 5, 3);
    cut("at-an-edge", 128, 1);
    cut("before-an-edge", 127, 1);
    cut("from-an-edge", 256, 10);
    cut("over-an-edge", 380, 10);
    cut("a-whole-piece", 512, 128);
    cut("over-several", 650, 300);
    CHECK("odd-bytes", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 20 * PAGE + 100, 2 * PAGE));
    expected[21] = 0;
    expected[22] = 0;
    compare("odd-bytes");
    CHECK("shorter", ftruncate(fd, 300 * PAGE + 50));
    compare("shorter");
    CHECK("longer", ftruncate(fd, PAGES * PAGE));
    memset(expected + 301, 0, PAGES - 301);
    compare("longer");
    ends("longer", 290);
    put(999, 9);
    put(640, 8);
    compare("far-then-near");
    ends("last", 641);
    CHECK("reserve", fallocate(fd, 0, 250 * PAGE + 5, 200 * PAGE));
    compare("reserve");
    CHECK("reserve-keeps-size", fallocate(fd, FALLOC_FL_KEEP_SIZE, 990 * PAGE, 300 * PAGE));
    compare("reserve-keeps-size");
    CHECK("to-nothing", ftruncate(fd, 0));
    memset(expected, 0, sizeof expected);
    compare("to-nothing");
    long far = 1L << 40;
    CHECK("very-far", pwrite(fd, "x", 1, far));
    CHECK("very-far-data", lseek(fd, 0, SEEK_DATA) == far);
    CHECK("very-far-hole", lseek(fd, far, SEEK_HOLE) == far + 1);
    CHECK("cut-far", ftruncate(fd, far));
    CHECK("no-data", lseek(fd, 0, SEEK_DATA));
    compare("cut-far");
    return 0;
}
