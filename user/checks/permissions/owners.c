// chmod and chown: who may, and which bits are taken away.
#include "../check.h"

static long mode(const char *path)
{
    struct stat st;
    REQUIRE(lstat(path, &st) == 0);
    return st.st_mode & 07777;
}

static long owner(const char *path)
{
    struct stat st;
    REQUIRE(lstat(path, &st) == 0);
    return (long)st.st_uid * 10000 + st.st_gid;
}

int main(void)
{
    check_write_file("f", "x");
    CHECK("chmod", chmod("f", 07654));
    CHECK("mode", mode("f"));
    CHECK("chmod-ignores-type-bits", chmod("f", S_IFDIR | 0644) == 0 ? mode("f") : -1);
    CHECK("chmod-missing", chmod("missing", 0644));
    int fd = open("f", O_RDONLY);
    CHECK("fchmod", fchmod(fd, 0600) == 0 ? mode("f") : -1);
    CHECK("chown", chown("f", 11, 22));
    CHECK("owner", owner("f"));
    CHECK("chown-user-only", chown("f", 33, -1) == 0 ? owner("f") : -1);
    CHECK("chown-group-only", chown("f", -1, 44) == 0 ? owner("f") : -1);
    CHECK("fchown", fchown(fd, 0, 0) == 0 ? owner("f") : -1);
    // A change of owner takes the set-id bits of an executable.
    REQUIRE(chmod("f", 06755) == 0 && chown("f", 5, 5) == 0);
    CHECK("chown-clears-set-ids", mode("f"));
    REQUIRE(chmod("f", 02644) == 0 && chown("f", 6, 6) == 0);
    CHECK("set-group-without-execute-stays", mode("f"));
    // So does writing by someone without privilege.
    REQUIRE(chown("f", 1000, 1000) == 0 && chmod("f", 06777) == 0 && chmod(".", 0755) == 0);
    CHECK_CHILD("writer", REQUIRE(setgid(1001) == 0 && setuid(1001) == 0); int out = open("f", O_WRONLY);
                REQUIRE(write(out, "y", 1) == 1));
    CHECK("write-clears-set-ids", mode("f"));
    // The owner may give a file to a group of its own, not to another, and not away.
    check_write_file("g", "x");
    REQUIRE(chown("g", 1000, 1000) == 0);
    CHECK_CHILD("owner-changes", gid_t extra = 77; REQUIRE(syscall(SYS_setgroups, 1, &extra) == 0);
                REQUIRE(setgid(1000) == 0 && setuid(1000) == 0); CHECK("own-group", chown("g", -1, 77));
                CHECK("foreign-group", chown("g", -1, 78)); CHECK("give-away", chown("g", 1001, -1));
                CHECK("same-owner", chown("g", 1000, -1));
                CHECK("set-group-of-foreign-group", chmod("g", 02755)));
    CHECK("after", owner("g"));
    // Without membership of the file's group, chmod drops the set-group bit.
    check_write_file("h", "x");
    REQUIRE(chown("h", 1000, 500) == 0);
    CHECK_CHILD("not-a-member", REQUIRE(syscall(SYS_setgroups, 0, NULL) == 0);
                REQUIRE(setgid(1000) == 0 && setuid(1000) == 0); REQUIRE(chmod("h", 02755) == 0));
    CHECK("set-group-dropped", mode("h"));
    // The mask takes bits at creation only.
    CHECK("umask-old", umask(077));
    check_write_file("masked", "");
    CHECK("masked", mode("masked"));
    REQUIRE(mkdir("masked-directory", 0777) == 0);
    CHECK("masked-directory", mode("masked-directory"));
    CHECK("chmod-unmasked", chmod("masked", 0666) == 0 ? mode("masked") : -1);
    CHECK("umask-limited", (umask(07777), umask(0)));
    return 0;
}
