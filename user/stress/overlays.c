// Overlays: a file is copied to the upper layer once and at once, and a name that is replaced, exchanged or looked up is always there, with a whole file.
#include "stress.h"

#include <dirent.h>
#include <sys/mount.h>

// From linux/fs.h.
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

#define WORKERS 4
#define TURNS 40
#define FILES 8
#define BYTES 300000

static void fill(const char *name, int which)
{
    static char bytes[BYTES];
    memset(bytes, 'a' + which, BYTES);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    MUST(fd >= 0 && write(fd, bytes, BYTES) == BYTES);
    close(fd);
}

static int mount_overlay(void)
{
    MUST(mkdir("store", 0700) == 0);
    if (mount("none", "store", "tmpfs", 0, "size=32m,mode=700") != 0) {
        // Who may not mount has nothing to stress.
        MUST(rmdir("store") == 0);
        return 0;
    }
    static const char *const directories[] = { "store/l", "store/l/d", "store/u", "store/w", "store/m" };
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        MUST(mkdir(directories[i], 0700) == 0);
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "store/l/d/%d", i);
        fill(name, i);
    }
    MUST(mount("none", "store/m", "overlay", 0, "lowerdir=store/l,upperdir=store/u,workdir=store/w") == 0);
    return 1;
}

static void unmount_overlay(void)
{
    MUST(umount("store/m") == 0);
    MUST(umount("store") == 0);
    MUST(rmdir("store") == 0);
}

// All open the same files for writing, exchange them, and look whether each is one whole file.
static void copy_or_exchange(int index)
{
    for (int turn = 0; turn < TURNS; turn++) {
        char name[32], other[32], bytes[64];
        snprintf(name, sizeof name, "store/m/d/%d", any(FILES));
        snprintf(other, sizeof other, "store/m/d/%d", any(FILES));
        if (index == 0) {
            MUST(syscall(SYS_renameat2, AT_FDCWD, name, AT_FDCWD, other, RENAME_EXCHANGE) == 0);
            continue;
        }
        int fd = open(name, any(2) ? O_RDWR : O_RDONLY);
        MUST(fd >= 0);
        struct stat status;
        MUST(fstat(fd, &status) == 0);
        HOLDS(status.st_size == BYTES, "%s has %ld bytes", name, (long)status.st_size);
        char first = 0;
        for (int i = 0; i < 8; i++) {
            MUST(pread(fd, bytes, sizeof bytes, any(BYTES - sizeof bytes)) == sizeof bytes);
            first = first ? first : bytes[0];
            HOLDS(bytes[0] == first && bytes[sizeof bytes - 1] == first, "%s is a part of two files", name);
        }
        close(fd);
    }
    count(TURNS);
}

static void copies_round(void)
{
    if (!mount_overlay())
        return;
    processes(WORKERS, copy_or_exchange);
    int seen = 0;
    for (int i = 0; i < FILES; i++) {
        char name[32], byte = 0;
        snprintf(name, sizeof name, "store/m/d/%d", i);
        int fd = open(name, O_RDONLY);
        MUST(fd >= 0 && read(fd, &byte, 1) == 1);
        close(fd);
        seen |= 1 << (byte - 'a');
    }
    HOLDS(seen == (1 << FILES) - 1, "some files are there twice, and some not at all: %x", seen);
    unmount_overlay();
}

static int is_known(int error)
{
    return error == ENOENT || error == EEXIST || error == ENOTEMPTY || error == EINVAL || error == EBUSY || error == EISDIR ||
           error == ENOTDIR || error == EXDEV || error == EPERM;
}

// Makes, links, renames and removes a few names.
static void change_names(int index)
{
    (void)index;
    for (int turn = 0; turn < 3 * TURNS; turn++) {
        char name[32], other[32];
        snprintf(name, sizeof name, "store/m/%s%d", any(2) ? "d/" : "", any(FILES));
        snprintf(other, sizeof other, "store/m/%s%d", any(2) ? "d/" : "", any(FILES));
        int outcome = 0, fd;
        switch (any(7)) {
        case 0:
            outcome = unlink(name);
            break;
        case 1:
            outcome = rename(name, other);
            break;
        case 2:
            outcome = link(name, other);
            break;
        case 3:
            outcome = mkdir(name, 0700);
            break;
        case 4:
            outcome = rmdir(name);
            break;
        case 5:
            outcome = chmod(name, 0600);
            break;
        default:
            if ((outcome = fd = open(name, O_RDWR | (any(2) ? O_CREAT : 0), 0600)) >= 0)
                close(fd);
        }
        HOLDS(outcome >= 0 || is_known(errno), "%s, %s: %s", name, other, strerror(errno));
    }
    count(3 * TURNS);
}

// Each name that is listed is there, and each that is there is listed.
static void compare(const char *path)
{
    int listed = 0;
    DIR *directory = opendir(path);
    MUST(directory);
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_name[0] >= '0' && entry->d_name[0] < '0' + FILES)
            listed |= 1 << (entry->d_name[0] - '0');
    closedir(directory);
    for (int i = 0; i < FILES; i++) {
        char name[32];
        struct stat status;
        snprintf(name, sizeof name, "%s/%d", path, i);
        int is_there = lstat(name, &status) == 0;
        HOLDS(is_there == (listed >> i & 1), "%s is %s and %s", name, is_there ? "there" : "not there", is_there ? "not listed" : "listed");
    }
}

static void names_round(void)
{
    if (!mount_overlay())
        return;
    processes(WORKERS, change_names);
    compare("store/m");
    compare("store/m/d");
    unmount_overlay();
}

const struct family overlay_families[] = {
    { "overlay-copies", copies_round },
    { "overlay-names", names_round },
    { NULL, NULL },
};
