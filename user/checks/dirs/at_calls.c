// The *at calls: paths relative to a directory descriptor.
#include "../check.h"

int main(void)
{
    struct stat st;
    char target[32] = { 0 };
    REQUIRE(mkdir("d", 0755) == 0);
    int d = open("d", O_RDONLY | O_DIRECTORY);
    REQUIRE(d >= 0);
    int fd = openat(d, "f", O_CREAT | O_RDWR, 0640);
    CHECK_TRUE("openat-create", fd >= 0 && access("d/f", F_OK) == 0);
    CHECK("mkdirat", mkdirat(d, "sub", 0700));
    CHECK("symlinkat", symlinkat("f", d, "link"));
    CHECK("readlinkat", readlinkat(d, "link", target, sizeof target));
    CHECK("linkat", linkat(d, "f", AT_FDCWD, "hard", 0));
    CHECK("fstatat", fstatat(d, "f", &st, 0));
    CHECK("links", st.st_nlink);
    CHECK("fstatat-nofollow", fstatat(d, "link", &st, AT_SYMLINK_NOFOLLOW) == 0 ? S_ISLNK(st.st_mode) : -1);
    CHECK("fstatat-bad-flag", syscall(SYS_newfstatat, d, "f", &st, 0x40000000));
    CHECK("renameat", renameat(d, "f", d, "g"));
    CHECK("renamed", faccessat(d, "g", F_OK, 0));
    CHECK("fchmodat", fchmodat(d, "g", 0604, 0));
    CHECK("fchownat", fchownat(d, "g", 12, 34, 0));
    CHECK("fchownat-link", fchownat(d, "link", 56, 78, AT_SYMLINK_NOFOLLOW));
    REQUIRE(stat("d/g", &st) == 0);
    CHECK("mode", st.st_mode & 07777);
    CHECK("owner", st.st_uid * 100 + st.st_gid);
    REQUIRE(lstat("d/link", &st) == 0);
    CHECK("link-owner", st.st_uid * 100 + st.st_gid);
    CHECK("mknodat-fifo", mknodat(d, "fifo", S_IFIFO | 0600, 0));
    CHECK("mknodat-regular", mknodat(d, "plain", S_IFREG | 0600, 0));
    CHECK("mknodat-directory", mknodat(d, "dir", S_IFDIR | 0600, 0));
    CHECK("mknodat-exists", mknodat(d, "plain", S_IFREG | 0600, 0));
    CHECK("relative-to-file", openat(fd, "x", O_RDONLY));
    CHECK("absolute-ignores-descriptor", faccessat(fd, "/dev/null", F_OK, 0));
    CHECK("unlinkat", unlinkat(d, "g", 0));
    CHECK("unlinkat-directory-without-flag", unlinkat(d, "sub", 0));
    CHECK("unlinkat-directory", unlinkat(d, "sub", AT_REMOVEDIR));
    // A renamed directory stays the same place for its descriptor.
    REQUIRE(rename("d", "moved") == 0);
    CHECK("after-rename", mkdirat(d, "new", 0755));
    CHECK("seen-at-new-name", access("moved/new", F_OK));
    // And a removed one is a dead end.
    REQUIRE(mkdir("dead", 0755) == 0);
    int dead = open("dead", O_RDONLY);
    REQUIRE(rmdir("dead") == 0);
    CHECK("create-in-removed", openat(dead, "x", O_CREAT | O_RDWR, 0600));
    CHECK("mkdir-in-removed", mkdirat(dead, "x", 0700));
    return 0;
}
