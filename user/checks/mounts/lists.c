// What mounts there are and what each is: listmount(2), statmount(2), and mounts beneath others (Linux 6.8). Who may not mount has nothing to compare.
#include "mount_calls.h"

struct request {
    uint32_t size, spare;
    uint64_t id, parameter;
};

struct status {
    uint32_t size, options;
    uint64_t mask;
    uint32_t major, minor;
    uint64_t magic;
    uint32_t flags, type;
    uint64_t id, parent;
    uint32_t old_id, old_parent;
    uint64_t attributes, propagation, group, master, from;
    uint32_t root, point;
    uint64_t unused[50];
    char strings[1024];
};

enum { BASIC = 1, MOUNT = 2, FROM = 4, ROOT = 8, POINT = 16, TYPE = 32 };
#define ALL_ROOTS UINT64_MAX

static long status_of(uint64_t id, uint64_t mask, struct status *status, size_t size)
{
    struct request request = { sizeof request, 0, id, mask };
    memset(status, 0, sizeof *status);
    return syscall(457, &request, status, size, 0);
}

static long list(uint64_t id, uint64_t last, uint64_t *ids, size_t count)
{
    struct request request = { sizeof request, 0, id, last };
    return syscall(458, &request, ids, count, 0);
}

// The number of the mount at a path, by STATX_MNT_ID_UNIQUE or STATX_MNT_ID; 0 if it is not told.
static uint64_t id_of(const char *path, unsigned mask)
{
    uint64_t status[32] = { 0 };
    if (syscall(SYS_statx, AT_FDCWD, path, 0, mask, status) != 0 || !((uint32_t)status[0] & mask))
        return 0;
    // stx_mnt_id is at 144.
    return status[18];
}

static int contains(const uint64_t *ids, long count, uint64_t id)
{
    for (long i = 0; i < count; i++)
        if (ids[i] == id)
            return 1;
    return 0;
}

static const char *end_of(const char *path, const char *from)
{
    const char *found = strstr(path, from);
    return found ? found : path;
}

static void statuses(uint64_t outer, uint64_t inner)
{
    struct status status;
    CHECK_MAY("unique", outer > UINT32_MAX / 2 && inner > outer);
    CHECK_MAY("old", id_of("a", 0x1000) != 0 && id_of("a", 0x1000) != outer);
    CHECK_MAY("status", status_of(inner, BASIC | MOUNT | FROM | ROOT | POINT | TYPE, &status, sizeof status));
    CHECK_MAY("mask", status.mask);
    CHECK_MAY("magic", status.magic);
    CHECK_MAY("id", status.id == inner && status.parent == outer);
    CHECK_MAY("old-id", status.old_id == id_of("a/in", 0x1000) && status.old_parent == id_of("a", 0x1000));
    CHECK_MAY("attributes", status.attributes);
    CHECK_MAY("propagation", status.propagation);
    CHECK_MAY("groups", status.group == 0 && status.master == 0 && status.from == 0);
    CHECK_STR("type", status.strings + status.type);
    CHECK_STR("root", status.strings + status.root);
    CHECK_STR("point", end_of(status.strings + status.point, "/base"));
    CHECK_MAY("size", status.size > 512 && status.size < 2048);
    CHECK_MAY("one", status_of(outer, TYPE, &status, sizeof status) ? -1 : (long)status.mask);
    CHECK_STR("one-type", status.strings + status.type);
    CHECK_MAY("none", status_of(outer, 0, &status, sizeof status) ? -1 : (long)status.mask);
    CHECK_MAY("none-size", status.size);
    CHECK_MAY("cut", status_of(outer, MOUNT, &status, 48) ? -1 : status.id == outer && status.attributes == 0);
    CHECK_MAY("no-room-for-strings", fails(status_of(outer, TYPE, &status, 512), EOVERFLOW));
    CHECK_MAY("little-room-for-strings", fails(status_of(outer, TYPE, &status, 514), EOVERFLOW));
    CHECK_MAY("absent", fails(status_of(outer + 100000, MOUNT, &status, sizeof status), ENOENT));
    CHECK_MAY("no-id", fails(status_of(5, MOUNT, &status, sizeof status), EINVAL));
    struct request request = { sizeof request, 0, outer, MOUNT };
    CHECK_MAY("flags", fails(syscall(457, &request, &status, sizeof status, 1), EINVAL));
    CHECK_MAY("bad-request", fails(syscall(457, BAD_POINTER, &status, sizeof status, 0), EFAULT));
    CHECK_MAY("bad-result", fails(syscall(457, &request, BAD_POINTER, 512, 0), EFAULT));
    request.size = 8;
    CHECK_MAY("small-request", fails(syscall(457, &request, &status, sizeof status, 0), EINVAL));
    request.size = 5000;
    CHECK_MAY("large-request", fails(syscall(457, &request, &status, sizeof status, 0), E2BIG));
    struct {
        struct request known;
        uint64_t more[2];
    } larger = { { sizeof larger, 0, outer, MOUNT }, { 0, 0 } };
    CHECK_MAY("larger-request", syscall(457, &larger, &status, sizeof status, 0));
    larger.more[1] = 1;
    CHECK_MAY("larger-with-more", fails(syscall(457, &larger, &status, sizeof status, 0), E2BIG));
    CHECK_MAY("shared", set_attributes("a/in", 0, ATTR_RDONLY | ATTR_NOEXEC, 0) || change("a/in", MS_SHARED) ? -1 : status_of(inner, MOUNT, &status, sizeof status));
    CHECK_MAY("shared-propagation", status.propagation);
    CHECK_MAY("shared-group", status.group != 0);
    CHECK_MAY("shared-attributes", status.attributes);
}

static void lists(uint64_t outer, uint64_t inner, uint64_t deep)
{
    static uint64_t ids[1024];
    CHECK_MAY("list", list(outer, 0, ids, 1024));
    CHECK_MAY("list-of", ids[0] == inner && ids[1] == deep);
    CHECK_MAY("list-part", list(outer, 0, ids, 1) == 1 && ids[0] == inner);
    CHECK_MAY("list-rest", list(outer, inner, ids, 1024) == 1 && ids[0] == deep);
    CHECK_MAY("list-nothing", list(deep, 0, ids, 1024));
    long count = list(ALL_ROOTS, 0, ids, 1024);
    CHECK_MAY("list-all", contains(ids, count, outer) && contains(ids, count, inner) && contains(ids, count, deep));
    int sorted = 1;
    for (long i = 1; i < count; i++)
        sorted &= ids[i - 1] < ids[i];
    CHECK_MAY("list-sorted", sorted);
    CHECK_MAY("list-absent", fails(list(outer + 100000, 0, ids, 1024), ENOENT));
    CHECK_MAY("list-no-id", fails(list(5, 0, ids, 1024), EINVAL));
    CHECK_MAY("list-bad-last", fails(list(outer, 5, ids, 1024), EINVAL));
    CHECK_MAY("list-too-many", fails(list(outer, 0, ids, 1000001), EOVERFLOW));
    CHECK_MAY("list-bad-result", fails(list(outer, 0, BAD_POINTER, 16), EFAULT));
    int tree = new_tree();
    CHECK_MAY("detached-not-listed", list(ALL_ROOTS, 0, ids, 1024) == count);
    close(tree);
    CHECK_CHILD("unprivileged", {
        struct status status;
        REQUIRE(chroot("b") == 0 && chdir("/") == 0 && setuid(1000) == 0);
        CHECK("unprivileged-status", status_of(outer, MOUNT, &status, sizeof status));
        CHECK("unprivileged-list", list(outer, 0, ids, 16));
        CHECK("unprivileged-all", list(ALL_ROOTS, 0, ids, 16));
    });
}

static void beneath(void)
{
    CHECK_MAY("beneath-made", new_mount("b") || make("b/top"));
    int tree = new_tree();
    CHECK_MAY("beneath-tree", mkdirat(tree, "below", 0755));
    CHECK_MAY("beneath-no-mount", fails(move_mount(tree, "", AT_FDCWD, "m", FROM_EMPTY | BENEATH), EINVAL));
    CHECK_MAY("beneath-root", fails(move_mount(tree, "", AT_FDCWD, "/", FROM_EMPTY | BENEATH), EINVAL));
    CHECK_MAY("beneath-and-group", fails(move_mount(tree, "", AT_FDCWD, "b", FROM_EMPTY | BENEATH | SET_GROUP), EINVAL));
    CHECK_MAY("beneath", move_mount(tree, "", AT_FDCWD, "b", FROM_EMPTY | BENEATH));
    close(tree);
    CHECK_MAY("beneath-shows-top", has("b/top") && !has("b/below"));
    CHECK_MAY("beneath-top-gone", umount("b") ? -1 : has("b/below") && !has("b/top"));
    CHECK_MAY("beneath-itself", fails(move_mount(AT_FDCWD, "b", AT_FDCWD, "b", BENEATH), EINVAL));
    CHECK_MAY("beneath-gone", umount("b"));
    // In mounts that hear of each other.
    CHECK_MAY("beneath-shared", new_mount("m") || change("m", MS_SHARED) || make("m/p") || make("n") || mount("m", "n", NULL, MS_BIND, NULL) || new_mount("m/p") || make("m/p/top"));
    tree = new_tree();
    CHECK_MAY("beneath-in-shared", mkdirat(tree, "below", 0755) || move_mount(tree, "", AT_FDCWD, "m/p", FROM_EMPTY | BENEATH));
    close(tree);
    CHECK_MAY("beneath-in-peer", has("n/p/top") && has("m/p/top"));
    CHECK_MAY("beneath-in-peer-below", umount("m/p") ? -1 : has("n/p/below") && has("m/p/below"));
    CHECK_MAY("beneath-shared-gone", umount2("m", MNT_DETACH) || umount2("n", MNT_DETACH));
}

int main(void)
{
    begin_in_own_mount();
    REQUIRE(make("a") == 0 && make("b") == 0 && make("m") == 0);
    if (!may)
        return 0;
    CHECK_MAY("made", new_mount("a") || make("a/in") || new_mount("a/in") || make("a/in/deep") || new_mount("a/in/deep"));
    uint64_t outer = id_of("a", 0x4000), inner = id_of("a/in", 0x4000), deep = id_of("a/in/deep", 0x4000);
    statuses(outer, inner);
    lists(outer, inner, deep);
    CHECK_MAY("gone", umount2("a", MNT_DETACH));
    beneath();
    end_own_mount();
    return 0;
}
