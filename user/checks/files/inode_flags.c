// The attributes of inodes that FS_IOC_SETFLAGS changes: append-only, immutable, nodump, noatime. Other attributes differ between file systems and are not printed.
#include "../check.h"
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#define GET_FLAGS _IOR('f', 1, long)
#define SET_FLAGS _IOW('f', 2, long)
enum { IMMUTABLE = 0x10, APPEND = 0x20, NODUMP = 0x40, NOATIME = 0x80, OURS = 0xf0 };

// The attributes in statx that go with them.
struct attributes {
    uint32_t mask, block_size;
    uint64_t attributes;
    uint32_t links, uid, gid;
    uint16_t mode, padding;
    uint64_t inode, size, blocks, mask_of_attributes;
    uint64_t rest[32];
};

static void show(const char *name, const char *path)
{
    int fd = open(path, O_RDONLY), flags = 0;
    REQUIRE(fd >= 0);
    long got = ioctl(fd, GET_FLAGS, &flags);
    struct attributes status;
    memset(&status, 0, sizeof status);
    REQUIRE(syscall(SYS_statx, AT_FDCWD, path, 0, 0x7ff, &status) == 0);
    close(fd);
    check_line("%s: %ld flags %x attributes %x of %x\n", name, got, flags & OURS, (unsigned)status.attributes & 0x70,
               (unsigned)status.mask_of_attributes & 0x70);
}

static int set(const char *path, int flags)
{
    int fd = open(path, O_RDONLY), old = 0;
    if (fd < 0)
        return -1;
    REQUIRE(ioctl(fd, GET_FLAGS, &old) == 0);
    flags |= old & ~OURS;
    int result = ioctl(fd, SET_FLAGS, &flags), error = errno;
    close(fd);
    errno = error;
    return result;
}

static void use_file(void)
{
    char byte = 'x';
    CHECK("open to write", open("d/file", O_WRONLY));
    CHECK("open to write and read", open("d/file", O_RDWR));
    CHECK("truncating open", open("d/file", O_RDONLY | O_TRUNC));
    int fd = open("d/file", O_WRONLY | O_APPEND);
    CHECK("open to append", fd >= 0 ? 0 : -1);
    if (fd >= 0) {
        CHECK("append", write(fd, &byte, 1));
        CHECK("stop appending", fcntl(fd, F_SETFL, 0));
        CHECK("write in it", pwrite(fd, &byte, 1, 0));
        CHECK("shorten", ftruncate(fd, 1));
        CHECK("allocate", fallocate(fd, 0, 0, 8192));
        CHECK("punch", fallocate(fd, 3, 0, 4096));
        CHECK_MAP("map", mmap(NULL, 4096, PROT_READ, MAP_SHARED, open("d/file", O_RDONLY), 0));
        close(fd);
    }
    fd = open("d/file", O_RDWR | O_APPEND);
    CHECK_MAP("map shared to write", mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    CHECK_MAP("map shared to read", mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0));
    CHECK_MAP("map privately", mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
    close(fd);
    CHECK("truncate", truncate("d/file", 0));
    CHECK("chmod", chmod("d/file", 0640));
    CHECK("chown", chown("d/file", 0, 0));
    struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
    CHECK("set times", utimensat(AT_FDCWD, "d/file", times, 0));
    CHECK("times to now", utimensat(AT_FDCWD, "d/file", NULL, 0));
    CHECK("set attribute", setxattr("d/file", "user.a", "b", 1, 0));
    CHECK("remove attribute", removexattr("d/file", "user.b"));
    CHECK("link", link("d/file", "d/link"));
    CHECK("rename", rename("d/file", "d/file2"));
    CHECK("rename over it", rename("other", "d/file"));
    CHECK("unlink", unlink("d/file"));
    CHECK("access", access("d/file", W_OK));
}

static void use_directory(void)
{
    int fd = open("d/new", O_WRONLY | O_CREAT, 0644);
    CHECK("create", fd >= 0 ? 0 : -1);
    close(fd);
    CHECK("mkdir", mkdir("d/sub", 0755));
    CHECK("symlink", symlink("x", "d/symlink"));
    CHECK("unlink in it", unlink("d/old"));
    CHECK("rename in it", rename("d/old", "d/older"));
    CHECK("rename into it", rename("other", "d/other"));
    CHECK("rename out of it", rename("d/old", "old"));
    CHECK("rmdir in it", rmdir("d/empty"));
    CHECK("chmod it", chmod("d", 0700));
    CHECK("rename it", rename("d", "e"));
    CHECK("remove it", rmdir("d"));
    CHECK("temporary file", open("d", O_TMPFILE | O_WRONLY, 0600) >= 0 ? 0 : -1);
}

static void make(void)
{
    REQUIRE(mkdir("d", 0755) == 0 && mkdir("d/empty", 0755) == 0);
    check_write_file("d/file", "text");
    check_write_file("d/old", "text");
    check_write_file("other", "text");
}

static void clean(void)
{
    set("d/file", 0);
    set("d", 0);
    REQUIRE(system("rm -rf d e old other") == 0);
}

int main(void)
{
    make();
    show("fresh file", "d/file");
    show("fresh directory", "d");
    CHECK("nodump", set("d/file", NODUMP));
    CHECK("noatime", set("d/file", NOATIME));
    CHECK("both", set("d/file", NODUMP | NOATIME));
    show("after", "d/file");
    CHECK("neither", set("d/file", 0));
    check_line("-- immutable file\n");
    int open_before = open("d/file", O_RDWR);
    CHECK("set", set("d/file", IMMUTABLE));
    show("now", "d/file");
    CHECK("fchmod what was open", fchmod(open_before, 0600));
    CHECK("allocate for it", fallocate(open_before, 0, 0, 8192));
    int source = open("other", O_RDONLY);
    CHECK("copy into it", syscall(SYS_copy_file_range, source, NULL, open_before, NULL, 4, 0));
    CHECK("copy into it what is too much", syscall(SYS_copy_file_range, source, NULL, open_before, NULL, -1L, 0));
    CHECK("copy nothing into it", syscall(SYS_copy_file_range, source, NULL, open_before, NULL, 0, 0));
    close(source);
    close(open_before);
    use_file();
    CHECK_CHILD("another user", {
        REQUIRE(setresuid(1000, 1000, 1000) == 0);
        CHECK("clear", set("d/file", 0));
    });
    clean();
    make();
    check_line("-- append-only file\n");
    CHECK("set", set("d/file", APPEND));
    show("now", "d/file");
    use_file();
    clean();
    make();
    check_line("-- immutable directory\n");
    CHECK("set", set("d", IMMUTABLE));
    show("now", "d");
    use_directory();
    clean();
    make();
    check_line("-- append-only directory\n");
    CHECK("set", set("d", APPEND));
    use_directory();
    clean();
    make();
    check_line("-- who may\n");
    REQUIRE(chown("d/file", 1000, 1000) == 0);
    CHECK_CHILD("owner", {
        REQUIRE(setresuid(1000, 1000, 1000) == 0);
        CHECK("owner's nodump", set("d/file", NODUMP));
        CHECK("owner's immutable", set("d/file", IMMUTABLE));
        CHECK("owner's append", set("d/file", APPEND | NODUMP));
        CHECK("another's nodump", set("d/old", NODUMP));
        CHECK("another's unchanged", set("d/old", 0));
    });
    show("owner's", "d/file");
    CHECK("directory's nodump and noatime", set("d", NODUMP | NOATIME));
    check_write_file("d/heir", "text");
    show("heir", "d/heir");
    REQUIRE(mkdir("d/empty/sub", 0755) == 0);
    REQUIRE(mkdir("d/sub", 0755) == 0);
    show("heir", "d/sub");
    show("no heir", "d/empty/sub");
    struct stat before;
    struct stat after;
    REQUIRE(stat("d/heir", &before) == 0);
    char byte;
    int heir = open("d/heir", O_RDONLY);
    check_sleep_ms(50);
    REQUIRE(read(heir, &byte, 1) == 1);
    REQUIRE(stat("d/heir", &after) == 0);
    CHECK_TRUE("not accessed", before.st_atim.tv_sec == after.st_atim.tv_sec && before.st_atim.tv_nsec == after.st_atim.tv_nsec);
    int flags;
    int pipes[2];
    REQUIRE(pipe(pipes) == 0);
    CHECK("of a pipe", ioctl(pipes[0], GET_FLAGS, &flags));
    CHECK("of a device", ioctl(open("/dev/null", O_RDONLY), GET_FLAGS, &flags));
    CHECK("bad pointer", ioctl(open("d", O_RDONLY), GET_FLAGS, BAD_POINTER));
    CHECK("set by a bad pointer", ioctl(open("d", O_RDONLY), SET_FLAGS, BAD_POINTER));
    clean();
    return 0;
}
