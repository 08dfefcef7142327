// What the checks of overlays share: a tree of layers in a tmpfs of their own, and facts about them. Who may not mount has nothing to compare.
#ifndef EBB_CHECK_OVERLAY_H
#define EBB_CHECK_OVERLAY_H
#include "../check.h"
#include <dirent.h>
#include <sys/mount.h>
#include <sys/xattr.h>

static int may;

#define CHECK_IF(name, condition) CHECK_TRUE(name, !may || (condition))

static inline int fails(long result, int error)
{
    return result == -1 && errno == error;
}

static inline int overlay(const char *options)
{
    return mount("overlay", "m", "overlay", 0, options);
}

// A tmpfs at `t`, which becomes the working directory, with the lower layers `a` (above) and `b`, the upper layer `u`, the work directory `w` and the mount
// point `m`.
static inline void layers(void)
{
    REQUIRE(mkdir("t", 0755) == 0);
    may = mount("none", "t", "tmpfs", 0, "size=64m,mode=755") == 0;
    REQUIRE(chdir("t") == 0);
    const char *directories[] = { "a", "b", "u", "w", "m" };
    for (int i = 0; i < 5; i++)
        REQUIRE(mkdir(directories[i], 0755) == 0);
}

#define PLAIN "lowerdir=a:b,upperdir=u,workdir=w"

// Mounts the layers that there are; nothing is compared where that is not allowed.
static inline void mount_layers(const char *options)
{
    may = may && overlay(options) == 0;
    CHECK_TRUE("mounted", 1);
}

static inline int exists(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

static inline int is_whiteout(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == 0;
}

static inline int says(const char *path, const char *text)
{
    return strcmp(check_read_file(path), text) == 0;
}

static inline int appends(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_APPEND);
    int done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    return fd >= 0 && close(fd) == 0 && done;
}

static int compare_names(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

// The names in a directory, in order, with a space between them.
static inline const char *names(const char *path)
{
    static char text[4096];
    char *all[256];
    int count = 0;
    DIR *directory = opendir(path);
    if (!directory)
        return check_errno_name(errno);
    struct dirent *entry;
    while ((entry = readdir(directory)) && count < 256)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            all[count++] = strdup(entry->d_name);
    closedir(directory);
    qsort(all, count, sizeof *all, compare_names);
    text[0] = 0;
    for (int i = 0; i < count; i++) {
        if (i > 0)
            strcat(text, " ");
        strcat(text, all[i]);
        free(all[i]);
    }
    return text;
}

static inline int has(const char *path, const char *list)
{
    return strcmp(names(path), list) == 0;
}

static inline int attribute(const char *path, const char *name, const char *value)
{
    char bytes[256];
    ssize_t got = lgetxattr(path, name, bytes, sizeof bytes);
    return got == (ssize_t)strlen(value) && memcmp(bytes, value, got) == 0;
}

static inline ino_t number(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 ? status.st_ino : 0;
}

static inline dev_t device(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 ? status.st_dev : 0;
}

static inline mode_t mode(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 ? status.st_mode : 0;
}

static inline nlink_t links(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 ? status.st_nlink : 0;
}

static inline off_t size(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 ? status.st_size : -1;
}
#endif
