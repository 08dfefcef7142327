// chdir, fchdir, getcwd and chroot.
#include "../check.h"

// The working directory relative to where the program started.
static char start[4096];

static void show(const char *name)
{
    char now[4096];
    if (!getcwd(now, sizeof now))
        check_line("%s: %s\n", name, check_errno_name(errno));
    else if (strncmp(now, start, strlen(start)) == 0)
        check_line("%s: START%s\n", name, now + strlen(start));
    else
        check_line("%s: %s\n", name, now);
}

int main(void)
{
    REQUIRE(getcwd(start, sizeof start) && chmod(".", 0755) == 0);
    REQUIRE(mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0 && symlink("a/b", "link") == 0);
    check_write_file("f", "");
    CHECK("chdir", chdir("a/b"));
    show("below");
    CHECK("parent", chdir(".."));
    show("after-parent");
    CHECK("back", chdir(start));
    CHECK("through-link", chdir("link"));
    show("link-resolved");
    CHECK("parent-of-link", chdir("../.."));
    show("start");
    CHECK("file", chdir("f"));
    CHECK("missing", chdir("missing"));
    CHECK("empty", chdir(""));
    char small[2];
    CHECK("getcwd-short", syscall(SYS_getcwd, small, sizeof small));
    CHECK("getcwd-length", syscall(SYS_getcwd, (char[4096]){ 0 }, 4096) == (long)strlen(start) + 1);
    int fd = open("a", O_RDONLY);
    CHECK("fchdir", fchdir(fd));
    show("after-fchdir");
    CHECK("renamed-under-us", rename("../a", "../z"));
    show("after-rename");
    REQUIRE(fchdir(open("..", O_RDONLY)) == 0);
    int file = open("f", O_RDONLY);
    CHECK("fchdir-file", fchdir(file));
    CHECK_CHILD("child-has-its-own", REQUIRE(chdir("z") == 0));
    show("unchanged-by-child");
    CHECK_CHILD("root-directory", REQUIRE(chdir("/") == 0); show("slash"));

    // chroot: the new root cannot be left by dot-dot.
    REQUIRE(mkdir("jail", 0755) == 0 && mkdir("jail/inside", 0755) == 0);
    check_write_file("jail/inside/text", "jailed");
    CHECK_CHILD("chroot", CHECK("call", chroot("jail")); CHECK("enter", chdir("/inside")); show("cwd-inside");
                CHECK_STR("absolute", check_read_file("/inside/text")); CHECK_STR("above-root", check_read_file("/../../inside/text"));
                CHECK("outside", access("/dev/null", F_OK)));
    CHECK_CHILD("out-of-reach", char now[4096] = ""; int self = open("/proc/self", O_RDONLY); REQUIRE(self >= 0 && chroot("jail") == 0);
                CHECK_TRUE("link", readlinkat(self, "cwd", now, sizeof now - 1) == (long)strlen(start) && strcmp(now, start) == 0);
                CHECK_TRUE("getcwd", syscall(SYS_getcwd, now, sizeof now) > 0 && strncmp(now, "(unreachable)/", 14) == 0));
    CHECK("chroot-file", chroot("f"));
    CHECK("chroot-missing", chroot("missing"));
    CHECK_CHILD("chroot-unprivileged", REQUIRE(setuid(1000) == 0); CHECK("refused", chroot(".")));
    return 0;
}
