// The mount calls that came with Linux 5.2 to 6.8, which the C library may not have.
#ifndef EBB_MOUNT_CALLS_H
#define EBB_MOUNT_CALLS_H
#include "../check.h"
#include <sys/mount.h>

static int may;

// A fact that only those can see who may mount.
#define CHECK_MAY(name, expr)                                         \
    do {                                                              \
        errno = 0;                                                    \
        long may_value = may ? (long)(expr) : 0;                      \
        check_result(name, may_value, errno);                         \
    } while (0)

enum {
    TREE_CLONE = 1, TREE_CLOEXEC = 02000000, PATH_EMPTY = 0x1000, PATH_RECURSIVE = 0x8000,
    FROM_SYMLINKS = 1, FROM_EMPTY = 4, TO_SYMLINKS = 0x10, TO_EMPTY = 0x40, SET_GROUP = 0x100, BENEATH = 0x200,
    SET_FLAG = 0, SET_STRING = 1, SET_BINARY = 2, SET_PATH = 3, SET_PATH_EMPTY = 4, SET_FD = 5, CMD_CREATE = 6, CMD_RECONFIGURE = 7,
    ATTR_RDONLY = 1, ATTR_NOSUID = 2, ATTR_NODEV = 4, ATTR_NOEXEC = 8, ATTR_ATIME = 0x70, ATTR_NOATIME = 0x10, ATTR_STRICTATIME = 0x20,
    ATTR_NODIRATIME = 0x80, ATTR_IDMAP = 0x100000, ATTR_NOSYMFOLLOW = 0x200000,
};

struct attributes {
    uint64_t set, clear, propagation, user_namespace;
};

static inline int fails(long result, int error)
{
    return result == -1 && errno == error ? 1 : result == -1 ? -errno : -9999;
}

static inline int open_tree(int directory, const char *path, unsigned flags)
{
    return (int)syscall(428, directory, path, flags);
}

static inline int move_mount(int from_directory, const char *from, int to_directory, const char *to, unsigned flags)
{
    return (int)syscall(429, from_directory, from, to_directory, to, flags);
}

static inline int fsopen(const char *type, unsigned flags)
{
    return (int)syscall(430, type, flags);
}

static inline int fsconfig(int fd, unsigned command, const char *key, const void *value, int aux)
{
    return (int)syscall(431, fd, command, key, value, aux);
}

static inline int fsmount(int fd, unsigned flags, unsigned attributes)
{
    return (int)syscall(432, fd, flags, attributes);
}

static inline int fspick(int directory, const char *path, unsigned flags)
{
    return (int)syscall(433, directory, path, flags);
}

static inline int mount_setattr(int directory, const char *path, unsigned flags, const void *attributes, size_t size)
{
    return (int)syscall(442, directory, path, flags, attributes, size);
}

static inline int set_attributes(const char *path, unsigned flags, uint64_t set, uint64_t clear)
{
    struct attributes attributes = { .set = set, .clear = clear };
    return mount_setattr(AT_FDCWD, path, flags, &attributes, sizeof attributes);
}

static inline int change(const char *path, unsigned long flags)
{
    return mount(NULL, path, NULL, flags, NULL);
}

static inline int new_mount(const char *path)
{
    return mount("none", path, "tmpfs", 0, "size=64k");
}

static inline int make(const char *path)
{
    return mkdir(path, 0755);
}

static inline int has(const char *path)
{
    return access(path, F_OK) == 0;
}

static inline int has_at(int directory, const char *path)
{
    return faccessat(directory, path, F_OK, 0) == 0;
}

// A tmpfs that is mounted nowhere.
static inline int new_tree(void)
{
    int context = fsopen("tmpfs", 0);
    if (context < 0 || fsconfig(context, SET_STRING, "size", "64k", 0) != 0 || fsconfig(context, CMD_CREATE, NULL, NULL, 0) != 0)
        return -1;
    int tree = fsmount(context, 0, 0);
    close(context);
    return tree;
}

// All of a check is in a mount that nobody hears of, whatever the working directory's is.
static inline void begin_in_own_mount(void)
{
    REQUIRE(make("base") == 0);
    may = new_mount("base") == 0 && change("base", MS_PRIVATE) == 0 && chdir("base") == 0;
}

static inline void end_own_mount(void)
{
    if (may)
        REQUIRE(chdir("..") == 0 && umount2("base", MNT_DETACH) == 0);
}
#endif
