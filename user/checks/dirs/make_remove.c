// mkdir, rmdir and the errors of path look-up.
#include "../check.h"

int main(void)
{
    struct stat st;
    char name[300];
    CHECK("mkdir", mkdir("d", 0777));
    REQUIRE(stat("d", &st) == 0);
    CHECK("mode-after-umask", st.st_mode & 07777);
    CHECK("mkdir-again", mkdir("d", 0777));
    CHECK("mkdir-trailing-slash", mkdir("e/", 0777));
    CHECK("mkdir-dot", mkdir(".", 0777));
    CHECK("mkdir-root", mkdir("/", 0777));
    CHECK("mkdir-missing-parent", mkdir("no/such", 0777));
    CHECK("mkdir-empty", mkdir("", 0777));
    check_write_file("f", "");
    CHECK("mkdir-on-file", mkdir("f", 0777));
    CHECK("mkdir-below-file", mkdir("f/x", 0777));
    CHECK("rmdir-file", rmdir("f"));
    CHECK("rmdir-missing", rmdir("missing"));
    REQUIRE(mkdir("d/inner", 0755) == 0);
    CHECK("rmdir-not-empty", rmdir("d"));
    CHECK("rmdir-dot", rmdir("d/."));
    CHECK("rmdir-dot-dot", rmdir("d/inner/.."));
    CHECK("rmdir", rmdir("d/inner"));
    CHECK("rmdir-trailing-slash", rmdir("d/"));
    CHECK("rmdir-gone", access("d", F_OK));
    memset(name, 'n', sizeof name);
    name[255] = 0;
    CHECK("name-255", mkdir(name, 0755));
    CHECK("name-255-removed", rmdir(name));
    name[255] = 'n';
    name[256] = 0;
    CHECK("name-256", mkdir(name, 0755));
    CHECK("name-256-open", open(name, O_RDONLY));
    char path[4200];
    for (int i = 0; i < 4200; i += 2)
        memcpy(path + i, "./", 2);
    path[4095] = 0;
    CHECK("path-4095", access(path, F_OK));
    path[4095] = '.';
    path[4096] = 0;
    CHECK("path-4096", access(path, F_OK));
    CHECK("slashes", access("e//////./../e///", F_OK));
    CHECK("root-parent", access("/../../dev/null", F_OK));
    // A set-group-id directory hands its group and bit down.
    REQUIRE(mkdir("g", 0755) == 0 && chown("g", 0, 1234) == 0 && chmod("g", 02755) == 0);
    REQUIRE(mkdir("g/sub", 0755) == 0 && stat("g/sub", &st) == 0);
    CHECK("inherited-group", st.st_gid);
    CHECK("inherited-bit", st.st_mode & 07777);
    check_write_file("g/file", "");
    REQUIRE(stat("g/file", &st) == 0);
    CHECK("file-inherits-group", st.st_gid);
    // A directory that is removed while it is the working directory stays usable as a place to leave.
    REQUIRE(mkdir("gone", 0755) == 0 && chdir("gone") == 0 && rmdir("../gone") == 0);
    CHECK("create-in-removed", open("x", O_CREAT | O_WRONLY, 0644));
    char cwd[64];
    CHECK("getcwd-in-removed", getcwd(cwd, sizeof cwd) == NULL ? -1 : 0);
    CHECK("leave-removed", chdir(".."));
    CHECK("back", access("e", F_OK));
    return 0;
}
