// The names that the kernel tells of files that it has: getcwd, /proc/self/fd, after renames, links and removals.
#include "../check.h"

static char base[4096];

static void tell(const char *name, const char *link)
{
    char target[4200];
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0) {
        check_line("%s: %s\n", name, check_errno_name(errno));
        return;
    }
    target[length] = 0;
    size_t skipped = strncmp(target, base, strlen(base)) == 0 ? strlen(base) : 0;
    check_line("%s: %s\n", name, target + skipped);
}

int main(void)
{
    char fd_path[64], cwd[4096];
    REQUIRE(getcwd(base, sizeof base) != NULL);
    check_write_file("a", "text");
    int fd = open("a", O_RDONLY);
    snprintf(fd_path, sizeof fd_path, "/proc/self/fd/%d", fd);
    tell("opened", fd_path);
    REQUIRE(rename("a", "b") == 0);
    tell("renamed", fd_path);
    REQUIRE(mkdir("d", 0755) == 0 && rename("b", "d/c") == 0);
    tell("moved", fd_path);
    REQUIRE(rename("d", "e") == 0);
    tell("directory-renamed", fd_path);
    // (Of a file with several names Ebb tells one, Linux the one by which it was opened.)
    REQUIRE(link("e/c", "other") == 0);
    tell("linked", fd_path);
    REQUIRE(unlink("e/c") == 0);
    tell("first-name-gone", fd_path);
    REQUIRE(unlink("other") == 0);
    check_write_file("x", "1");
    check_write_file("y", "2");
    int x = open("x", O_RDONLY);
    snprintf(fd_path, sizeof fd_path, "/proc/self/fd/%d", x);
    REQUIRE(syscall(SYS_renameat2, AT_FDCWD, "x", AT_FDCWD, "y", 2) == 0);
    tell("exchanged", fd_path);
    check_write_file("z", "3");
    REQUIRE(rename("z", "y") == 0);
    tell("replaced", fd_path);

    REQUIRE(chdir("e") == 0);
    CHECK_STR("cwd", getcwd(cwd, sizeof cwd) + strlen(base));
    REQUIRE(rename("../e", "../f") == 0);
    CHECK_STR("cwd-renamed", getcwd(cwd, sizeof cwd) + strlen(base));
    REQUIRE(mkdir("g", 0755) == 0 && chdir("g") == 0 && rename("../g", "../../h") == 0);
    CHECK_STR("cwd-moved", getcwd(cwd, sizeof cwd) + strlen(base));
    CHECK_TRUE("short-buffer", getcwd(cwd, 2) == NULL && errno == ERANGE);
    REQUIRE(rmdir("../h") == 0);
    CHECK_TRUE("removed", getcwd(cwd, sizeof cwd) == NULL && errno == ENOENT);
    tell("removed-link", "/proc/self/cwd");
    return 0;
}
