// What an overlay shows of its layers, and what is noted in the upper one where names are made and removed.
#include "overlay.h"

int main(void)
{
    char list[256];
    layers();
    REQUIRE(mkdir("a/d", 0755) == 0 && mkdir("b/d", 0700) == 0 && mkdir("b/only", 0750) == 0 && mkdir("u/d", 0711) == 0);
    check_write_file("a/f", "a");
    check_write_file("b/f", "b");
    check_write_file("b/g", "b");
    check_write_file("a/d/1", "a");
    check_write_file("b/d/1", "b");
    check_write_file("b/d/2", "b");
    check_write_file("u/d/3", "u");
    check_write_file("b/only/x", "x");
    check_write_file("b/mixed", "file");
    check_write_file("b/hidden", "hidden");
    REQUIRE(mkdir("a/mixed", 0755) == 0 && mkdir("b/opaque", 0755) == 0 && mkdir("a/opaque", 0755) == 0);
    check_write_file("a/mixed/in", "in");
    check_write_file("b/opaque/below", "below");
    check_write_file("a/opaque/above", "above");
    check_write_file("b/file-over-directory", "x");
    REQUIRE(mkdir("b/covered", 0755) == 0);
    check_write_file("b/covered/in", "x");
    check_write_file("a/covered", "file");
    REQUIRE(symlink("f", "a/link") == 0);
    may = may && setxattr("a/opaque", "trusted.overlay.opaque", "y", 1, 0) == 0 && mknod("a/hidden", S_IFCHR, 0) == 0;
    mount_layers(PLAIN);

    CHECK_IF("root", has("m", "covered d f file-over-directory g link mixed only opaque"));
    CHECK_IF("topmost-file", says("m/f", "a"));
    CHECK_IF("lower-file", says("m/g", "b"));
    CHECK_IF("through-link", says("m/link", "a"));
    CHECK_IF("merged", has("m/d", "1 2 3"));
    CHECK_IF("merged-topmost", says("m/d/1", "a"));
    CHECK_IF("merged-lower", says("m/d/2", "b"));
    CHECK_IF("merged-upper", says("m/d/3", "u"));
    CHECK_IF("merged-mode", (mode("m/d") & 0777) == 0711);
    CHECK_IF("merged-links", links("m/d") == 1);
    CHECK_IF("lower-only-links", links("m/only") == 2);
    CHECK_IF("lower-only-mode", (mode("m/only") & 0777) == 0750);
    CHECK_IF("directory-over-file", has("m/mixed", "in"));
    CHECK_IF("file-over-directory", says("m/covered", "file"));
    CHECK_IF("opaque", has("m/opaque", "above"));
    CHECK_IF("opaque-lookup", fails(access("m/opaque/below", F_OK), ENOENT));
    CHECK_IF("whiteout-below", fails(access("m/hidden", F_OK), ENOENT));
    CHECK_IF("missing", fails(access("m/none", F_OK), ENOENT));
    CHECK_IF("not-a-directory", fails(access("m/f/x", F_OK), ENOTDIR));

    CHECK_IF("unlink-lower", unlink("m/g") == 0);
    CHECK_IF("unlink-lower-gone", !exists("m/g"));
    CHECK_IF("unlink-lower-whiteout", is_whiteout("u/g"));
    CHECK_IF("unlink-lower-stays", says("b/g", "b"));
    CHECK_IF("unlink-again", fails(unlink("m/g"), ENOENT));
    CHECK_IF("unlink-upper", unlink("m/d/3") == 0 && !exists("u/d/3"));
    CHECK_IF("unlink-both-layers", unlink("m/f") == 0 && is_whiteout("u/f") && !exists("m/f"));
    CHECK_IF("whiteouts-not-listed", has("m", "covered d file-over-directory link mixed only opaque"));
    CHECK_IF("dangling-link", fails(access("m/link", F_OK), ENOENT));

    CHECK_IF("create", close(open("m/new", O_CREAT | O_EXCL | O_RDWR, 0640)) == 0 && exists("u/new"));
    CHECK_IF("create-mode", (mode("u/new") & 0777) == 0640);
    CHECK_IF("create-exists", fails(open("m/new", O_CREAT | O_EXCL | O_RDWR, 0640), EEXIST));
    CHECK_IF("remove-new", unlink("m/new") == 0 && !exists("u/new"));
    CHECK_IF("create-over-whiteout", close(open("m/g", O_CREAT | O_EXCL | O_WRONLY, 0600)) == 0);
    CHECK_IF("create-over-whiteout-is-empty", size("m/g") == 0 && size("u/g") == 0 && (mode("u/g") & 0777) == 0600);
    CHECK_IF("remove-over-whiteout", unlink("m/g") == 0 && is_whiteout("u/g"));
    CHECK_IF("mkdir-over-whiteout", mkdir("m/g", 0755) == 0 && has("m/g", ""));
    CHECK_IF("mkdir-over-whiteout-opaque", attribute("u/g", "trusted.overlay.opaque", "y"));
    CHECK_IF("notes-not-listed", listxattr("m/g", list, sizeof list) == 0);
    CHECK_IF("notes-not-read", fails(getxattr("m/g", "trusted.overlay.opaque", NULL, 0), ENODATA));
    CHECK_IF("own-note", setxattr("m/g", "trusted.overlay.mine", "1", 1, 0) == 0 && attribute("m/g", "trusted.overlay.mine", "1"));
    CHECK_IF("own-note-below", attribute("u/g", "trusted.overlay.overlay.mine", "1"));
    CHECK_IF("own-note-removed", removexattr("m/g", "trusted.overlay.mine") == 0 && listxattr("m/g", list, sizeof list) == 0);
    CHECK_IF("rmdir-over-whiteout", rmdir("m/g") == 0 && is_whiteout("u/g"));
    CHECK_IF("symlink-over-whiteout", symlink("x", "m/g") == 0 && S_ISLNK(mode("u/g")));
    CHECK_IF("fifo-over-whiteout", unlink("m/g") == 0 && mkfifo("m/g", 0600) == 0 && S_ISFIFO(mode("u/g")));
    CHECK_IF("device", mknod("m/null", S_IFCHR | 0600, 0x103) == 0 && S_ISCHR(mode("u/null")));
    CHECK_IF("no-whiteouts-by-hand", fails(mknod("m/white", S_IFCHR | 0600, 0), EPERM));
    CHECK_IF("link-over-whiteout", link("m/null", "m/f") == 0 && number("m/f") == number("m/null") && links("m/f") == 2);
    CHECK_IF("unlink-link", unlink("m/f") == 0 && is_whiteout("u/f") && links("m/null") == 1);

    CHECK_IF("rmdir-full", fails(rmdir("m/d"), ENOTEMPTY));
    CHECK_IF("rmdir-lower-full", fails(rmdir("m/only"), ENOTEMPTY));
    CHECK_IF("empty-merged", unlink("m/d/1") == 0 && unlink("m/d/2") == 0 && has("m/d", ""));
    CHECK_IF("empty-merged-whiteouts", is_whiteout("u/d/1") && is_whiteout("u/d/2"));
    int inside = open("m/d", O_RDONLY | O_DIRECTORY);
    CHECK_IF("rmdir-merged", rmdir("m/d") == 0 && is_whiteout("u/d"));
    CHECK_IF("rmdir-merged-gone", !exists("m/d") && has("b/d", "1 2"));
    CHECK_IF("create-in-removed", fails(openat(inside, "x", O_CREAT | O_WRONLY, 0600), ENOENT));
    CHECK_IF("list-removed", fails(faccessat(inside, "1", F_OK, 0), ENOENT));
    close(inside);
    CHECK_IF("rmdir-lower", unlink("m/only/x") == 0 && rmdir("m/only") == 0 && is_whiteout("u/only"));
    CHECK_IF("mkdir-again", mkdir("m/only", 0700) == 0 && has("m/only", "") && !exists("m/only/x"));
    CHECK_IF("unlink-directory", fails(unlink("m/only"), EISDIR));
    CHECK_IF("rmdir-file", fails(rmdir("m/null"), ENOTDIR));
    CHECK_IF("sticky-name", close(open("m/only/y", O_CREAT | O_WRONLY, 0600)) == 0 && says("u/only/y", ""));
    CHECK_IF("work-is-clean", access("w/work", F_OK) == 0);
    CHECK_IF("unmounted", umount("m") == 0);
    CHECK_IF("mounted-again", overlay(PLAIN) == 0);
    CHECK_IF("again-root", has("m", "covered file-over-directory g link mixed null only opaque"));
    CHECK_IF("again-opaque", has("m/only", "y"));
    CHECK_IF("again-whiteouts", !exists("m/d") && !exists("m/f"));
    CHECK_IF("unmounted-again", umount("m") == 0);
    return 0;
}
