// A file grows within a page that a mapping writes to: what the mapping writes behind the old end is kept, whichever call made the
// file longer. On a file system whose blocks are smaller than a page that page has too few blocks at first.
#include "../check.h"
#include <sys/mman.h>

#define PAGE 4096

static void by_truncate(int fd) { REQUIRE(ftruncate(fd, 2 * PAGE) == 0); }
static void by_truncate_within(int fd) { REQUIRE(ftruncate(fd, 3000) == 0); }
static void by_write(int fd) { REQUIRE(pwrite(fd, "w", 1, PAGE - 1) == 1); }
static void by_write_behind(int fd) { REQUIRE(pwrite(fd, "w", 1, 3 * PAGE) == 1); }
static void by_fallocate(int fd) { REQUIRE(posix_fallocate(fd, 0, 2 * PAGE) == 0); }
static void by_shrinking_first(int fd) { REQUIRE(ftruncate(fd, 500) == 0 && ftruncate(fd, PAGE) == 0); }

static void grows(const char *name, void (*grow)(int))
{
    char text[64], was[PAGE], now[PAGE] = { 0 };
    int fd = open(name, O_RDWR | O_CREAT, 0644);
    memset(was, 'a', sizeof was);
    REQUIRE(fd >= 0 && write(fd, was, 1024) == 1024);
    char *map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(map != MAP_FAILED);
    map[0] = 'b';
    grow(fd);
    struct stat status;
    REQUIRE(fstat(fd, &status) == 0);
    int end = status.st_size < PAGE ? status.st_size : PAGE;
    for (int at = 1024; at < end - 1; at += 300)
        map[at] = 'c';
    memcpy(was, map, PAGE);
    REQUIRE(msync(map, PAGE, MS_SYNC) == 0 && munmap(map, 4 * PAGE) == 0 && fsync(fd) == 0);
    // What is in memory only is forgotten.
    REQUIRE(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    snprintf(text, sizeof text, "%s-size", name);
    CHECK(text, status.st_size);
    snprintf(text, sizeof text, "%s-read", name);
    CHECK(text, pread(fd, now, PAGE, 0));
    snprintf(text, sizeof text, "%s-same", name);
    CHECK_TRUE(text, memcmp(was, now, end) == 0);
    close(fd);
}

int main(void)
{
    grows("truncate", by_truncate);
    grows("truncate-within", by_truncate_within);
    grows("write", by_write);
    grows("write-behind", by_write_behind);
    grows("fallocate", by_fallocate);
    grows("shrinking-first", by_shrinking_first);
    return 0;
}
