// POSIX access control lists: what they grant and refuse, what they have to do with the mode, and what new files have from their directory. acl(5).
#include "../acl.h"

int main(void)
{
    umask(022);
    REQUIRE(chmod(".", 0755) == 0);
    check_write_file("file", "x");
    REQUIRE(chown("file", 500, 600) == 0 && chmod("file", 0640) == 0 && mkdir("directory", 0755) == 0 && symlink("file", "link") == 0);
    show("before", "file");
    CHECK("get-none", getxattr("file", ACCESS, NULL, 0));

    // What a list grants.
    CHECK("set", SET("file", ACCESS, {OWNER, 6, NONE}, {USER, 7, 1000}, {USER, 0, 1001}, {OWNING_GROUP, 4, NONE}, {GROUP, 6, 700},
                     {GROUP, 1, 701}, {MASK, 6, NONE}, {OTHER, 1, NONE}));
    show("after", "file");
    show_rights("owner", "file", 500, 1, 0);
    show_rights("user", "file", 1000, 1, 0);
    show_rights("user-in-group", "file", 1000, 700, 0);
    show_rights("user-nothing", "file", 1001, 700, 0);
    show_rights("owning-group", "file", 1002, 600, 0);
    show_rights("group", "file", 1002, 700, 0);
    show_rights("supplementary", "file", 1002, 1, 700);
    show_rights("both-groups", "file", 1002, 600, 701);
    show_rights("masked-group", "file", 1002, 701, 0);
    show_rights("other", "file", 1002, 1, 0);
    show_rights("root", "file", 0, 0, 0);

    // Mode and list are one.
    CHECK("chmod", chmod("file", 0705));
    show("chmod", "file");
    show_rights("no-mask-user", "file", 1000, 1, 0);
    show_rights("no-mask-owning-group", "file", 1002, 600, 0);
    show_rights("no-mask-other", "file", 1002, 1, 0);
    CHECK("chmod-back", chmod("file", 0660));
    show("chmod-back", "file");
    CHECK("plain", SET("file", ACCESS, {OWNER, 7, NONE}, {OWNING_GROUP, 5, NONE}, {OTHER, 4, NONE}));
    show("plain", "file");
    CHECK("mask-only", SET("file", ACCESS, {OWNER, 7, NONE}, {OWNING_GROUP, 6, NONE}, {MASK, 4, NONE}, {OTHER, 4, NONE}));
    show("mask-only", "file");
    CHECK("removed", removexattr("file", ACCESS));
    show("removed", "file");
    CHECK("removed-again", removexattr("file", ACCESS));
    CHECK("with-mask", SET("file", ACCESS, {OWNER, 6, NONE}, {USER, 4, 1000}, {OWNING_GROUP, 0, NONE}, {MASK, 7, NONE}, {OTHER, 0, NONE}));
    CHECK("empty", setxattr("file", ACCESS, "", 0, 0));
    show("empty", "file");
    CHECK("head-only", setxattr("file", ACCESS, "\2\0\0\0", 4, 0));
    CHECK("create", setxattr("file", ACCESS, "\2\0\0\0", 4, XATTR_CREATE));
    REQUIRE(chown("file", 500, 600) == 0 && chmod("file", 02755) == 0);
    CHECK_CHILD("set-group-id", {
        REQUIRE(setgroups(0, NULL) == 0 && setgid(1) == 0 && setuid(500) == 0);
        CHECK("by-owner", SET("file", ACCESS, {OWNER, 7, NONE}, {USER, 7, 1000}, {OWNING_GROUP, 5, NONE}, {MASK, 7, NONE}, {OTHER, 5, NONE}));
        show("by-owner", "file");
        CHECK("default-by-other", SET("directory", DEFAULT, {OWNER, 7, NONE}, {OWNING_GROUP, 5, NONE}, {OTHER, 5, NONE}));
        CHECK("get-by-other", getxattr("file", ACCESS, NULL, 0));
        CHECK("remove-by-other", removexattr("directory", DEFAULT));
    });

    // Lists that are none.
    CHECK("version", setxattr("file", ACCESS, "\1\0\0\0\1\0\7\0", 8, 0));
    CHECK("short", setxattr("file", ACCESS, "\2\0", 2, 0));
    CHECK("odd-length", setxattr("file", ACCESS, "\2\0\0\0\1\0\7\0", 8, 0));
    CHECK("tag", SET("file", ACCESS, {3, 7, NONE}));
    CHECK("no-id", SET("file", ACCESS, {OWNER, 7, NONE}, {USER, 7, NONE}, {OWNING_GROUP, 7, NONE}, {MASK, 7, NONE}, {OTHER, 7, NONE}));
    CHECK("no-owner", SET("file", ACCESS, {OWNING_GROUP, 7, NONE}, {OTHER, 7, NONE}));
    CHECK("two-owners", SET("file", ACCESS, {OWNER, 7, NONE}, {OWNER, 7, NONE}, {OWNING_GROUP, 7, NONE}, {OTHER, 7, NONE}));
    CHECK("no-mask", SET("file", ACCESS, {OWNER, 7, NONE}, {USER, 7, 1}, {OWNING_GROUP, 7, NONE}, {OTHER, 7, NONE}));
    CHECK("order", SET("file", ACCESS, {OWNER, 7, NONE}, {OTHER, 7, NONE}, {OWNING_GROUP, 7, NONE}));
    CHECK("users-in-any-order", SET("file", ACCESS, {OWNER, 7, NONE}, {USER, 7, 9}, {USER, 3, 4}, {OWNING_GROUP, 7, NONE}, {MASK, 7, NONE}, {OTHER, 7, NONE}));
    show("users-in-any-order", "file");
    CHECK("permissions", SET("file", ACCESS, {OWNER, 8, NONE}, {OWNING_GROUP, 7, NONE}, {OTHER, 7, NONE}));
    CHECK("default-of-file", SET("file", DEFAULT, {OWNER, 7, NONE}, {OWNING_GROUP, 7, NONE}, {OTHER, 7, NONE}));
    CHECK("no-default-of-file", removexattr("file", DEFAULT));
    CHECK("get-default-of-file", getxattr("file", DEFAULT, NULL, 0));
    CHECK("get-too-small", getxattr("file", ACCESS, (char[9]){0}, 9));
    CHECK("of-link", lsetxattr("link", ACCESS, "\2\0\0\0", 4, 0));
    CHECK("get-of-link", lgetxattr("link", ACCESS, NULL, 0));
    CHECK("through-link", getxattr("link", ACCESS, NULL, 0));
    CHECK("on-proc", getxattr("/proc/self/status", ACCESS, NULL, 0));
    CHECK("set-on-proc", setxattr("/proc/self/status", ACCESS, "\2\0\0\0", 4, 0));

    // What is made in a directory.
    show("directory", "directory");
    CHECK("set-default", SET("directory", DEFAULT, {OWNER, 7, NONE}, {USER, 6, 1000}, {OWNING_GROUP, 5, NONE}, {MASK, 7, NONE}, {OTHER, 4, NONE}));
    show("directory-with", "directory");
    umask(077);
    REQUIRE(mkdir("directory/inner", 0755) == 0 && mkdir("directory/inner/most", 01777) == 0);
    show("inner", "directory/inner");
    show("innermost", "directory/inner/most");
    int fd = open("directory/new", O_CREAT | O_EXCL | O_RDWR, 0666);
    REQUIRE(fd >= 0);
    show("new", "directory/new");
    show_rights("new-user", "directory/new", 1000, 1, 0);
    show_rights("new-other", "directory/new", 1002, 1, 0);
    fd = open("directory/private", O_CREAT | O_EXCL | O_RDWR, 0600);
    show("private", "directory/private");
    show_rights("private-user", "directory/private", 1000, 1, 0);
    REQUIRE(mkfifo("directory/fifo", 0622) == 0 && symlink("x", "directory/link") == 0);
    show("fifo", "directory/fifo");
    CHECK("link-has-none", lgetxattr("directory/link", ACCESS, NULL, 0));
    fd = open("directory", O_TMPFILE | O_RDWR, 0660);
    REQUIRE(fd >= 0);
    CHECK("nameless", fgetxattr(fd, ACCESS, NULL, 0));
    REQUIRE(linkat(AT_FDCWD, "directory/new", AT_FDCWD, "linked", 0) == 0);
    show("linked", "linked");
    // One that says no more than a mode: the umask is not looked at.
    CHECK("plain-default", SET("directory", DEFAULT, {OWNER, 7, NONE}, {OWNING_GROUP, 6, NONE}, {OTHER, 4, NONE}));
    REQUIRE(open("directory/plain", O_CREAT | O_RDWR, 0777) >= 0);
    show("plain-new", "directory/plain");
    CHECK("default-away", removexattr("directory", DEFAULT));
    REQUIRE(open("directory/masked", O_CREAT | O_RDWR, 0777) >= 0);
    show("masked", "directory/masked");
    show("inner-still", "directory/inner");

    // A directory that only a list opens.
    REQUIRE(mkdir("closed", 0700) == 0);
    check_write_file("closed/file", "x");
    REQUIRE(chmod("closed/file", 0644) == 0);
    show_rights("closed", "closed/file", 1000, 1, 0);
    CHECK("opened", SET("closed", ACCESS, {OWNER, 7, NONE}, {USER, 1, 1000}, {OWNING_GROUP, 0, NONE}, {MASK, 7, NONE}, {OTHER, 0, NONE}));
    show_rights("opened-user", "closed/file", 1000, 1, 0);
    show_rights("opened-other", "closed/file", 1001, 1, 0);

    // Read anew, where the file system is on a disk.
    sync();
    check_write_file("/proc/sys/vm/drop_caches", "2");
    show("read-anew", "closed");
    show_rights("read-anew-user", "closed/file", 1000, 1, 0);
    show_rights("read-anew-other", "closed/file", 1001, 1, 0);
    show("inner-anew", "directory/inner");

    char names[500];
    ssize_t length = listxattr("closed", names, sizeof names);
    int is_listed = 0;
    for (char *at = names; at < names + length; at += strlen(at) + 1)
        is_listed |= strcmp(at, ACCESS) == 0;
    CHECK_TRUE("listed", is_listed);
    return 0;
}
