// access, faccessat and faccessat2: real or effective identity.
#include "../check.h"

int main(void)
{
    REQUIRE(chmod(".", 0755) == 0);
    check_write_file("f", "x");
    REQUIRE(chmod("f", 0640) == 0 && chown("f", 1000, 1000) == 0);
    CHECK("exists", access("f", F_OK));
    CHECK("missing", access("missing", F_OK));
    CHECK("root-reads", access("f", R_OK | W_OK));
    CHECK("root-executes", access("f", X_OK));
    CHECK("bad-mode", access("f", 8));
    REQUIRE(chmod("f", 0610) == 0);
    CHECK("root-executes-with-a-bit", access("f", X_OK));
    CHECK_CHILD("real-user-counts", REQUIRE(seteuid(1001) == 0); CHECK("by-real", access("f", R_OK));
                CHECK("by-effective", faccessat(AT_FDCWD, "f", R_OK, AT_EACCESS)));
    CHECK_CHILD("stranger", REQUIRE(setgid(5) == 0 && setuid(1001) == 0); CHECK("read", access("f", R_OK)); CHECK("exists", access("f", F_OK)));
    REQUIRE(symlink("missing", "dangling") == 0);
    CHECK("dangling", faccessat(AT_FDCWD, "dangling", F_OK, 0));
    CHECK("dangling-itself", syscall(439, AT_FDCWD, "dangling", F_OK, AT_SYMLINK_NOFOLLOW));
    CHECK("unknown-flag", syscall(439, AT_FDCWD, "f", F_OK, 0x4000));
    int fd = open("f", O_RDONLY);
    CHECK("empty-path", syscall(439, fd, "", R_OK, AT_EMPTY_PATH));
    CHECK("proc-write-only-root", access("/proc/self/stat", R_OK));
    return 0;
}
