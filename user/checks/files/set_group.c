// The set-group-ID bit of new files in a set-group-ID directory: who is not in its group does not get it.
#include "../check.h"
#include <grp.h>

static void tell(const char *name, const char *path)
{
    struct stat status;
    if (lstat(path, &status) == -1)
        check_line("%s: %s\n", name, check_errno_name(errno));
    else
        check_line("%s: %o group %d\n", name, (unsigned)status.st_mode & 07777, (int)status.st_gid);
}

int main(void)
{
    REQUIRE(chmod(".", 0777) == 0 && mkdir("d", 0777) == 0 && chown("d", 0, 4321) == 0 && chmod("d", 02777) == 0);
    umask(0);
    CHECK_CHILD("root", REQUIRE(close(open("d/root", O_CREAT | O_WRONLY, 02775)) == 0));
    CHECK_CHILD("member", gid_t group = 4321; REQUIRE(setgroups(1, &group) == 0 && setgid(1000) == 0 && setuid(1000) == 0);
                REQUIRE(close(open("d/member", O_CREAT | O_WRONLY, 02775)) == 0));
    CHECK_CHILD("other", REQUIRE(setgroups(0, NULL) == 0 && setgid(1000) == 0 && setuid(1000) == 0);
                REQUIRE(close(open("d/other", O_CREAT | O_WRONLY, 02775)) == 0);
                REQUIRE(close(open("d/not-executable", O_CREAT | O_WRONLY, 02745)) == 0);
                REQUIRE(close(open("d/whole", O_CREAT | O_WRONLY, 06777)) == 0);
                REQUIRE(mkdir("d/directory", 0777) == 0);
                REQUIRE(mknod("d/node", S_IFREG | 02775, 0) == 0);
                int nameless = open("d", O_TMPFILE | O_RDWR, 02775);
                struct stat status;
                if (nameless >= 0 && fstat(nameless, &status) == 0) check_line("nameless: %o\n", status.st_mode & 07777);
                REQUIRE(close(open("plain", O_CREAT | O_WRONLY, 02775)) == 0));
    tell("root", "d/root");
    tell("member", "d/member");
    tell("other", "d/other");
    tell("not-executable", "d/not-executable");
    tell("whole", "d/whole");
    tell("directory", "d/directory");
    tell("node", "d/node");
    tell("plain", "plain");
    return 0;
}
