// Extended attributes, by path, by link and by descriptor. The names are those that every file system takes: `trusted.` and `security.`.
#include "../check.h"
#include <sys/xattr.h>

static char value[64];

// The names of a list, as far as they are ours, in no order.
static int has(const char *list, ssize_t length, const char *name)
{
    for (const char *at = list; at < list + length; at += strlen(at) + 1)
        if (strcmp(at, name) == 0)
            return 1;
    return 0;
}

int main(void)
{
    char list[512];
    check_write_file("file", "");
    REQUIRE(symlink("file", "link") == 0 && mkdir("directory", 0755) == 0);
    int fd = open("file", O_RDWR);
    CHECK("get-missing", getxattr("file", "trusted.a", value, sizeof value));
    CHECK("set", setxattr("file", "trusted.a", "first", 5, 0));
    CHECK("create-again", setxattr("file", "trusted.a", "x", 1, XATTR_CREATE));
    CHECK("replace", setxattr("file", "trusted.a", "second", 6, XATTR_REPLACE));
    CHECK("replace-missing", setxattr("file", "trusted.b", "x", 1, XATTR_REPLACE));
    CHECK("both-flags", setxattr("file", "trusted.a", "x", 1, XATTR_REPLACE | XATTR_CREATE));
    CHECK("bad-flags", setxattr("file", "trusted.a", "x", 1, 8));
    CHECK("size", getxattr("file", "trusted.a", NULL, 0));
    CHECK("get", getxattr("file", "trusted.a", value, sizeof value));
    CHECK_STR("value", value);
    CHECK("too-small", getxattr("file", "trusted.a", value, 3));
    CHECK("by-link", getxattr("link", "trusted.a", value, sizeof value));
    CHECK("of-link", lgetxattr("link", "trusted.a", value, sizeof value));
    CHECK("set-on-link", lsetxattr("link", "trusted.l", "link", 4, 0));
    CHECK("get-on-link", lgetxattr("link", "trusted.l", value, sizeof value));
    CHECK("not-on-file", getxattr("link", "trusted.l", value, sizeof value));
    CHECK("by-descriptor", fgetxattr(fd, "trusted.a", value, sizeof value));
    CHECK("set-by-descriptor", fsetxattr(fd, "trusted.empty", "", 0, XATTR_CREATE));
    CHECK("empty", fgetxattr(fd, "trusted.empty", value, sizeof value));
    CHECK("directory", setxattr("directory", "trusted.d", "dir", 3, 0));
    ssize_t length = listxattr("file", list, sizeof list);
    CHECK_TRUE("listed", has(list, length, "trusted.a") && has(list, length, "trusted.empty") && !has(list, length, "trusted.l"));
    CHECK_TRUE("list-size", listxattr("link", NULL, 0) == length && flistxattr(fd, NULL, 0) == length);
    length = llistxattr("link", list, sizeof list);
    CHECK_TRUE("listed-of-link", has(list, length, "trusted.l") && !has(list, length, "trusted.a"));
    CHECK("list-too-small", listxattr("file", list, 3));
    CHECK("remove", removexattr("file", "trusted.a"));
    CHECK("remove-again", removexattr("file", "trusted.a"));
    CHECK("remove-by-descriptor", fremovexattr(fd, "trusted.empty"));
    CHECK("remove-of-link", lremovexattr("link", "trusted.l"));
    CHECK("no-such-file", getxattr("none", "trusted.a", value, sizeof value));
    CHECK("no-such-descriptor", fgetxattr(-1, "trusted.a", value, sizeof value));
    CHECK("no-space", setxattr("file", "nonsense.a", "x", 1, 0));
    CHECK("no-name", setxattr("file", "trusted.", "x", 1, 0));
    CHECK("empty-name", setxattr("file", "", "x", 1, 0));
    char name[300];
    memset(name, 'n', sizeof name);
    memcpy(name, "trusted.", 8);
    name[256] = 0;
    CHECK("long-name", setxattr("file", name, "x", 1, 0));
    CHECK("large-value", setxattr("file", "trusted.a", value, 65537, 0));
    CHECK("bad-name", setxattr("file", BAD_POINTER, "x", 1, 0));
    CHECK("bad-value", setxattr("file", "trusted.a", BAD_POINTER, 1, 0));
    CHECK("on-pipe-node", mkfifo("fifo", 0644) == 0 ? setxattr("fifo", "trusted.f", "x", 1, 0) : -1);
    CHECK("user-on-link", lsetxattr("link", "user.a", "x", 1, 0));
    REQUIRE(setxattr("file", "trusted.a", "kept", 4, 0) == 0 && chmod("file", 0666) == 0 && chmod(".", 0755) == 0);
    int path_only = open("file", O_PATH);
    CHECK("by-path-descriptor", fgetxattr(path_only, "trusted.a", value, sizeof value));
    CHECK_CHILD("unprivileged", {
        REQUIRE(setgid(1000) == 0 && setuid(1000) == 0);
        CHECK("set-trusted", fsetxattr(fd, "trusted.x", "x", 1, 0));
        CHECK("get-trusted", fgetxattr(fd, "trusted.a", value, sizeof value));
        CHECK("remove-trusted", fremovexattr(fd, "trusted.a"));
        CHECK("set-security", fsetxattr(fd, "security.x", "x", 1, 0));
        length = flistxattr(fd, list, sizeof list);
        CHECK_TRUE("trusted-hidden", !has(list, length, "trusted.a"));
    });
    CHECK("renamed", rename("file", "other") == 0 ? getxattr("other", "trusted.a", value, sizeof value) : -1);
    return 0;
}
