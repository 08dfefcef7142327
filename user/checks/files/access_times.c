// When reading moves the time of the last access: O_NOATIME, and relatime's rules.
#include "../check.h"
#include <dirent.h>
#include <sys/mman.h>

static void make_old(const char *path)
{
    struct timespec times[2] = { { 1000, 0 }, { 2000, 0 } };
    REQUIRE(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) == 0);
}

static int is_old(const char *path)
{
    struct stat status;
    REQUIRE(lstat(path, &status) == 0);
    return status.st_atime == 1000;
}

int main(void)
{
    char bytes[64];
    check_write_file("f", "0123456789");
    REQUIRE(mkdir("d", 0755) == 0 && symlink("f", "link") == 0);

    make_old("f");
    int plain = open("f", O_RDONLY), quiet = open("f", O_RDONLY | O_NOATIME);
    REQUIRE(plain >= 0 && quiet >= 0);
    CHECK("quiet-flag", (fcntl(quiet, F_GETFL) & O_NOATIME) != 0);
    CHECK("read-quietly", read(quiet, bytes, 5));
    CHECK_TRUE("not-moved", is_old("f"));
    CHECK("read", read(plain, bytes, 5));
    CHECK_TRUE("moved", !is_old("f"));
    make_old("f");
    CHECK("at-the-end", (lseek(plain, 0, SEEK_END), read(plain, bytes, 5)));
    CHECK_TRUE("moved-at-the-end", !is_old("f"));
    make_old("f");
    CHECK("set-flag", fcntl(plain, F_SETFL, O_NOATIME));
    CHECK("read-with-flag", pread(plain, bytes, 5, 0));
    CHECK_TRUE("not-moved-with-flag", is_old("f"));
    CHECK("clear-flag", fcntl(plain, F_SETFL, 0));
    CHECK("read-nothing", pread(plain, bytes, 0, 0));
    CHECK_TRUE("not-moved-by-nothing", is_old("f"));

    make_old("d");
    int directory = open("d", O_RDONLY | O_DIRECTORY | O_NOATIME);
    REQUIRE(directory >= 0);
    CHECK_TRUE("list-quietly", syscall(SYS_getdents64, directory, bytes, sizeof bytes) > 0);
    CHECK_TRUE("directory-not-moved", is_old("d"));
    make_old("link");
    CHECK("readlink", readlink("link", bytes, sizeof bytes));
    CHECK_TRUE("link-moved", !is_old("link"));

    // Drivers of memory devices keep no such time.
    for (int i = 0; i < 2; i++) {
        const char *path = i == 0 ? "/dev/zero" : "/dev/full";
        struct stat before, after;
        int fd = open(path, O_RDONLY);
        REQUIRE(fd >= 0 && fstat(fd, &before) == 0);
        CHECK("read-device", read(fd, bytes, 5));
        REQUIRE(fstat(fd, &after) == 0);
        CHECK_TRUE("device-not-moved", memcmp(&before.st_atim, &after.st_atim, sizeof before.st_atim) == 0);
    }
    return 0;
}
