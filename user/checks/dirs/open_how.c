// openat2: resolution that stays inside a directory or refuses links.
#include "../check.h"

#define NO_SYMLINKS 0x04
#define BENEATH 0x08
#define IN_ROOT 0x10

struct how {
    uint64_t flags, mode, resolve;
};

static long open2(int directory, const char *path, uint64_t flags, uint64_t resolve)
{
    struct how how = { flags, 0, resolve };
    long fd = syscall(437, directory, path, &how, sizeof how);
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

int main(void)
{
    REQUIRE(mkdir("d", 0755) == 0 && mkdir("d/sub", 0755) == 0);
    check_write_file("d/f", "x");
    check_write_file("outside", "x");
    REQUIRE(symlink("f", "d/link") == 0 && symlink("../outside", "d/up") == 0 && symlink("/f", "d/root") == 0);
    int d = open("d", O_RDONLY);
    CHECK("plain", open2(d, "f", O_RDONLY, 0));
    CHECK("no-symlinks", open2(d, "link", O_RDONLY, NO_SYMLINKS));
    CHECK("beneath", open2(d, "sub/../f", O_RDONLY, BENEATH));
    CHECK("beneath-up", open2(d, "../outside", O_RDONLY, BENEATH));
    CHECK("beneath-link-up", open2(d, "up", O_RDONLY, BENEATH));
    CHECK("beneath-absolute", open2(d, "/dev/null", O_RDONLY, BENEATH));
    CHECK("in-root-absolute", open2(d, "/f", O_RDONLY, IN_ROOT));
    CHECK("in-root-link", open2(d, "root", O_RDONLY, IN_ROOT));
    CHECK("in-root-up", open2(d, "../../f", O_RDONLY, IN_ROOT));
    CHECK("unknown-flags", open2(d, "f", 1ull << 40, 0));
    CHECK("unknown-resolve", open2(d, "f", O_RDONLY, 1 << 20));
    struct how how = { O_RDONLY, 0644, 0 };
    CHECK("mode-without-create", syscall(437, d, "f", &how, sizeof how));
    CHECK("short-structure", syscall(437, d, "f", &how, 8));
    return 0;
}
