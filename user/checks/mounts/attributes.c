// What mounts allow, of one or of a tree: mount_setattr(2). Who may not mount has nothing to compare.
#include "mount_calls.h"
#include <sys/statfs.h>

static unsigned long flags_of(const char *path)
{
    struct statfs status;
    return statfs(path, &status) == 0 ? status.f_flags & ~0x20UL : 0xffff;
}

// The optional fields of a mount, without the numbers of groups.
static const char *propagation(const char *suffix)
{
    static char found[256];
    char line[1024], point[512], fields[256];
    strcpy(found, "absent");
    FILE *list = fopen("/proc/self/mountinfo", "r");
    while (list && fgets(line, sizeof line, list)) {
        if (sscanf(line, "%*d %*d %*s %*s %511s %*s %255[^-]", point, fields) != 2 || !strstr(point, suffix))
            continue;
        char *to = found;
        for (char *from = fields; *from; from++)
            if (*from != ' ' && (*from < '0' || *from > '9'))
                *to++ = *from;
        *to = 0;
    }
    if (list)
        fclose(list);
    return found;
}

static int raw(unsigned flags, uint64_t set, uint64_t clear, uint64_t kind, uint64_t user_namespace)
{
    struct attributes attributes = { set, clear, kind, user_namespace };
    return mount_setattr(AT_FDCWD, "a", flags, &attributes, sizeof attributes);
}

int main(void)
{
    begin_in_own_mount();
    REQUIRE(make("a") == 0);
    if (!may)
        return 0;
    CHECK_MAY("made", new_mount("a") || make("a/in") || new_mount("a/in") || make("a/plain"));
    struct attributes attributes = { .set = ATTR_NOSUID };
    struct {
        struct attributes known;
        uint64_t more;
    } large = { .known = { .set = ATTR_NOSUID } };
    CHECK_MAY("bad-flags", fails(raw(2, ATTR_NOSUID, 0, 0, 0), EINVAL));
    CHECK_MAY("too-small", fails(mount_setattr(AT_FDCWD, "a", 0, &attributes, 31), EINVAL));
    CHECK_MAY("too-large", fails(mount_setattr(AT_FDCWD, "a", 0, &attributes, 4097), E2BIG));
    CHECK_MAY("larger-with-zeros", mount_setattr(AT_FDCWD, "a", 0, &large, sizeof large));
    large.more = 1;
    CHECK_MAY("larger-with-more", fails(mount_setattr(AT_FDCWD, "a", 0, &large, sizeof large), E2BIG));
    CHECK_MAY("bad-pointer", fails(mount_setattr(AT_FDCWD, "a", 0, BAD_POINTER, sizeof attributes), EFAULT));
    CHECK_MAY("nothing-anywhere", (attributes.set = 0, mount_setattr(AT_FDCWD, "absent", 0, &attributes, sizeof attributes)));
    CHECK_MAY("absent", (attributes.set = ATTR_NOSUID, fails(mount_setattr(AT_FDCWD, "absent", 0, &attributes, sizeof attributes), ENOENT)));
    CHECK_MAY("no-mount", fails(set_attributes("a/plain", 0, ATTR_NOSUID, 0), EINVAL));
    CHECK_MAY("unknown-set", fails(raw(0, 0x400000, 0, 0, 0), EINVAL));
    CHECK_MAY("unknown-clear", fails(raw(0, 0, 0x400000, 0, 0), EINVAL));
    CHECK_MAY("unknown-high", fails(raw(0, 1ULL << 40, 0, 0, 0), EINVAL));
    CHECK_MAY("times-not-cleared", fails(raw(0, ATTR_NOATIME, 0, 0, 0), EINVAL));
    CHECK_MAY("times-half-cleared", fails(raw(0, ATTR_NOATIME, ATTR_NOATIME, 0, 0), EINVAL));
    CHECK_MAY("times-two", fails(raw(0, ATTR_NOATIME | ATTR_STRICTATIME, ATTR_ATIME, 0, 0), EINVAL));
    CHECK_MAY("two-types", fails(raw(0, 0, 0, MS_SHARED | MS_PRIVATE, 0), EINVAL));
    CHECK_MAY("unknown-type", fails(raw(0, 0, 0, MS_REC, 0), EINVAL));
    CHECK_MAY("map-cleared", fails(raw(0, 0, ATTR_IDMAP, 0, 0), EINVAL));
    CHECK_MAY("map-no-descriptor", fails(raw(0, ATTR_IDMAP, 0, 0, 999), EBADF));
    CHECK_MAY("map-negative", fails(raw(0, ATTR_IDMAP, 0, 0, (uint64_t)-1), EINVAL));
    CHECK_MAY("map-other-file", fails(raw(0, ATTR_IDMAP, 0, 0, (uint64_t)open("a", O_RDONLY)), EINVAL));
    syscall(SYS_close_range, 3, ~0U, 0);
    CHECK_MAY("nothing-changed", flags_of("a"));

    CHECK_MAY("set", set_attributes("a", 0, ATTR_NODEV | ATTR_NOEXEC, ATTR_NOSUID));
    CHECK_MAY("set-flags", flags_of("a"));
    CHECK_MAY("inner-not", flags_of("a/in"));
    CHECK_MAY("set-and-clear", set_attributes("a", 0, ATTR_NOSUID, ATTR_NOSUID | ATTR_NOEXEC) ? -1 : (long)flags_of("a"));
    CHECK_MAY("all", set_attributes("a", PATH_RECURSIVE, ATTR_NOSYMFOLLOW | ATTR_NODIRATIME, 0));
    CHECK_MAY("all-flags", flags_of("a"));
    CHECK_MAY("all-inner-flags", flags_of("a/in"));
    CHECK_MAY("times-none", set_attributes("a", PATH_RECURSIVE, ATTR_NOATIME, ATTR_ATIME) ? -1 : (long)flags_of("a/in"));
    CHECK_MAY("times-strict", set_attributes("a", PATH_RECURSIVE, ATTR_STRICTATIME, ATTR_ATIME) ? -1 : (long)flags_of("a/in"));
    CHECK_MAY("times-relative", set_attributes("a", PATH_RECURSIVE, 0, ATTR_ATIME | ATTR_NODIRATIME) ? -1 : (long)flags_of("a/in"));
    CHECK_MAY("cleared", set_attributes("a", PATH_RECURSIVE, 0, ATTR_NOSUID | ATTR_NODEV | ATTR_NOSYMFOLLOW) ? -1 : (long)flags_of("a"));

    int writer = open("a/in/f", O_CREAT | O_WRONLY, 0600);
    CHECK_MAY("read-only-while-written", fails(set_attributes("a", PATH_RECURSIVE, ATTR_RDONLY | ATTR_NOSUID, 0), EBUSY));
    CHECK_MAY("none-changed", flags_of("a") == flags_of("a/in") ? (long)flags_of("a") : -1);
    CHECK_MAY("still-written", make("a/more"));
    close(writer);
    CHECK_MAY("read-only", set_attributes("a", PATH_RECURSIVE, ATTR_RDONLY, 0));
    CHECK_MAY("read-only-outer", fails(make("a/x"), EROFS));
    CHECK_MAY("read-only-inner", fails(make("a/in/x"), EROFS));
    CHECK_MAY("writable", set_attributes("a", PATH_RECURSIVE, 0, ATTR_RDONLY) || make("a/x") || make("a/in/x"));
    CHECK_MAY("shared", raw(PATH_RECURSIVE, 0, 0, MS_SHARED, 0));
    CHECK_STR("shared-outer", propagation("base/a"));
    CHECK_STR("shared-inner", propagation("base/a/in"));
    CHECK_MAY("slave-alone", raw(0, 0, 0, MS_SLAVE, 0));
    CHECK_STR("slave-outer", propagation("/base/a "));
    CHECK_MAY("unbindable", raw(PATH_RECURSIVE, ATTR_NOSUID, 0, MS_UNBINDABLE, 0));
    CHECK_STR("unbindable-inner", propagation("base/a/in"));
    CHECK_MAY("private", raw(PATH_RECURSIVE, 0, ATTR_NOSUID, MS_PRIVATE, 0));
    CHECK_STR("private-inner", propagation("base/a/in"));

    // Of a tree that is nowhere.
    int tree = open_tree(AT_FDCWD, "a", TREE_CLONE | PATH_RECURSIVE);
    attributes = (struct attributes){ .set = ATTR_RDONLY };
    CHECK_MAY("tree", mount_setattr(tree, "", PATH_EMPTY | PATH_RECURSIVE, &attributes, sizeof attributes));
    CHECK_MAY("tree-outer", fails(mkdirat(tree, "y", 0755), EROFS));
    CHECK_MAY("tree-inner", fails(mkdirat(tree, "in/y", 0755), EROFS));
    CHECK_MAY("others-not", make("a/in/y"));
    CHECK_MAY("without-empty", fails(mount_setattr(tree, "", 0, &attributes, sizeof attributes), ENOENT));
    close(tree);
    CHECK_CHILD("unprivileged", {
        REQUIRE(setuid(1000) == 0);
        CHECK("unprivileged-set", set_attributes("/", 0, ATTR_NOSUID, 0));
        CHECK("unprivileged-too-small", mount_setattr(AT_FDCWD, "/", 0, &attributes, 1));
        CHECK("unprivileged-nothing", set_attributes("/", 0, 0, 0));
    });
    CHECK_MAY("gone", umount2("a", MNT_DETACH));
    end_own_mount();
    return 0;
}
