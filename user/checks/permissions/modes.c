// Permission bits as an unprivileged user meets them.
#include "../check.h"

static void become(uid_t user, gid_t group)
{
    REQUIRE(syscall(SYS_setgroups, 0, NULL) == 0 && setgid(group) == 0 && setuid(user) == 0);
}

int main(void)
{
    struct stat st;
    // The working directory may lie below one that others cannot enter, so its own mode is what matters.
    REQUIRE(chmod(".", 0755) == 0);
    check_write_file("private", "secret");
    check_write_file("group", "for the group");
    check_write_file("open", "for all");
    check_write_file("program", "#!/bin/true\n");
    REQUIRE(chmod("private", 0600) == 0 && chown("group", 0, 700) == 0 && chmod("group", 0640) == 0);
    REQUIRE(mkdir("locked", 0700) == 0 && mkdir("search", 0711) == 0 && mkdir("list", 0744) == 0);
    check_write_file("locked/f", "x");
    check_write_file("search/f", "known name");
    check_write_file("list/f", "x");
    REQUIRE(mkdir("sticky", 0777) == 0 && chmod("sticky", 01777) == 0);
    check_write_file("sticky/root-file", "x");
    REQUIRE(mkdir("public", 0777) == 0 && chmod("public", 0777) == 0);
    check_write_file("public/root-file", "x");

    CHECK_CHILD("user", become(1000, 1000);
                CHECK("private-read", open("private", O_RDONLY));
                CHECK("group-read", open("group", O_RDONLY));
                CHECK_TRUE("open-read", open("open", O_RDONLY) >= 0);
                CHECK("open-write", open("open", O_WRONLY));
                CHECK("open-truncate", open("open", O_RDONLY | O_TRUNC));
                CHECK("truncate", truncate("open", 0));
                CHECK("create", open("mine", O_CREAT | O_WRONLY, 0644));
                CHECK("mkdir", mkdir("mine", 0755));
                CHECK("unlink", unlink("open"));
                CHECK("rename", rename("open", "closed"));
                CHECK("link", symlink("open", "closed"));
                CHECK("locked-inside", open("locked/f", O_RDONLY));
                CHECK("locked-missing", stat("locked/missing", &st));
                CHECK("locked-chdir", chdir("locked"));
                CHECK("locked-list", open("locked", O_RDONLY));
                CHECK("search-inside", open("search/f", O_RDONLY) >= 0);
                CHECK("search-list", open("search", O_RDONLY));
                CHECK("list-list", open("list", O_RDONLY) >= 0);
                CHECK("list-inside", stat("list/f", &st));
                CHECK("sticky-unlink-foreign", unlink("sticky/root-file"));
                CHECK("sticky-rename-foreign", rename("sticky/root-file", "sticky/x"));
                CHECK("public-unlink-foreign", unlink("public/root-file"));
                CHECK("chmod-foreign", chmod("open", 0777));
                CHECK("chown-foreign", chown("open", 1000, 1000));
                CHECK("set-time-foreign", utimensat(AT_FDCWD, "open", NULL, 0));
                CHECK("execute", execl("program", "program", NULL));
                CHECK("access-read", access("open", R_OK));
                CHECK("access-write", access("open", W_OK));
                CHECK("access-execute", access("open", X_OK));
                CHECK("access-private", access("private", F_OK));
                check_write_file("sticky/own", "own");
                CHECK("own-owner", stat("sticky/own", &st) == 0 ? (long)st.st_uid * 10000 + st.st_gid : -1);
                CHECK("own-chmod", chmod("sticky/own", 0400));
                CHECK("own-write-denied", open("sticky/own", O_WRONLY));
                CHECK("own-unlink", unlink("sticky/own"));
                CHECK("chown-away", chown("sticky", 5, 5)));
    CHECK_CHILD("member", become(1000, 700); CHECK_TRUE("group-read", open("group", O_RDONLY) >= 0);
                CHECK("group-write", open("group", O_WRONLY)));
    CHECK_CHILD("supplementary", gid_t extra = 700; REQUIRE(syscall(SYS_setgroups, 1, &extra) == 0);
                REQUIRE(setgid(1000) == 0 && setuid(1000) == 0); CHECK_TRUE("group-read", open("group", O_RDONLY) >= 0));
    // The owner's bits decide for the owner, even where the group's would allow more.
    check_write_file("owner-denied", "x");
    REQUIRE(chown("owner-denied", 1000, 700) == 0 && chmod("owner-denied", 0044) == 0);
    CHECK_CHILD("owner", become(1000, 700); CHECK("denied", open("owner-denied", O_RDONLY)));
    CHECK_CHILD("other", become(1001, 1001); CHECK_TRUE("allowed", open("owner-denied", O_RDONLY) >= 0));
    // Root reads everything but executes only what someone may execute.
    CHECK_TRUE("root-reads", open("owner-denied", O_RDONLY) >= 0);
    CHECK("root-execute", access("open", X_OK));
    return 0;
}
