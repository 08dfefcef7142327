// A file lives on after its last name is gone, until the last descriptor is closed.
#include "../check.h"

int main(void)
{
    struct stat st;
    char buffer[16] = { 0 };
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    REQUIRE(fd >= 0 && write(fd, "still here", 10) == 10);
    CHECK("unlink", unlink("f"));
    CHECK("gone", access("f", F_OK));
    REQUIRE(fstat(fd, &st) == 0);
    CHECK("links", st.st_nlink);
    CHECK("read", pread(fd, buffer, 10, 0));
    CHECK_STR("text", buffer);
    CHECK("grows", pwrite(fd, "!", 1, 10));
    check_write_file("f", "another");
    CHECK("old-size", fstat(fd, &st) == 0 ? st.st_size : -1);
    CHECK_STR("new-text", check_read_file("f"));
    CHECK("unlink-missing", unlink("missing"));
    REQUIRE(mkdir("d", 0755) == 0);
    CHECK("unlink-directory", unlink("d"));
    CHECK("unlinkat-directory", unlinkat(AT_FDCWD, "d", AT_REMOVEDIR));
    CHECK("unlinkat-bad-flags", unlinkat(AT_FDCWD, "f", 1));
    CHECK("unlinkat-removedir-on-file", unlinkat(AT_FDCWD, "f", AT_REMOVEDIR));
    CHECK("unlink-trailing-slash", unlink("f/"));
    char name[64], target[64] = { 0 };
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, target, sizeof target - 1);
    CHECK_TRUE("proc-says-deleted", length > 10 && strcmp(target + length - 10, " (deleted)") == 0);
    CHECK("reopen-deleted-through-proc", open(name, O_RDONLY) >= 0);
    return 0;
}
