// What has a file of a lower layer copied to the upper one, and what the copy is.
#include "overlay.h"
#include <sys/mman.h>
#include <sys/file.h>

#define BIG (3 * 1024 * 1024 + 123)

static char byte_at(long offset)
{
    return (char)(offset * 7 + offset / 4096);
}

static void write_big(const char *path)
{
    static char bytes[65536];
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    for (long at = 0; at < BIG; at += sizeof bytes) {
        for (long i = 0; i < (long)sizeof bytes; i++)
            bytes[i] = byte_at(at + i);
        long len = BIG - at < (long)sizeof bytes ? BIG - at : (long)sizeof bytes;
        REQUIRE(write(fd, bytes, len) == len);
    }
    close(fd);
}

static int is_big(const char *path)
{
    static char bytes[65536];
    int fd = open(path, O_RDONLY);
    long at = 0, got;
    while ((got = read(fd, bytes, sizeof bytes)) > 0)
        for (long i = 0; i < got; i++, at++)
            if (bytes[i] != byte_at(at))
                return 0;
    close(fd);
    return at == BIG;
}

// A new file of the lower layer, named by a number.
static const char *lower(int which)
{
    static char path[32];
    snprintf(path, sizeof path, "b/deep/er/%d", which);
    check_write_file(path, "lower");
    return path;
}

#define IN(layer, which) layer "/deep/er/" #which

int main(void)
{
    layers();
    REQUIRE(mkdir("b/deep", 0751) == 0 && mkdir("b/deep/er", 0701) == 0 && chown("b/deep/er", 7, 8) == 0);
    for (int i = 0; i < 30; i++)
        lower(i);
    REQUIRE(chmod("b/deep/er/1", 04755) == 0 && chown("b/deep/er/1", 3, 4) == 0 && chmod("b/deep/er/1", 04755) == 0);
    REQUIRE(symlink("target", "b/deep/er/link") == 0 && mkfifo("b/deep/er/fifo", 0600) == 0);
    REQUIRE(mkdir("b/deep/er/directory", 0755) == 0);
    write_big("b/deep/er/big");
    int hole = open("b/deep/er/hole", O_CREAT | O_WRONLY, 0644);
    REQUIRE(ftruncate(hole, 1 << 20) == 0 && pwrite(hole, "x", 1, 500000) == 1);
    close(hole);
    struct timespec old[2] = { { 1000, 11 }, { 2000, 22 } };
    REQUIRE(utimensat(AT_FDCWD, "b/deep/er/1", old, 0) == 0 && utimensat(AT_FDCWD, "b/deep/er", old, 0) == 0);
    int has_attributes = may && setxattr("b/deep/er/1", "user.one", "first", 5, 0) == 0 &&
                         setxattr("b/deep/er/1", "trusted.two", "second", 6, 0) == 0 &&
                         setxattr("b/deep/er", "trusted.of-directory", "d", 1, 0) == 0;
    mount_layers(PLAIN);
    CHECK_IF("attributes-set", has_attributes);

    int reader = open(IN("m", 1), O_RDONLY);
    CHECK_IF("reading-copies-nothing", reader >= 0 && !exists("u/deep"));
    char *mapped = may ? mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, reader, 0) : NULL;
    CHECK_IF("mapped", mapped != MAP_FAILED && memcmp(mapped, "lower", 5) == 0);
    CHECK_IF("stat-copies-nothing", size(IN("m", 1)) == 5 && !exists("u/deep"));
    CHECK_IF("attributes-copy-nothing", attribute(IN("m", 1), "user.one", "first") && !exists("u/deep"));
    CHECK_IF("failed-open", fails(open(IN("m", 1), O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST) && !exists("u/deep"));
    ino_t before = number(IN("m", 1));
    dev_t before_device = device(IN("m", 1));
    int writer = open(IN("m", 1), O_WRONLY);
    CHECK_IF("open-to-write", writer >= 0 && says(IN("u", 1), "lower"));
    CHECK_IF("number-stays", number(IN("m", 1)) == before && device(IN("m", 1)) == before_device);
    CHECK_IF("mode", (mode(IN("u", 1)) & 07777) == 04755);
    struct stat status = { 0 };
    CHECK_IF("owner", stat(IN("u", 1), &status) == 0 && status.st_uid == 3 && status.st_gid == 4);
    CHECK_IF("times", status.st_mtim.tv_sec == 2000 && status.st_mtim.tv_nsec == 22);
    CHECK_IF("attribute", attribute(IN("u", 1), "user.one", "first") && attribute(IN("u", 1), "trusted.two", "second"));
    CHECK_IF("parents", (mode("u/deep") & 0777) == 0751 && (mode("u/deep/er") & 0777) == 0701);
    CHECK_IF("parent-owner", stat("u/deep/er", &status) == 0 && status.st_uid == 7 && status.st_gid == 8);
    CHECK_IF("parent-times", status.st_mtim.tv_sec == 2000 && status.st_mtim.tv_nsec == 22);
    CHECK_IF("parent-attribute", attribute("u/deep/er", "trusted.of-directory", "d"));
    CHECK_IF("siblings-stay", !exists(IN("u", 2)) && says(IN("m", 2), "lower"));
    CHECK_IF("write", write(writer, "UPPER", 5) == 5 && says(IN("m", 1), "UPPER"));
    CHECK_IF("lower-stays", says(IN("b", 1), "lower"));
    char bytes[16] = "";
    CHECK_IF("old-reader-reads-new", pread(reader, bytes, 5, 0) == 5 && memcmp(bytes, "UPPER", 5) == 0);
    CHECK_IF("old-mapping-shows-lower", memcmp(mapped ? mapped : "", "lower", 5) == 0);
    char *again = may ? mmap(NULL, 4096, PROT_READ, MAP_SHARED, reader, 0) : NULL;
    CHECK_IF("old-reader-maps-lower", again != MAP_FAILED && memcmp(again, "lower", 5) == 0);
    int both = open(IN("m", 1), O_RDWR);
    char *shared = may ? mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, both, 0) : bytes;
    CHECK_IF("new-mapping", shared != MAP_FAILED && memcmp(shared, "UPPER", 5) == 0);
    if (may)
        shared[0] = '!';
    CHECK_IF("shared-mapping-writes", says(IN("m", 1), "!PPER") && says(IN("u", 1), "!PPER"));
    CHECK_IF("same-file", fstat(reader, &status) == 0 && status.st_ino == before);

    CHECK_IF("chmod", chmod(IN("m", 2), 0600) == 0 && (mode(IN("u", 2)) & 0777) == 0600 && says(IN("u", 2), "lower"));
    CHECK_IF("chmod-lower-stays", (mode(IN("b", 2)) & 0777) == 0644);
    CHECK_IF("chown", chown(IN("m", 3), 9, 10) == 0 && stat(IN("m", 3), &status) == 0 && status.st_uid == 9);
    CHECK_IF("chown-upper", stat(IN("u", 3), &status) == 0 && status.st_gid == 10);
    CHECK_IF("utimes", utimensat(AT_FDCWD, IN("m", 4), old, 0) == 0 && stat(IN("u", 4), &status) == 0 && status.st_mtime == 2000);
    CHECK_IF("truncate", truncate(IN("m", 5), 2) == 0 && says(IN("u", 5), "lo") && says(IN("b", 5), "lower"));
    CHECK_IF("truncate-longer", truncate(IN("m", 6), 100) == 0 && size(IN("u", 6)) == 100 && size(IN("b", 6)) == 5);
    CHECK_IF("open-truncate", close(open(IN("m", 7), O_WRONLY | O_TRUNC)) == 0 && size(IN("u", 7)) == 0 && size(IN("b", 7)) == 5);
    CHECK_IF("open-read-truncate", close(open(IN("m", 8), O_RDONLY | O_TRUNC)) == 0 && size(IN("u", 8)) == 0);
    CHECK_IF("link", link(IN("m", 9), "m/deep/er/second") == 0 && says("u/deep/er/second", "lower") && links(IN("m", 9)) == 2);
    CHECK_IF("link-same", number(IN("m", 9)) == number("m/deep/er/second"));
    CHECK_IF("link-write", appends(IN("m", 9), "+") && says("m/deep/er/second", "lower+"));
    CHECK_IF("rename", rename(IN("m", 10), "m/moved") == 0 && says("u/moved", "lower") && is_whiteout(IN("u", 10)));
    CHECK_IF("rename-gone", !exists(IN("m", 10)) && says("m/moved", "lower"));
    CHECK_IF("setxattr", setxattr(IN("m", 11), "user.new", "v", 1, 0) == 0 && attribute(IN("u", 11), "user.new", "v"));
    CHECK_IF("setxattr-lower", fails(getxattr(IN("b", 11), "user.new", NULL, 0), ENODATA));
    CHECK_IF("removexattr-none", fails(removexattr(IN("m", 12), "user.none"), ENODATA) && !exists(IN("u", 12)));
    CHECK_IF("xattr-replace", fails(setxattr(IN("m", 13), "user.none", "v", 1, XATTR_REPLACE), ENODATA));
    CHECK_IF("append", appends(IN("m", 14), " more") && says(IN("m", 14), "lower more") && says(IN("b", 14), "lower"));
    CHECK_IF("fchmod", fchmod(open(IN("m", 15), O_RDONLY), 0400) == 0 && (mode(IN("u", 15)) & 0777) == 0400);
    CHECK_IF("fsetxattr", fsetxattr(open(IN("m", 16), O_RDONLY), "user.x", "y", 1, 0) == 0 && attribute(IN("u", 16), "user.x", "y"));
    CHECK_IF("futimens", futimens(open(IN("m", 17), O_RDONLY), old) == 0 && exists(IN("u", 17)));
    CHECK_IF("fallocate", posix_fallocate(open(IN("m", 18), O_RDWR), 0, 10) == 0 && size(IN("m", 18)) == 10);
    CHECK_IF("symlink-chown", lchown("m/deep/er/link", 5, 6) == 0 && lstat("u/deep/er/link", &status) == 0 && status.st_uid == 5);
    CHECK_IF("symlink-target", readlink("u/deep/er/link", bytes, sizeof bytes) == 6 && memcmp(bytes, "target", 6) == 0);
    CHECK_IF("symlink-rename", rename("m/deep/er/link", "m/link") == 0 && readlink("m/link", bytes, sizeof bytes) == 6);
    CHECK_IF("fifo-open", close(open("m/deep/er/fifo", O_RDWR)) == 0 && !exists("u/deep/er/fifo"));
    CHECK_IF("fifo-chmod", chmod("m/deep/er/fifo", 0666) == 0 && S_ISFIFO(mode("u/deep/er/fifo")));
    CHECK_IF("directory-chmod", chmod("m/deep/er/directory", 0700) == 0 && (mode("u/deep/er/directory") & 0777) == 0700);

    CHECK_IF("big-read", is_big("m/deep/er/big") && !exists("u/deep/er/big"));
    CHECK_IF("big-copied", close(open("m/deep/er/big", O_RDWR)) == 0 && is_big("u/deep/er/big") && is_big("m/deep/er/big"));
    CHECK_IF("hole-copied", close(open("m/deep/er/hole", O_RDWR)) == 0 && size("u/deep/er/hole") == 1 << 20);
    int sought = open("m/deep/er/hole", O_RDONLY);
    CHECK_IF("hole-sought", lseek(sought, 0, SEEK_DATA) == 500000 / 4096 * 4096);

    CHECK_IF("removed-but-open", (reader = open(IN("m", 20), O_RDONLY)) >= 0 && unlink(IN("m", 20)) == 0);
    CHECK_IF("removed-read", pread(reader, bytes, 5, 0) == 5 && memcmp(bytes, "lower", 5) == 0);
    int temporary = open("m/deep/er", O_TMPFILE | O_RDWR, 0600);
    CHECK_IF("nameless", temporary >= 0 && write(temporary, "temporary", 9) == 9);
    CHECK_IF("nameless-links", fstat(temporary, &status) == 0 && status.st_nlink == 0);
    char own[64];
    snprintf(own, sizeof own, "/proc/self/fd/%d", temporary);
    CHECK_IF("nameless-named", linkat(AT_FDCWD, own, AT_FDCWD, "m/deep/named", AT_SYMLINK_FOLLOW) == 0 && says("u/deep/named", "temporary"));
    int first = open(IN("m", 21), O_RDONLY), second = open(IN("m", 21), O_RDWR);
    CHECK_IF("locks-are-the-files", flock(first, LOCK_EX) == 0 && fails(flock(second, LOCK_SH | LOCK_NB), EAGAIN));
    CHECK_IF("copied-under-lock", exists(IN("u", 21)));
    CHECK_IF("lease", fcntl(open(IN("m", 22), O_RDONLY), F_SETLEASE, F_RDLCK) == 0);
    CHECK_IF("lease-refused", fails(fcntl(second, F_SETLEASE, F_WRLCK), EAGAIN));
    syscall(SYS_close_range, 3, ~0U, 0);
    if (may)
        munmap(mapped, 4096), munmap(again, 4096), munmap(shared, 4096);
    CHECK_IF("unmounted", umount("m") == 0);
    CHECK_IF("mounted-again", overlay(PLAIN) == 0 && says("m/moved", "lower") && is_big("m/deep/er/big"));
    CHECK_IF("number-stayed", number(IN("m", 1)) == before);
    CHECK_IF("unmounted-again", umount("m") == 0);
    return 0;
}
