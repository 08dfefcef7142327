// Files as disks: loop(4). Who may not use them has nothing to compare.
#include "mount_calls.h"
#include <sys/ioctl.h>

enum {
    SET_FILE = 0x4C00, CLEAR_FILE, SET_STATUS, GET_STATUS, SET_STATUS64, GET_STATUS64, CHANGE_FILE, SET_CAPACITY, SET_DIRECT, SET_BLOCK, CONFIGURE,
    CONTROL_ADD = 0x4C80, CONTROL_REMOVE, CONTROL_FREE, SIZE64 = (int)0x80081272, SIZE_OF_BLOCK = 0x1268, SET_READ_ONLY = 0x125d, IS_READ_ONLY,
    SET_READ_AHEAD = 0x1262, GET_READ_AHEAD,
};

struct info {
    uint64_t device, inode, raw_device, offset, limit;
    uint32_t number, encryption, key_size, flags;
    char name[64], crypt_name[64], key[32];
    uint64_t init[2];
};

struct old_info {
    int number;
    unsigned long device, inode, raw_device;
    int offset, encryption, key_size, flags;
    char name[64];
    unsigned char key[32];
    unsigned long init[2];
    char reserved[4];
};

struct configuration {
    uint32_t fd, block;
    struct info info;
    uint64_t reserved[8];
};

static char path[64];

static long size_of(int fd)
{
    uint64_t size = 0;
    return ioctl(fd, SIZE64, &size) == 0 ? (long)size : -1;
}

static int file_of(const char *name, size_t size, char first)
{
    int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0644);
    if (ftruncate(fd, (off_t)size) != 0 || pwrite(fd, &first, 1, 0) != 1)
        return -1;
    return fd;
}

static char byte_at(int fd, off_t offset)
{
    char byte = '?';
    return pread(fd, &byte, 1, offset) == 1 ? byte : '!';
}

// Has nothing of the device in the page cache, so that it is read from the file.
static int forget(int fd)
{
    return ioctl(fd, 0x1261, 0);
}

static int open_free(int control, int flags)
{
    int number = ioctl(control, CONTROL_FREE);
    snprintf(path, sizeof path, "/dev/loop%d", number);
    return open(path, flags);
}

static void unbound(int control)
{
    struct info info = { 0 };
    int device = open_free(control, O_RDWR);
    CHECK_TRUE("unbound-opened", device >= 0);
    CHECK("unbound-size", size_of(device));
    CHECK("unbound-read", read(device, &info, 512));
    CHECK("unbound-status", ioctl(device, GET_STATUS64, &info));
    CHECK("unbound-set-status", ioctl(device, SET_STATUS64, &info));
    CHECK("unbound-clear", ioctl(device, CLEAR_FILE, 0));
    CHECK("unbound-capacity", ioctl(device, SET_CAPACITY, 0));
    CHECK("unbound-change", ioctl(device, CHANGE_FILE, 0));
    CHECK("bind-no-file", ioctl(device, SET_FILE, 999));
    CHECK("bind-pipe", (pipe((int[2]){ 0 }), ioctl(device, SET_FILE, open("/dev/null", O_RDWR))));
    CHECK("bind-directory", ioctl(device, SET_FILE, open("/", O_RDONLY)));
    close(device);
}

static void bound(int control)
{
    struct info info = { 0 };
    int file = file_of("image", 64 << 10, 'a');
    int device = open_free(control, O_RDWR);
    CHECK("bind", ioctl(device, SET_FILE, file));
    CHECK("bind-twice", ioctl(device, SET_FILE, file));
    CHECK("size", size_of(device));
    CHECK_TRUE("first", byte_at(device, 0) == 'a');
    CHECK("status", ioctl(device, GET_STATUS64, &info));
    struct stat status;
    fstat(file, &status);
    CHECK_TRUE("status-file", info.inode == status.st_ino);
    CHECK("status-flags", info.flags);
    CHECK("status-offset", info.offset == 0 && info.limit == 0);
    CHECK("write", pwrite(device, "hello", 5, 8192));
    CHECK("synced", fsync(device));
    CHECK_TRUE("is-in-file", byte_at(file, 8192) == 'h' && byte_at(file, 8196) == 'o');
    CHECK("behind-end", pwrite(device, "x", 1, 64 << 10));
    info = (struct info){ .offset = 4096, .limit = 8192, .flags = 0 };
    strcpy(info.name, "called so");
    CHECK("move", ioctl(device, SET_STATUS64, &info));
    CHECK("moved-size", size_of(device));
    CHECK_TRUE("moved-content", byte_at(device, 4096) == 'h');
    CHECK("moved-write", pwrite(device, "M", 1, 0) == 1 && fsync(device) == 0);
    CHECK_TRUE("moved-in-file", byte_at(file, 4096) == 'M');
    memset(&info, 0, sizeof info);
    CHECK("moved-status", ioctl(device, GET_STATUS64, &info));
    CHECK("moved-offset", info.offset == 4096 && info.limit == 8192);
    CHECK_STR("moved-name", info.name);
    info.limit = 0;
    CHECK("unlimited", ioctl(device, SET_STATUS64, &info));
    CHECK("unlimited-size", size_of(device));
    CHECK("grown", ftruncate(file, 128 << 10));
    CHECK("not-seen", size_of(device));
    CHECK("capacity", ioctl(device, SET_CAPACITY, 0));
    CHECK("seen", size_of(device));
    info.encryption = 18;
    CHECK("encrypted", ioctl(device, SET_STATUS64, &info));
    CHECK("bad-block", ioctl(device, SET_BLOCK, 100));
    CHECK("block", ioctl(device, SET_BLOCK, 4096));
    int block = 0;
    CHECK("block-is", ioctl(device, SIZE_OF_BLOCK, &block) == 0 ? block : -1);
    CHECK("bad-status-address", ioctl(device, GET_STATUS64, BAD_POINTER));
    CHECK("unknown", ioctl(device, 0x4C0F, 0));
    CHECK("no-longer-named", unlink("image"));
    close(file);
    CHECK_TRUE("file-stays", forget(device) == 0 && byte_at(device, 0) == 'M');
    CHECK("clear", ioctl(device, CLEAR_FILE, 0));
    close(device);
    device = open(path, O_RDONLY);
    CHECK("cleared", ioctl(device, GET_STATUS64, &info));
    CHECK("cleared-size", size_of(device));
    close(device);
}

static void configured(int control)
{
    struct info info = { 0 };
    int file = file_of("image", 64 << 10, 'c');
    int device = open_free(control, O_RDWR);
    struct configuration configuration = { .fd = (uint32_t)file, .block = 1024, .info = { .offset = 512, .flags = 1 | 4 } };
    configuration.block = 1000;
    CHECK("configure-bad-block", ioctl(device, CONFIGURE, &configuration));
    configuration.block = 1024;
    configuration.info.flags = 0x100;
    CHECK("configure-bad-flags", ioctl(device, CONFIGURE, &configuration));
    configuration.info.flags = 1 | 4;
    CHECK("configure", ioctl(device, CONFIGURE, &configuration));
    CHECK("configured-size", size_of(device));
    CHECK("configured-status", ioctl(device, GET_STATUS64, &info) == 0 ? (long)info.flags : -1);
    int is_read_only = 0, block = 0;
    CHECK("configured-read-only", ioctl(device, IS_READ_ONLY, &is_read_only) == 0 ? is_read_only : -1);
    CHECK("configured-block", ioctl(device, SIZE_OF_BLOCK, &block) == 0 ? block : -1);
    int other = file_of("other", 64 << 10, 'c'), small = file_of("small", 4096, 's');
    pwrite(other, "O", 1, 512);
    CHECK("change-to-smaller", ioctl(device, CHANGE_FILE, small));
    CHECK("change", ioctl(device, CHANGE_FILE, other));
    CHECK_TRUE("changed", forget(device) == 0 && byte_at(device, 0) == 'O');
    close(other);
    close(small);
    close(file);
    CHECK("removed-while-used", ioctl(control, CONTROL_REMOVE, (int)info.number));
    close(device);
    // It is let go of with its last user.
    device = open(path, O_RDWR);
    CHECK("cleared-by-itself", ioctl(device, GET_STATUS64, &info));
    file = open("image", O_RDONLY);
    CHECK("read-only-file", ioctl(device, SET_FILE, file));
    CHECK("read-only-flags", ioctl(device, GET_STATUS64, &info) == 0 ? (long)info.flags : -1);
    CHECK("read-only-write", pwrite(device, "x", 1, 0) == 1 ? -2 : errno == EPERM);
    CHECK("read-only-clear", ioctl(device, CLEAR_FILE, 0));
    close(file);
    close(device);
}

// What /sys/block has of the device.
static const char *in_sysfs(const char *name)
{
    static char text[256];
    char file[128];
    snprintf(file, sizeof file, "/sys/block/%s/%s", strrchr(path, '/') + 1, name);
    int fd = open(file, O_RDONLY);
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length < 0 ? 0 : length] = 0;
    text[strcspn(text, "\n")] = 0;
    return text;
}

static void told(int control)
{
    struct info info = { .offset = 4096, .limit = 32 << 10, .flags = 4 };
    char name[256];
    int file = file_of("image", 64 << 10, 't'), device = open_free(control, O_RDWR), value = 0;
    struct stat status;
    CHECK_STR("told-size-unbound", in_sysfs("size"));
    CHECK("told-bind", ioctl(device, SET_FILE, file));
    CHECK_STR("told-size", in_sysfs("size"));
    CHECK_STR("told-writable", in_sysfs("ro"));
    CHECK("told-move", ioctl(device, SET_STATUS64, &info));
    CHECK_STR("told-size-moved", in_sysfs("size"));
    CHECK_STR("told-offset", in_sysfs("loop/offset"));
    CHECK_STR("told-limit", in_sysfs("loop/sizelimit"));
    CHECK_STR("told-autoclear", in_sysfs("loop/autoclear"));
    CHECK_STR("told-partscan", in_sysfs("loop/partscan"));
    CHECK_TRUE("told-file", getcwd(name, sizeof name - 8) && strcmp(strcat(name, "/image"), in_sysfs("loop/backing_file")) == 0);
    CHECK("keep-from-writing", ioctl(device, SET_READ_ONLY, &(int){ 1 }));
    CHECK("is-kept", ioctl(device, IS_READ_ONLY, &value) == 0 ? value : -1);
    CHECK_STR("told-kept", in_sysfs("ro"));
    CHECK("write-kept", pwrite(device, "x", 1, 0));
    CHECK("write-again", ioctl(device, SET_READ_ONLY, &(int){ 0 }) == 0 ? pwrite(device, "x", 1, 0) : -1);
    long ahead = 0;
    CHECK("set-read-ahead", ioctl(device, SET_READ_AHEAD, 512L));
    CHECK("read-ahead", ioctl(device, GET_READ_AHEAD, &ahead) == 0 ? ahead : -1);
    CHECK_STR("told-read-ahead", in_sysfs("queue/read_ahead_kb"));
    CHECK("no-read-ahead", ioctl(device, SET_READ_AHEAD, 0L) == 0 && forget(device) == 0 && byte_at(device, 0) == 'x');
    CHECK("restore-read-ahead", ioctl(device, SET_READ_AHEAD, 256L));
    CHECK("bad-address", ioctl(device, SET_READ_ONLY, BAD_POINTER));
    // struct statx: the mask first; the alignment for O_DIRECT at byte 156.
    uint32_t told[64] = { 0 };
    CHECK("direct", syscall(SYS_statx, AT_FDCWD, path, 0, 0x2000, told));
    CHECK("direct-told", told[0] & 0x2000);
    CHECK("direct-alignment", told[39]);
    CHECK("direct-not-asked", syscall(SYS_statx, AT_FDCWD, path, 0, 0x7ff, told));
    struct old_info old;
    memset(&old, 0xee, sizeof old);
    CHECK("old-status", ioctl(device, GET_STATUS, &old));
    CHECK_TRUE("old-inode", fstat(file, &status) == 0 && old.inode == status.st_ino);
    CHECK("old-offset", old.offset);
    CHECK("old-flags", old.flags);
    old.offset = 512;
    old.flags = 8;
    strcpy(old.name, "an older name");
    CHECK("old-move", ioctl(device, SET_STATUS, &old));
    CHECK("old-moved", ioctl(device, GET_STATUS64, &info) == 0 ? (long)info.offset : -1);
    CHECK("old-scans", info.flags & 8);
    CHECK_STR("old-name", info.name);
    CHECK_STR("told-scans", in_sysfs("loop/partscan"));
    // Who alone has it open has it bound to nothing from then on.
    CHECK("gave-up", ioctl(device, CLEAR_FILE, 0));
    CHECK("status-after", ioctl(device, GET_STATUS64, &info));
    CHECK("clear-after", ioctl(device, CLEAR_FILE, 0));
    CHECK("capacity-after", ioctl(device, SET_CAPACITY, 0));
    close(device);
    close(file);
}

static int has_only(int file, off_t from, char own)
{
    static char bytes[64 << 10];
    if (pread(file, bytes, sizeof bytes, from) != sizeof bytes)
        return 0;
    for (size_t at = 0; at < sizeof bytes; at++)
        if (bytes[at] != own && bytes[at] != 'w')
            return 0;
    return 1;
}

// The device shows one half of a file and then the other, while halves of its pages are written: what it has read of one half never comes to be in the other.
static void moved_while_written(int control)
{
    struct info info = { .limit = 64 << 10 };
    int file = file_of("image", 128 << 10, 'f'), page[1024];
    for (int at = 0; at < 32; at++)
        pwrite(file, memset(page, at < 16 ? 'f' : 's', 4096), 4096, at * 4096);
    int device = open_free(control, O_RDWR);
    CHECK("moving-bind", ioctl(device, SET_FILE, file));
    CHECK("moving-begin", ioctl(device, SET_STATUS64, &info));
    pid_t writers[3];
    for (int nth = 0; nth < 3; nth++)
        if ((writers[nth] = fork()) == 0)
            for (int turn = 0;; turn++)
                if (pwrite(device, memset(page, 'w', 2048), 2048, (turn * 3 + nth) % 16 * 4096) < 0)
                    _exit(1);
    int bad = 0;
    for (int turn = 0; turn < 500; turn++) {
        info.offset = turn % 2 ? 0 : 64 << 10;
        if (ioctl(device, SET_STATUS64, &info) != 0)
            bad += errno != EAGAIN;
    }
    int status, ended_by_kill = 0;
    for (int nth = 0; nth < 3; nth++) {
        kill(writers[nth], SIGKILL);
        ended_by_kill += waitpid(writers[nth], &status, 0) == writers[nth] && WIFSIGNALED(status);
    }
    CHECK("moving-writers", ended_by_kill);
    CHECK("moving-refused", bad);
    CHECK("moving-synced", fsync(device));
    // Linux no longer looks, since 5.9, whether anything is left in the page cache of what the device showed before.
    CHECK_TRUE("first-half", !is_ebb() || has_only(file, 0, 'f'));
    CHECK_TRUE("second-half", !is_ebb() || has_only(file, 64 << 10, 's'));
    CHECK("moving-clear", ioctl(device, CLEAR_FILE, 0));
    close(device);
    close(file);
}

int main(void)
{
    begin_in_own_mount();
    may = may && mount("none", ".", "tmpfs", 0, "size=4m") == 0 && chdir("../base") == 0;
    int control = open("/dev/loop-control", O_RDWR);
    if (!may || control < 0)
        return 0;
    CHECK("unknown-request", ioctl(control, 0x4C8F, 0));
    CHECK("add-twice", (close(open_free(control, O_RDONLY)), ioctl(control, CONTROL_ADD, ioctl(control, CONTROL_FREE))));
    CHECK("remove-negative", ioctl(control, CONTROL_REMOVE, -1));
    CHECK("remove-absent", ioctl(control, CONTROL_REMOVE, 200));
    unbound(control);
    bound(control);
    configured(control);
    told(control);
    moved_while_written(control);
    close(control);
    REQUIRE(chdir("..") == 0 && umount2("base", MNT_DETACH) == 0 && umount2("base", MNT_DETACH) == 0);
    return 0;
}
