// Hard links: one inode, several names.
#include "../check.h"

int main(void)
{
    struct stat a, b;
    check_write_file("a", "shared");
    CHECK("link", link("a", "b"));
    REQUIRE(stat("a", &a) == 0 && stat("b", &b) == 0);
    CHECK_TRUE("same-inode", a.st_ino == b.st_ino);
    CHECK("count", a.st_nlink);
    check_write_file("b", "changed");
    CHECK_STR("seen-through-other", check_read_file("a"));
    CHECK("exists", link("a", "b"));
    CHECK("missing", link("missing", "c"));
    CHECK("onto-directory-path", link("a", "no/such"));
    REQUIRE(mkdir("d", 0755) == 0);
    CHECK("directory", link("d", "e"));
    CHECK("unlink", unlink("a"));
    CHECK("count-after", stat("b", &b) == 0 ? (long)b.st_nlink : -1);
    REQUIRE(symlink("b", "s") == 0);
    CHECK("link-of-symlink", link("s", "t"));
    CHECK("is-symlink", lstat("t", &b) == 0 ? S_ISLNK(b.st_mode) : -1);
    CHECK("follow", linkat(AT_FDCWD, "s", AT_FDCWD, "u", AT_SYMLINK_FOLLOW));
    CHECK("followed-is-file", lstat("u", &b) == 0 ? S_ISREG(b.st_mode) : -1);
    CHECK("bad-flags", linkat(AT_FDCWD, "b", AT_FDCWD, "v", 0x10));
    CHECK("to-other-device", link("/proc/self/status", "w"));
    REQUIRE(mkfifo("fifo", 0600) == 0);
    CHECK("fifo", link("fifo", "fifo2"));
    CHECK("fifo-count", stat("fifo", &b) == 0 ? (long)b.st_nlink : -1);
    REQUIRE(chmod("u", 0604) == 0 && stat("b", &b) == 0);
    CHECK("mode-shared", b.st_mode & 07777);
    int fd = open("b", O_RDONLY);
    CHECK("empty-path", linkat(fd, "", AT_FDCWD, "z", AT_EMPTY_PATH));
    CHECK("three-names", fstat(fd, &b) == 0 ? (long)b.st_nlink : -1);
    return 0;
}
