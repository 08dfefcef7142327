// Symbolic links: following, loops, dangling, odd targets.
#include "../check.h"

int main(void)
{
    struct stat st;
    char target[64] = { 0 }, name[32];
    check_write_file("f", "text");
    REQUIRE(mkdir("d", 0755) == 0);
    check_write_file("d/g", "in d");
    CHECK("create", symlink("f", "link"));
    CHECK("exists", symlink("f", "link"));
    CHECK("empty-target", symlink("", "x"));
    CHECK("empty-name", symlink("f", ""));
    CHECK("readlink", readlink("link", target, sizeof target));
    CHECK_STR("target", target);
    memset(target, 0, sizeof target);
    REQUIRE(symlink("long-target", "long") == 0);
    CHECK("readlink-cut", readlink("long", target, 4));
    CHECK_STR("cut", target);
    CHECK("readlink-zero", syscall(SYS_readlink, "link", target, 0));
    CHECK("readlink-file", readlink("f", target, sizeof target));
    CHECK("readlink-missing", readlink("missing", target, sizeof target));
    CHECK_STR("followed", check_read_file("link"));
    REQUIRE(symlink("d", "dlink") == 0);
    CHECK_STR("through-directory", check_read_file("dlink/g"));
    CHECK_STR("dot-dot-after-link", check_read_file("dlink/../f"));
    REQUIRE(symlink("missing", "dangling") == 0);
    CHECK("dangling-stat", stat("dangling", &st));
    CHECK("dangling-lstat", lstat("dangling", &st));
    CHECK("mkdir-on-dangling", mkdir("dangling", 0755));
    REQUIRE(symlink("self", "self") == 0 && symlink("b", "a") == 0 && symlink("a", "b") == 0);
    CHECK("self", stat("self", &st));
    CHECK("pair", open("a", O_RDONLY));
    CHECK("create-through-loop", open("self", O_CREAT | O_WRONLY, 0644));
    // A chain of 40 links is followed; of 41 not.
    REQUIRE(symlink("f", "c1") == 0);
    for (int i = 2; i <= 41; i++) {
        char previous[32];
        snprintf(name, sizeof name, "c%d", i);
        snprintf(previous, sizeof previous, "c%d", i - 1);
        REQUIRE(symlink(previous, name) == 0);
    }
    CHECK("chain-40", stat("c40", &st));
    CHECK("chain-41", stat("c41", &st));
    CHECK("unlink-link", unlink("dlink"));
    CHECK("target-stays", access("d/g", F_OK));
    CHECK("link-slash-on-file-link", lstat("link/", &st));
    REQUIRE(symlink("d", "dl") == 0);
    CHECK("lstat-slash-follows", lstat("dl/", &st) == 0 ? S_ISDIR(st.st_mode) : -1);
    CHECK("rmdir-on-link", rmdir("dl"));
    REQUIRE(symlink("/dev/null", "absolute") == 0 && stat("absolute", &st) == 0);
    CHECK("absolute", S_ISCHR(st.st_mode));
    REQUIRE(chmod("link", 0600) == 0 && stat("f", &st) == 0);
    CHECK("chmod-follows", st.st_mode & 07777);
    CHECK("lchown", lchown("link", 5, 6));
    REQUIRE(lstat("link", &st) == 0);
    CHECK("link-owner", st.st_uid * 10 + st.st_gid);
    CHECK("file-owner", stat("f", &st) == 0 ? st.st_uid * 10 + st.st_gid : -1);
    memset(target, 'x', sizeof target);
    char big[4200];
    memset(big, 'y', sizeof big);
    big[4199] = 0;
    CHECK("target-too-long", symlink(big, "too-long"));
    return 0;
}
