// What the checks of access control lists share: setting one, and facts about it.
#ifndef EBB_CHECK_ACL_H
#define EBB_CHECK_ACL_H
#include "check.h"
#include <sys/xattr.h>

#define ACCESS "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"

enum { OWNER = 1, USER = 2, OWNING_GROUP = 4, GROUP = 8, MASK = 16, OTHER = 32 };

struct entry {
    unsigned short tag, permissions;
    unsigned id;
};

struct list {
    unsigned version;
    struct entry entries[40];
};

#define NONE 0xffffffffu
#define SET(path, kind, ...)                                                                                     \
    ({                                                                                                            \
        struct list list_ = {2, {__VA_ARGS__}};                                                                   \
        size_t count_ = sizeof((struct entry[]){__VA_ARGS__}) / sizeof(struct entry);                             \
        setxattr(path, kind, &list_, 4 + 8 * count_, 0);                                                          \
    })

// A list as text, such as u::rw-,u:1000:r--,g::r--,m::r--,o::---.
static inline const char *text_of(const char *path, const char *kind)
{
    static char text[1000];
    struct list list;
    ssize_t length = getxattr(path, kind, &list, sizeof list);
    if (length < 0)
        return errno == ENODATA ? "none" : errno == EOPNOTSUPP ? "not supported" : "other error";
    char *at = text;
    for (int i = 0; i < (length - 4) / 8; i++) {
        struct entry *entry = &list.entries[i];
        char tag = entry->tag < 4 ? 'u' : entry->tag < 16 ? 'g' : entry->tag == MASK ? 'm' : 'o';
        at += sprintf(at, "%s%c:%d:%o", i ? "," : "", tag, (int)entry->id, entry->permissions);
    }
    *at = 0;
    return text;
}

static inline void show(const char *name, const char *path)
{
    char text[1200], label[100];
    struct stat stat;
    REQUIRE(lstat(path, &stat) == 0);
    snprintf(text, sizeof text, "%o %s", stat.st_mode, text_of(path, ACCESS));
    check_line("%s: %s\n", name, text);
    if (S_ISDIR(stat.st_mode)) {
        snprintf(label, sizeof label, "%s-default", name);
        check_line("%s: %s\n", label, text_of(path, DEFAULT));
    }
}

// What somebody may do with a file, as access(2) says.
static inline void show_rights(const char *name, const char *path, uid_t user, gid_t group, gid_t other_group)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (setgroups(other_group ? 1 : 0, &other_group) || setgid(group) || setuid(user))
            _exit(100);
        int rights = 0;
        for (int want = 1; want < 8; want++)
            if (access(path, want) == 0)
                rights |= want;
        int fd = open(path, O_RDONLY);
        _exit(rights | (fd >= 0 ? 8 : 0));
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    check_line("%s: %d\n", name, WEXITSTATUS(status));
}

#endif
