// Mounts: while some are mounted, moved, copied, made read-only and unmounted, a walk through others finds what is there, and in the end nothing is left.
#include "stress.h"

#include <sys/mount.h>

#define WORKERS 4
#define TURNS 60
#define PLACES 4

// linux/mount.h, which not every C library has.
struct attributes {
    uint64_t set, clear, propagation, user_namespace;
};

static int begin(void)
{
    MUST(mkdir("trees", 0700) == 0);
    if (mount("none", "trees", "tmpfs", 0, "size=4m,mode=700") != 0) {
        // Who may not mount has nothing to stress.
        MUST(rmdir("trees") == 0);
        return 0;
    }
    MUST(mount(NULL, "trees", NULL, MS_PRIVATE, NULL) == 0);
    static const char *const directories[] = { "trees/0", "trees/1", "trees/2", "trees/3", "trees/stays", "trees/stays/in" };
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        MUST(mkdir(directories[i], 0700) == 0);
    MUST(mount("none", "trees/stays/in", "tmpfs", 0, "size=64k") == 0);
    MUST(mkdir("trees/stays/in/deep", 0700) == 0);
    MUST(any(2) || mount(NULL, "trees/stays/in", NULL, MS_SHARED, NULL) == 0);
    return 1;
}

// Nothing that was mounted below is left.
static void end(void)
{
    MUST(umount2("trees", MNT_DETACH) == 0);
    MUST(rmdir("trees") == 0);
    char line[1024], here[512], wanted[600];
    MUST(getcwd(here, sizeof here));
    snprintf(wanted, sizeof wanted, "%s/trees", here);
    FILE *list = fopen("/proc/self/mounts", "r");
    MUST(list);
    while (fgets(line, sizeof line, list))
        HOLDS(!strstr(line, wanted), "it is mounted still: %s", line);
    fclose(list);
}

static int is_known(int error)
{
    return error == ENOENT || error == EBUSY || error == EINVAL || error == ELOOP || error == EROFS || error == ENOSPC || error == EAGAIN;
}

static void change_one(void)
{
    char place[32], other[32];
    snprintf(place, sizeof place, "trees/%d", any(PLACES));
    snprintf(other, sizeof other, "trees/%d", any(PLACES));
    struct attributes attributes = { .set = any(2) ? 1 : 2, .clear = 0 };
    long outcome = 0, tree;
    switch (any(8)) {
    case 0:
        outcome = mount("none", place, "tmpfs", 0, "size=16k");
        break;
    case 1:
        outcome = umount(place);
        break;
    case 2:
        outcome = umount2(place, MNT_DETACH);
        break;
    case 3:
        outcome = mount(place, other, NULL, MS_MOVE, NULL);
        break;
    case 4:
        outcome = mount("trees/stays", place, NULL, MS_BIND | MS_REC, NULL);
        break;
    case 5:
        // A copy, that goes somewhere or nowhere.
        outcome = tree = syscall(428, AT_FDCWD, any(2) ? "trees/stays" : place, 1 | 0x8000);
        if (tree >= 0) {
            if (any(2))
                outcome = syscall(429, tree, "", AT_FDCWD, other, 4);
            close((int)tree);
        }
        break;
    case 6:
        if (any(2)) {
            attributes.clear = attributes.set;
            attributes.set = 0;
        }
        outcome = syscall(442, AT_FDCWD, place, 0x8000, &attributes, sizeof attributes);
        break;
    default:
        outcome = mount(NULL, place, NULL, (any(2) ? MS_SHARED : any(2) ? MS_SLAVE : MS_PRIVATE) | MS_REC, NULL);
    }
    HOLDS(outcome >= 0 || is_known(errno), "%s, %s: %s", place, other, strerror(errno));
}

static void walk_one(void)
{
    char name[64];
    int fd = open("trees/stays/in/deep", O_RDONLY);
    HOLDS(fd >= 0, "what nobody touches: %s", strerror(errno));
    close(fd);
    HOLDS(access("trees/stays/in/deep/../../../stays/in", F_OK) == 0, "up and down again: %s", strerror(errno));
    snprintf(name, sizeof name, "trees/%d/in/deep/new", any(PLACES));
    HOLDS(mkdir(name, 0700) == 0 || errno == EEXIST || is_known(errno), "%s: %s", name, strerror(errno));
    fd = open("trees/0/in/deep", O_PATH);
    if (fd >= 0) {
        // It is what it was opened as, wherever its mount is by now.
        HOLDS(faccessat(fd, "../deep", F_OK, 0) == 0, "from within: %s", strerror(errno));
        close(fd);
    }
}

static void work(int index)
{
    for (int turn = 0; turn < TURNS; turn++) {
        if (index % 2)
            walk_one();
        else
            change_one();
    }
    count(TURNS);
}

static void trees_round(void)
{
    if (!begin())
        return;
    processes(WORKERS, work);
    end();
}

const struct family mount_families[] = {
    { "mounts", trees_round },
    { NULL, NULL },
};
