// stat, lstat, fstat, statx: the same facts through each of them.
#include "../check.h"
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#define TYPE 0x1
#define SIZE 0x200
#define BASIC 0x7ff

// The kernel's `struct statx`, which not every C library declares.
struct facts {
    uint32_t mask, block_size;
    uint64_t attributes;
    uint32_t links, owner, group;
    uint16_t mode, pad;
    uint64_t inode, size, blocks, attributes_mask;
    struct {
        int64_t seconds;
        uint32_t nanoseconds;
        int32_t pad;
    } accessed, born, changed, modified;
    uint64_t spare[20];
};

static long facts(int directory, const char *path, int flags, unsigned mask, struct facts *x)
{
    return syscall(SYS_statx, directory, path, flags, mask, x);
}

int main(void)
{
    struct stat st, link, by_fd;
    struct facts x;
    check_write_file("f", "twelve bytes");
    REQUIRE(symlink("f", "link") == 0 && mkdir("d", 0750) == 0 && mkfifo("fifo", 0640) == 0);
    REQUIRE(stat("f", &st) == 0 && lstat("link", &link) == 0);
    CHECK("type-and-mode", st.st_mode);
    CHECK("links", st.st_nlink);
    CHECK("size", st.st_size);
    CHECK("owner", st.st_uid);
    CHECK("group", st.st_gid);
    CHECK("link-mode", link.st_mode);
    CHECK("link-size", link.st_size);
    int fd = open("f", O_RDONLY);
    REQUIRE(fstat(fd, &by_fd) == 0);
    CHECK_TRUE("same-inode", by_fd.st_ino == st.st_ino && by_fd.st_dev == st.st_dev);
    CHECK_TRUE("other-inode", link.st_ino != st.st_ino);
    CHECK_TRUE("block-size-sane", st.st_blksize >= 512 && st.st_blksize <= 1 << 21);
    REQUIRE(stat("d", &st) == 0);
    CHECK("directory-mode", st.st_mode);
    REQUIRE(stat("fifo", &st) == 0);
    CHECK("fifo-mode", st.st_mode);
    CHECK("missing", stat("missing", &st));
    CHECK("through-file", stat("f/x", &st));
    REQUIRE(stat("/dev/null", &st) == 0);
    CHECK("null-is-character", S_ISCHR(st.st_mode));
    CHECK("null-number", major(st.st_rdev) * 1000 + minor(st.st_rdev));
    REQUIRE(stat("/dev/zero", &st) == 0);
    CHECK("zero-number", major(st.st_rdev) * 1000 + minor(st.st_rdev));

    CHECK("statx", facts(AT_FDCWD, "f", 0, BASIC, &x));
    CHECK_TRUE("statx-mask", (x.mask & BASIC) == BASIC);
    CHECK("statx-mode", x.mode);
    CHECK("statx-size", x.size);
    CHECK_TRUE("statx-inode", x.inode == by_fd.st_ino);
    CHECK_TRUE("statx-mtime", x.modified.seconds == by_fd.st_mtim.tv_sec && (long)x.modified.nanoseconds == by_fd.st_mtim.tv_nsec);
    CHECK("statx-link", facts(AT_FDCWD, "link", AT_SYMLINK_NOFOLLOW, TYPE, &x) == 0 ? x.mode & S_IFMT : -1);
    CHECK("statx-descriptor", facts(fd, "", AT_EMPTY_PATH, SIZE, &x) == 0 ? (long)x.size : -1);
    CHECK("statx-missing", facts(AT_FDCWD, "missing", 0, SIZE, &x));
    CHECK("statx-reserved-mask", facts(AT_FDCWD, "f", 0, 0x80000000u, &x));
    CHECK("statx-bad-flags", facts(AT_FDCWD, "f", 0x40000000, SIZE, &x));
    struct statfs fs;
    CHECK("statfs", statfs(".", &fs));
    CHECK_TRUE("statfs-names", fs.f_namelen == 255);
    CHECK("statfs-missing", statfs("missing", &fs));
    REQUIRE(statfs("/proc", &fs) == 0);
    CHECK("proc-type", fs.f_type);
    return 0;
}
