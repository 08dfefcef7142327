// rename(2) in an overlay: what is left under the old name, and what directories show under a new one.
#include "overlay.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#endif

static int exchange(const char *one, const char *other)
{
    return syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}

static void fill(void)
{
    for (int i = 1; i <= 9; i++) {
        char path[16];
        snprintf(path, sizeof path, "b/f%d", i);
        check_write_file(path, path + 2);
        snprintf(path, sizeof path, "b/d%d", i);
        REQUIRE(mkdir(path, 0755) == 0);
        strcat(path, "/in");
        check_write_file(path, "in");
        path[0] = 'b';
    }
    REQUIRE(mkdir("b/empty", 0755) == 0 && mkdir("b/empty2", 0755) == 0);
}

static void by_default(void)
{
    CHECK_IF("file", rename("m/f1", "m/g1") == 0 && says("m/g1", "f1") && !exists("m/f1") && is_whiteout("u/f1"));
    CHECK_IF("file-back", rename("m/g1", "m/f1") == 0 && says("m/f1", "f1") && !exists("u/g1") && !exists("m/g1"));
    CHECK_IF("over-lower", rename("m/f1", "m/f2") == 0 && says("m/f2", "f1") && is_whiteout("u/f1"));
    CHECK_IF("over-upper", rename("m/f3", "m/f2") == 0 && says("m/f2", "f3") && is_whiteout("u/f3"));
    CHECK_IF("remove-then", unlink("m/f2") == 0 && is_whiteout("u/f2"));
    CHECK_IF("over-whiteout", rename("m/f4", "m/f2") == 0 && says("m/f2", "f4") && is_whiteout("u/f4"));
    CHECK_IF("upper-file", close(open("m/n", O_CREAT | O_WRONLY, 0600)) == 0 && rename("m/n", "m/o") == 0 && !exists("u/n"));
    CHECK_IF("upper-over-lower", rename("m/o", "m/f5") == 0 && size("m/f5") == 0 && !exists("u/o"));
    CHECK_IF("no-replace", fails(syscall(SYS_renameat2, AT_FDCWD, "m/f6", AT_FDCWD, "m/f5", RENAME_NOREPLACE), EEXIST));
    CHECK_IF("no-replace-whiteout", syscall(SYS_renameat2, AT_FDCWD, "m/f6", AT_FDCWD, "m/f1", RENAME_NOREPLACE) == 0 && says("m/f1", "f6"));
    CHECK_IF("exchange", exchange("m/f7", "m/f8") == 0 && says("m/f7", "f8") && says("m/f8", "f7"));
    CHECK_IF("exchange-upper", says("u/f7", "f8") && says("u/f8", "f7") && says("b/f7", "f7"));
    CHECK_IF("exchange-missing", fails(exchange("m/f7", "m/none"), ENOENT));
    CHECK_IF("into-directory", rename("m/f7", "m/d1/f7") == 0 && says("m/d1/f7", "f8") && has("m/d1", "f7 in"));
    CHECK_IF("lower-directory", fails(rename("m/d2", "m/e2"), EXDEV));
    CHECK_IF("merged-directory", fails(rename("m/d1", "m/e1"), EXDEV));
    CHECK_IF("exchange-directory", fails(exchange("m/d2", "m/f8"), EXDEV));
    CHECK_IF("directory-over-file", fails(rename("m/d2", "m/f8"), ENOTDIR));
    CHECK_IF("file-over-directory", fails(rename("m/f8", "m/d2"), EISDIR));
    CHECK_IF("into-itself", fails(rename("m/d2", "m/d2/x"), EINVAL));
    CHECK_IF("new-directory", mkdir("m/new", 0755) == 0 && close(open("m/new/x", O_CREAT | O_WRONLY, 0600)) == 0);
    CHECK_IF("move-new-directory", rename("m/new", "m/newer") == 0 && has("m/newer", "x") && !exists("u/new"));
    CHECK_IF("over-full", fails(rename("m/newer", "m/d3"), ENOTEMPTY));
    CHECK_IF("over-empty-lower", rename("m/newer", "m/empty") == 0 && has("m/empty", "x") && !exists("m/newer"));
    CHECK_IF("over-empty-lower-opaque", attribute("u/empty", "trusted.overlay.opaque", "y"));
    CHECK_IF("emptied", unlink("m/d3/in") == 0 && mkdir("m/again", 0755) == 0);
    CHECK_IF("over-emptied", rename("m/again", "m/d3") == 0 && has("m/d3", "") && has("u/d3", ""));
    CHECK_IF("over-removed", unlink("m/d4/in") == 0 && rmdir("m/d4") == 0 && mkdir("m/third", 0755) == 0 && rename("m/third", "m/d4") == 0);
    CHECK_IF("over-removed-shows-nothing", has("m/d4", "") && attribute("u/d4", "trusted.overlay.opaque", "y"));
    CHECK_IF("no-redirect", fails(lgetxattr("u/d4", "trusted.overlay.redirect", NULL, 0), ENODATA));
    CHECK_IF("opaque-moves", rename("m/d4", "m/fourth") == 0 && has("m/fourth", "") && is_whiteout("u/d4") && !exists("m/d4"));
    CHECK_IF("same-file", link("m/f8", "m/l8") == 0 && rename("m/f8", "m/l8") == 0 && exists("m/f8") && exists("m/l8"));
    CHECK_IF("chain", rename("m/l8", "m/l9") == 0 && rename("m/l9", "m/d5/l") == 0 && says("m/d5/l", "f7") && links("m/f8") == 2);
}

static void redirected(void)
{
    CHECK_IF("redirect-lower", rename("m/d6", "m/e6") == 0 && has("m/e6", "in") && !exists("m/d6"));
    CHECK_IF("redirect-note", attribute("u/e6", "trusted.overlay.redirect", "d6"));
    CHECK_IF("redirect-whiteout", is_whiteout("u/d6"));
    CHECK_IF("redirect-content", says("m/e6/in", "in") && appends("m/e6/in", "+") && says("u/e6/in", "in+"));
    CHECK_IF("redirect-deeper", mkdir("m/p", 0755) == 0 && rename("m/d7", "m/p/e7") == 0 && has("m/p/e7", "in"));
    CHECK_IF("redirect-absolute", attribute("u/p/e7", "trusted.overlay.redirect", "/d7"));
    CHECK_IF("redirect-again", rename("m/p/e7", "m/p/f7") == 0 && attribute("u/p/f7", "trusted.overlay.redirect", "/d7"));
    CHECK_IF("redirect-exchange", exchange("m/e6", "m/d8") == 0 && has("m/e6", "in") && has("m/d8", "in") && says("m/d8/in", "in+"));
    CHECK_IF("redirect-removed", unlink("m/d8/in") == 0 && rmdir("m/d8") == 0 && !exists("m/d8"));
}

int main(void)
{
    layers();
    fill();
    mount_layers(PLAIN);
    by_default();
    CHECK_IF("unmounted", umount("m") == 0);
    CHECK_IF("redirecting", overlay(PLAIN ",redirect_dir=on") == 0);
    redirected();
    CHECK_IF("unmounted-redirecting", umount("m") == 0);
    CHECK_IF("following", overlay(PLAIN) == 0);
    CHECK_IF("follows", has("m/p/f7", "in") && has("m/e6", "in") && !exists("m/d7"));
    CHECK_IF("unmounted-following", umount("m") == 0);
    CHECK_IF("not-following", overlay(PLAIN ",redirect_dir=nofollow") == 0);
    CHECK_IF("refuses", fails(access("m/e6", F_OK), EPERM));
    CHECK_IF("others-are-there", says("m/d5/l", "f7") && has("m/empty", "x") && has("m/d3", ""));
    CHECK_IF("unmounted-again", umount("m") == 0);
    return 0;
}
