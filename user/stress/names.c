// Names of files: what is replaced or exchanged is always there, links are counted, and directories that move are never lost.
#include "stress.h"

#include <dirent.h>

// From linux/fs.h.
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#endif

#define WORKERS 3
#define TURNS 60

static int is_known(int error)
{
    return error == ENOENT || error == EEXIST || error == ENOTEMPTY || error == EINVAL || error == EBUSY || error == EISDIR ||
           error == ENOTDIR;
}

static void make_file(const char *name, const char *text)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static atomic_int over;

// One replaces `target`, one exchanges `left` and `right`, the others look: each name is always there, with a whole file.
static void replace_or_look(int index)
{
    if (index == 0) {
        for (int i = 0; i < TURNS; i++) {
            make_file("new", "whole");
            MUST(rename("new", "target") == 0);
        }
        count(TURNS);
        atomic_fetch_add(&over, 1);
    } else if (index == 1) {
        for (int i = 0; i < TURNS; i++)
            MUST(syscall(SYS_renameat2, AT_FDCWD, "left", AT_FDCWD, "right", RENAME_EXCHANGE) == 0);
        count(TURNS);
        atomic_fetch_add(&over, 1);
    } else {
        while (over < 2) {
            static const char *const names[] = { "target", "left", "right" };
            const char *name = names[any(3)];
            char text[8] = "";
            int fd = open(name, O_RDONLY);
            HOLDS(fd >= 0, "%s is not there (%s)", name, strerror(errno));
            if (fd < 0)
                continue;
            HOLDS(read(fd, text, sizeof text) == 5, "%s is not whole", name);
            close(fd);
        }
    }
}

static void replace_round(void)
{
    over = 0;
    make_file("target", "whole");
    make_file("left", "lefts");
    make_file("right", "right");
    threads(4, replace_or_look);
    MUST(unlink("target") == 0 && unlink("left") == 0 && unlink("right") == 0);
}

#define NAMES 8

static void link_and_unlink(int index)
{
    (void)index;
    char from[16], to[16];
    for (int i = 0; i < TURNS; i++) {
        snprintf(from, sizeof from, "name-%u", any(NAMES));
        snprintf(to, sizeof to, "name-%u", any(NAMES));
        int result = 0, fd;
        switch (any(5)) {
        case 0:
            result = rename(from, to);
            break;
        case 1:
            result = link(from, to);
            break;
        case 2:
            result = unlink(from);
            break;
        case 3:
            result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
            break;
        default:
            result = fd = open(from, O_WRONLY | O_CREAT | O_EXCL, 0600);
            if (fd >= 0)
                close(fd);
        }
        HOLDS(result >= 0 || is_known(errno), "%s, %s: %s", from, to, strerror(errno));
    }
    count(TURNS);
}

// What readdir, stat and the count of links say is the same.
static void links_round(void)
{
    processes(WORKERS, link_and_unlink);
    ino_t inodes[NAMES];
    nlink_t links[NAMES];
    int there = 0, listed = 0;
    for (int i = 0; i < NAMES; i++) {
        char name[16];
        struct stat status;
        snprintf(name, sizeof name, "name-%d", i);
        if (stat(name, &status) == 0) {
            inodes[there] = status.st_ino;
            links[there++] = status.st_nlink;
        }
    }
    DIR *directory = opendir(".");
    MUST(directory);
    for (struct dirent *entry; (entry = readdir(directory));)
        listed += strncmp(entry->d_name, "name-", 5) == 0;
    closedir(directory);
    HOLDS(listed == there, "%d names are listed, %d are there", listed, there);
    for (int i = 0; i < there; i++) {
        nlink_t same = 0;
        for (int j = 0; j < there; j++)
            same += inodes[j] == inodes[i];
        HOLDS(same == links[i], "a file has %ld names and counts %ld", (long)same, (long)links[i]);
    }
    for (int i = 0; i < NAMES; i++) {
        char name[16];
        snprintf(name, sizeof name, "name-%d", i);
        unlink(name);
    }
}

#define DIRECTORIES 6

// Directories move into each other; none is lost and none becomes its own ancestor.
static void move_directories(int index)
{
    (void)index;
    char from[64], to[64];
    for (int i = 0; i < TURNS; i++) {
        uint32_t which = any(DIRECTORIES), above = any(DIRECTORIES);
        // It may be at the top or in any other.
        if (any(2))
            snprintf(from, sizeof from, "tree/%u", which), snprintf(to, sizeof to, "tree/%u/%u", above, which);
        else
            snprintf(from, sizeof from, "tree/%u/%u", above, which), snprintf(to, sizeof to, "tree/%u", which);
        HOLDS(rename(from, to) == 0 || is_known(errno), "%s to %s: %s", from, to, strerror(errno));
    }
    count(TURNS);
}

// Counts and removes the directories below.
static int remove_below(const char *path)
{
    int found = 0;
    for (int i = 0; i < DIRECTORIES; i++) {
        char below[256];
        if (snprintf(below, sizeof below, "%s/%d", path, i) >= (int)sizeof below)
            return found;
        if (access(below, F_OK) == 0) {
            found += 1 + remove_below(below);
            MUST(rmdir(below) == 0);
        }
    }
    return found;
}

static void directories_round(void)
{
    MUST(mkdir("tree", 0700) == 0);
    for (int i = 0; i < DIRECTORIES; i++) {
        char name[16];
        snprintf(name, sizeof name, "tree/%d", i);
        MUST(mkdir(name, 0700) == 0);
    }
    processes(WORKERS, move_directories);
    struct stat status;
    MUST(stat("tree", &status) == 0);
    int at_top = 0;
    for (int i = 0; i < DIRECTORIES; i++) {
        char name[16];
        snprintf(name, sizeof name, "tree/%d", i);
        at_top += access(name, F_OK) == 0;
    }
    HOLDS((int)status.st_nlink == 2 + at_top, "a directory with %d others counts %ld links", at_top, (long)status.st_nlink);
    int found = remove_below("tree");
    HOLDS(found == DIRECTORIES, "%d of %d directories are left", found, DIRECTORIES);
    MUST(rmdir("tree") == 0);
}

const struct family name_families[] = {
    { "replaced-names", replace_round },
    { "links", links_round },
    { "directories", directories_round },
    { NULL, NULL },
};
