// rename and renameat2: replacing, refusing, exchanging.
#include "../check.h"

#define NOREPLACE 1
#define EXCHANGE 2

static long rename2(const char *from, const char *to, unsigned flags)
{
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

int main(void)
{
    struct stat before, after;
    check_write_file("a", "first");
    check_write_file("b", "second");
    REQUIRE(stat("a", &before) == 0);
    CHECK("replace", rename("a", "b"));
    CHECK_STR("replaced", check_read_file("b"));
    CHECK("old-gone", access("a", F_OK));
    REQUIRE(stat("b", &after) == 0);
    CHECK_TRUE("same-inode", before.st_ino == after.st_ino);
    CHECK("missing", rename("missing", "x"));
    CHECK("missing-target-directory", rename("b", "no/such"));
    CHECK("onto-itself", rename("b", "b"));
    REQUIRE(link("b", "hard") == 0);
    CHECK("onto-hard-link", rename("b", "hard"));
    CHECK("both-remain", access("b", F_OK) + access("hard", F_OK));
    REQUIRE(mkdir("d", 0755) == 0 && mkdir("d/inner", 0755) == 0 && mkdir("empty", 0755) == 0);
    CHECK("file-onto-directory", rename("b", "empty"));
    CHECK("directory-onto-file", rename("d", "b"));
    CHECK("directory-onto-full", rename("empty", "d"));
    CHECK("directory-onto-empty", rename("d", "empty"));
    CHECK("moved-inner", access("empty/inner", F_OK));
    CHECK("into-own-subtree", rename("empty", "empty/inner/x"));
    CHECK("onto-ancestor", rename("empty/inner", "empty"));
    CHECK("dot", rename(".", "x"));
    CHECK("to-dot", rename("empty", "."));
    CHECK("trailing-slash-file", rename("b", "c/"));
    CHECK("trailing-slash-directory", rename("empty/", "moved/"));
    CHECK("moved-there", access("moved/inner", F_OK));
    // Moved between directories: dot-dot follows.
    REQUIRE(mkdir("other", 0755) == 0 && rename("moved/inner", "other/inner") == 0);
    struct stat parent, other;
    REQUIRE(stat("other/inner/..", &parent) == 0 && stat("other", &other) == 0);
    CHECK_TRUE("parent-follows", parent.st_ino == other.st_ino);
    // A symbolic link is renamed itself.
    REQUIRE(symlink("b", "link") == 0 && rename("link", "link2") == 0);
    char target[16] = { 0 };
    CHECK("link-kept", readlink("link2", target, sizeof target));
    // An open file keeps its content through a replacement.
    check_write_file("old", "old text");
    check_write_file("new", "new text");
    int fd = open("old", O_RDONLY);
    REQUIRE(rename("new", "old") == 0);
    char text[16] = { 0 };
    REQUIRE(read(fd, text, sizeof text - 1) == 8);
    CHECK_STR("open-file-keeps", text);
    CHECK_STR("name-has-new", check_read_file("old"));

    check_write_file("p", "pp");
    check_write_file("q", "qq");
    CHECK("noreplace-exists", rename2("p", "q", NOREPLACE));
    CHECK("noreplace-free", rename2("p", "r", NOREPLACE));
    CHECK("exchange", rename2("q", "r", EXCHANGE));
    CHECK_STR("exchanged-q", check_read_file("q"));
    CHECK_STR("exchanged-r", check_read_file("r"));
    CHECK("exchange-with-directory", rename2("q", "other", EXCHANGE));
    CHECK_TRUE("now-directory", stat("q", &after) == 0 && S_ISDIR(after.st_mode));
    CHECK("exchange-missing", rename2("q", "missing", EXCHANGE));
    CHECK("both-flags", rename2("q", "r", NOREPLACE | EXCHANGE));
    CHECK("unknown-flag", rename2("q", "r", 1 << 10));
    return 0;
}
