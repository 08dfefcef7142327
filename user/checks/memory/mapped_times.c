// A file's times are those of what a mapping writes to it. (A tmpfs does not hear of that.)
#include "../check.h"
#include <sys/mman.h>
#include <sys/vfs.h>

int main(void)
{
    enum { TMPFS = 0x01021994, PAGES = 2, PAGE = 4096 };
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    REQUIRE(fd >= 0 && ftruncate(fd, PAGES * PAGE) == 0);
    struct statfs fs;
    REQUIRE(fstatfs(fd, &fs) == 0);
    int hears = fs.f_type != TMPFS;
    volatile char *mapped = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(mapped != MAP_FAILED);
    struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    struct stat before, after;
    REQUIRE(futimens(fd, old) == 0 && fstat(fd, &before) == 0);
    char byte = mapped[0];
    REQUIRE(fstat(fd, &after) == 0);
    CHECK_TRUE("reading changes nothing", byte == 0 && after.st_mtime == 1000);
    mapped[0] = 'x';
    REQUIRE(fstat(fd, &after) == 0);
    CHECK_TRUE("writing is a modification", !hears || after.st_mtime != 1000);
    CHECK_TRUE("and a change", !hears || after.st_ctime >= before.st_ctime);
    REQUIRE(msync((void *)mapped, PAGES * PAGE, MS_SYNC) == 0);
    REQUIRE(futimens(fd, old) == 0);
    mapped[0] = 'y';
    REQUIRE(fstat(fd, &after) == 0);
    CHECK_TRUE("so is the next after it was written back", !hears || after.st_mtime != 1000);
    REQUIRE(munmap((void *)mapped, PAGES * PAGE) == 0);
    REQUIRE(fstat(fd, &after) == 0);
    CHECK_TRUE("it stays", !hears || after.st_mtime != 1000);
    return 0;
}
