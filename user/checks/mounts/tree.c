// Mounts in trees: recursive binds, moves, propagation between peers and slaves, pivot_root, and how trees are unmounted. Who may not mount has nothing to compare.
#include "../check.h"
#include <sched.h>
#include <sys/mount.h>

static int may;

#define CHECK_MAY(name, expr)                                         \
    do {                                                              \
        errno = 0;                                                    \
        long may_value = may ? (long)(expr) : 0;                      \
        check_result(name, may_value, errno);                         \
    } while (0)

static int fails(long result, int error)
{
    return result == -1 && errno == error ? 1 : result == -1 ? -errno : -9999;
}

static int new_mount(const char *path)
{
    return mount("none", path, "tmpfs", 0, "size=64k");
}

static int make(const char *path)
{
    return mkdir(path, 0755);
}

static int has(const char *path)
{
    return access(path, F_OK) == 0;
}

static int change(const char *path, unsigned long flags)
{
    return mount(NULL, path, NULL, flags, NULL);
}

// The optional fields of the last mount whose point ends so, with `S` for shared, `M` for slave, `U` for unbindable; whether its peers have the same number as those of `other`.
static const char *fields(const char *end, int *shared, int *master)
{
    static char found[8];
    static char line[8192];
    FILE *file = fopen("/proc/self/mountinfo", "r");
    strcpy(found, "none");
    while (file && fgets(line, sizeof line, file)) {
        char point[4096];
        int after = 0;
        if (sscanf(line, "%*d %*d %*s %*s %4095s %*s%n", point, &after) != 1 || after == 0)
            continue;
        size_t len = strlen(point), wanted = strlen(end);
        if (len < wanted || strcmp(point + len - wanted, end) != 0)
            continue;
        char *fields = line + after;
        *strstr(fields, " - ") = 0;
        found[0] = 0;
        char *is_shared = strstr(fields, "shared:"), *is_slave = strstr(fields, "master:");
        if (shared)
            *shared = is_shared ? atoi(is_shared + 7) : 0;
        if (master)
            *master = is_slave ? atoi(is_slave + 7) : 0;
        strcat(strcat(strcat(found, is_shared ? "S" : ""), is_slave ? "M" : ""), strstr(fields, "unbindable") ? "U" : "");
    }
    if (file)
        fclose(file);
    return found;
}

#define CHECK_FIELDS(name, end) check_line("%s: %s\n", name, may ? fields(end, NULL, NULL) : "")

static void recursive_binds(void)
{
    CHECK_MAY("bind-made", make("a") || make("b") || new_mount("a") || make("a/in") || make("a/other") || new_mount("a/in") ||
                               make("a/in/deep") || new_mount("a/in/deep") || make("a/in/deep/end") || new_mount("a/other"));
    CHECK_MAY("bind-plain", mount("a", "b", NULL, MS_BIND, NULL));
    CHECK_MAY("bind-plain-is-empty", has("b/in/deep"));
    CHECK_MAY("bind-plain-gone", umount("b"));
    CHECK_MAY("bind-recursive", mount("a", "b", NULL, MS_BIND | MS_REC, NULL));
    CHECK_MAY("bind-recursive-deep", has("b/in/deep/end"));
    CHECK_MAY("bind-busy", umount("b"));
    CHECK_MAY("bind-detached", umount2("b", MNT_DETACH));
    CHECK_MAY("bind-detached-is-gone", has("b/in"));
    CHECK_MAY("bind-below", mount("a/in", "b", NULL, MS_BIND | MS_REC, NULL));
    CHECK_MAY("bind-below-deep", has("b/deep/end"));
    CHECK_MAY("bind-below-detached", umount2("b", MNT_DETACH));
    CHECK_MAY("bind-into-itself", mount("a", "a/in", NULL, MS_BIND | MS_REC, NULL));
    CHECK_MAY("bind-into-itself-shows", has("a/in/in/deep/end"));
    CHECK_MAY("bind-into-itself-gone", umount2("a/in", MNT_DETACH));
    CHECK_MAY("unbindable", change("a/in", MS_UNBINDABLE));
    CHECK_FIELDS("unbindable-fields", "/a/in");
    CHECK_MAY("unbindable-source", mount("a/in", "b", NULL, MS_BIND, NULL));
    CHECK_MAY("unbindable-left-out", mount("a", "b", NULL, MS_BIND | MS_REC, NULL));
    CHECK_MAY("unbindable-is-left-out", has("b/in/deep"));
    CHECK_MAY("unbindable-detached", umount2("b", MNT_DETACH));
    CHECK_MAY("bind-no-source", mount("", "b", NULL, MS_BIND, NULL));
    CHECK_MAY("bind-null-source", mount(NULL, "b", NULL, MS_BIND, NULL));
    CHECK_MAY("bind-absent-source", mount("none", "b", NULL, MS_BIND, NULL));
    CHECK_MAY("bind-writes", (check_write_file("a/file", "x"), check_write_file("file", "y"), 0));
    CHECK_MAY("bind-file-on-directory", mount("file", "b", NULL, MS_BIND, NULL));
    CHECK_MAY("bind-directory-on-file", mount("b", "file", NULL, MS_BIND, NULL));
    CHECK_MAY("bind-file", mount("file", "a/file", NULL, MS_BIND, NULL));
    CHECK_MAY("bind-file-shows", may && strcmp(check_read_file("a/file"), "y") == 0);
    CHECK_MAY("bind-file-removed", unlink("a/file"));
    CHECK_MAY("bind-file-gone", umount("a/file"));
    CHECK_MAY("all-detached", umount2("a", MNT_DETACH));
    CHECK_MAY("all-gone", has("a/in"));
    CHECK_MAY("not-mounted", umount("a"));
    unlink("file");
}

static void types(void)
{
    CHECK_MAY("types-made", new_mount("a"));
    CHECK_FIELDS("private", "/a");
    CHECK_MAY("two-types", change("a", MS_SHARED | MS_PRIVATE));
    CHECK_MAY("with-other-flags", change("a", MS_SHARED | MS_RDONLY));
    CHECK_MAY("no-mount-point", (make("a/d"), change("a/d", MS_SHARED)));
    CHECK_MAY("silent", change("a", MS_SHARED | MS_SILENT));
    CHECK_FIELDS("shared", "/a");
    CHECK_MAY("bound", mount("a", "b", NULL, MS_BIND, NULL));
    int first = 1, second = 2, master = 0;
    if (may)
        fields("/a", &first, NULL), fields("/b", &second, NULL);
    CHECK_MAY("same-group", first == second);
    CHECK_MAY("slave", change("b", MS_SLAVE));
    CHECK_FIELDS("slave-fields", "/b");
    if (may)
        fields("/b", NULL, &master);
    CHECK_MAY("master-is-group", master == first);
    CHECK_MAY("slave-shared", change("b", MS_SHARED));
    CHECK_FIELDS("slave-shared-fields", "/b");
    CHECK_MAY("slave-of-alone", change("b", MS_SLAVE));
    CHECK_FIELDS("slave-of-alone-fields", "/b");
    if (may)
        fields("/b", NULL, &master);
    CHECK_MAY("old-master", master == first);
    CHECK_MAY("unbindable-slave", change("b", MS_UNBINDABLE));
    CHECK_FIELDS("unbindable-slave-fields", "/b");
    CHECK_MAY("shared-is-bindable", change("b", MS_SHARED));
    CHECK_FIELDS("shared-is-bindable-fields", "/b");
    CHECK_MAY("alone-made-slave", change("b", MS_SLAVE));
    CHECK_FIELDS("alone-made-slave-fields", "/b");
    CHECK_MAY("types-gone", umount("b") || umount("a"));
}

static void peers(void)
{
    CHECK_MAY("peers-made", new_mount("a") || change("a", MS_SHARED) || make("a/p") || mount("a", "b", NULL, MS_BIND, NULL) || make("c") ||
                                mount("a", "c", NULL, MS_BIND, NULL) || change("c", MS_SLAVE));
    CHECK_MAY("mounted-in-peer", new_mount("a/p") || make("a/p/new"));
    CHECK_MAY("peer-has-it", has("b/p/new"));
    CHECK_MAY("slave-has-it", has("c/p/new"));
    CHECK_FIELDS("peer-fields", "/b/p");
    CHECK_FIELDS("slave-copy-fields", "/c/p");
    CHECK_MAY("unmounted-in-peer", umount("b/p"));
    CHECK_MAY("gone-in-peer", has("a/p/new") + has("b/p/new") + has("c/p/new"));
    CHECK_MAY("mounted-in-slave", new_mount("c/p") || make("c/p/own"));
    CHECK_MAY("peers-have-it-not", has("a/p/own") + has("b/p/own"));
    CHECK_MAY("mounted-under-slaves", new_mount("a/p") || make("a/p/new"));
    CHECK_MAY("slave-shows-its-own", has("c/p/own"));
    CHECK_MAY("slaves-own-gone", umount("c/p"));
    CHECK_MAY("slave-shows-what-was-under", has("c/p/new"));
    CHECK_MAY("busy-elsewhere", may ? (chdir("b/p"), fails(umount("../../a/p"), EBUSY)) : 1);
    CHECK_MAY("left", chdir("../.."));
    CHECK_MAY("unmounted-again", umount("a/p"));
    CHECK_MAY("gone-in-all", has("a/p/new") + has("b/p/new") + has("c/p/new"));
    CHECK_MAY("tree-made", make("d") || new_mount("d") || make("d/e") || new_mount("d/e") || make("d/e/end"));
    CHECK_MAY("moved-to-peer", mount("d", "a/p", NULL, MS_MOVE, NULL));
    CHECK_MAY("moved-is-everywhere", has("a/p/e/end") + has("b/p/e/end") + has("c/p/e/end"));
    CHECK_FIELDS("moved-fields", "/a/p/e");
    CHECK_MAY("moved-from-shared", may ? fails(mount("a/p", "d", NULL, MS_MOVE, NULL), EINVAL) : 1);
    CHECK_MAY("tree-detached", umount2("a/p", MNT_DETACH));
    CHECK_MAY("tree-gone-everywhere", has("a/p/e") + has("b/p/e") + has("c/p/e"));
    CHECK_MAY("subtree-bound", make("f") || make("a/p/sub") || make("a/q") || mount("a/p", "f", NULL, MS_BIND, NULL));
    CHECK_MAY("outside-subtree", new_mount("a/q") || make("a/q/new"));
    CHECK_MAY("subtree-in", new_mount("a/p/sub") || make("a/p/sub/new"));
    CHECK_MAY("subtree-shows", has("f/sub/new"));
    CHECK_MAY("unbindable-to-shared", new_mount("d") || change("d", MS_UNBINDABLE));
    CHECK_MAY("unbindable-not-moved", may ? fails(mount("d", "a/p", NULL, MS_MOVE, NULL), EINVAL) : 1);
    CHECK_MAY("unbindable-gone", umount("d"));
    CHECK_MAY("peers-private", change("b", MS_PRIVATE | MS_REC) || new_mount("a/p/sub") || make("a/p/sub/again"));
    CHECK_MAY("private-has-it-not", has("b/p/sub/again"));
    CHECK_MAY("slave-of-remaining", has("c/p/sub/again"));
    CHECK_MAY("all-of-it-gone", umount2("a", MNT_DETACH) || umount2("b", MNT_DETACH) || umount2("f", MNT_DETACH));
    CHECK_FIELDS("slave-of-nobody", "/c");
    CHECK_MAY("last-gone", umount2("c", MNT_DETACH));
}

static void one_mount(void)
{
    CHECK_MAY("one-made", new_mount("a") || mount("a", "b", NULL, MS_BIND, NULL));
    CHECK_MAY("one-read-only", mount(NULL, "b", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL));
    CHECK_MAY("one-other-writes", make("a/new"));
    CHECK_MAY("one-does-not", may ? fails(make("b/other"), EROFS) : 1);
    CHECK_MAY("one-files", (check_write_file("a/program", "x"), chmod("a/program", 0755) || mknod("a/null", S_IFCHR | 0666, 1 << 8 | 3)));
    CHECK_MAY("one-no-exec", may ? fails(execl("b/program", "program", NULL), EACCES) : 1);
    CHECK_MAY("one-no-exec-access", may ? fails(access("b/program", X_OK), EACCES) : 1);
    CHECK_MAY("one-other-exec", may ? fails(execl("a/program", "program", NULL), ENOEXEC) : 1);
    CHECK_MAY("one-no-device", mount(NULL, "b", NULL, MS_REMOUNT | MS_BIND | MS_NODEV, NULL));
    CHECK_MAY("one-no-device-open", may ? fails(open("b/null", O_RDONLY), EACCES) : 1);
    CHECK_MAY("one-other-device", may && open("a/null", O_RDONLY) < 0);
    CHECK_MAY("one-device-closed", syscall(SYS_close_range, 3, ~0U, 0));
    CHECK_MAY("one-no-device-exec", may ? fails(execl("b/program", "program", NULL), ENOEXEC) : 1);
    CHECK_MAY("one-write-again", mount(NULL, "b", NULL, MS_REMOUNT | MS_BIND, NULL) || make("b/other"));
    CHECK_MAY("one-gone", umount("a") || umount("b"));
    CHECK_MAY("through-link", new_mount("a") || symlink("a", "link"));
    CHECK_MAY("through-link-not", may ? fails(umount2("link", UMOUNT_NOFOLLOW), EINVAL) : 1);
    CHECK_MAY("through-link-gone", umount2("link", 0));
    CHECK_MAY("expire-with-inner", new_mount("a") || make("a/in") || new_mount("a/in"));
    CHECK_MAY("expire-busy", may ? fails(umount2("a", MNT_EXPIRE), EBUSY) : 1);
    CHECK_MAY("expire-gone", umount2("a", MNT_DETACH));
}

static int pivot(const char *new_root, const char *put_old)
{
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static void pivots(void)
{
    CHECK_MAY("pivot-made", new_mount("a") || make("a/new") || make("a/plain") || new_mount("a/new") || make("a/new/old") || make("a/new/is-new") ||
                                make("a/is-old"));
    CHECK_CHILD("pivot", {
        if (may)
            REQUIRE(chroot("a") == 0 && chdir("/") == 0);
        CHECK_MAY("pivot-same", may ? fails(pivot("/", "/"), EBUSY) : 1);
        CHECK_MAY("pivot-put-old-on-root", may ? fails(pivot("/new", "/plain"), EBUSY) : 1);
        CHECK_MAY("pivot-no-mount", may ? fails(pivot("/plain", "/plain"), EBUSY) : 1);
        CHECK_MAY("pivot-below-mount", may ? fails(pivot("/new/old", "/new/old"), EINVAL) : 1);
        CHECK_MAY("pivot-absent", may ? fails(pivot("/absent", "/new/old"), ENOENT) : 1);
        CHECK_MAY("pivot-absent-old", may ? fails(pivot("/new", "/new/absent"), ENOENT) : 1);
        CHECK_MAY("pivot-file", may ? (check_write_file("/new/file", ""), fails(pivot("/new", "/new/file"), ENOTDIR)) : 1);
        CHECK_MAY("pivot-bad", may ? fails(pivot(NULL, "/new/old"), EFAULT) : 1);
        CHECK_MAY("pivot-shared", change("/new", MS_SHARED));
        CHECK_MAY("pivot-into-shared", may ? fails(pivot("/new", "/new/old"), EINVAL) : 1);
        CHECK_MAY("pivot-private", change("/new", MS_PRIVATE));
        CHECK_MAY("pivot", pivot("/new", "/new/old"));
        CHECK_MAY("pivot-is-new", has("/is-new"));
        CHECK_MAY("pivot-working-is-new", has("is-new"));
        CHECK_MAY("pivot-old-is-there", has("/old/is-old"));
        CHECK_MAY("pivot-old-gone", umount2("/old", MNT_DETACH));
        CHECK_MAY("pivot-old-is-gone", has("/old/is-old"));
        CHECK_MAY("again-made", make("/second") || new_mount("/second") || make("/second/is-second"));
        CHECK_MAY("again-entered", chdir("/second"));
        CHECK_MAY("again-dots", pivot(".", "."));
        CHECK_MAY("again-detached", umount2(".", MNT_DETACH));
        CHECK_MAY("again-is-second", has("/is-second"));
        CHECK_CHILD("unprivileged", {
            REQUIRE(setuid(1000) == 0);
            CHECK("pivot-unprivileged", syscall(SYS_pivot_root, "/", "/"));
        });
    });
    umount2("a", MNT_DETACH);
}

// Many mounts on one directory, each on the root of the one before.
static void stacks(void)
{
    enum { DEEP = 300 };
    char name[16];
    int made = 0, right = 1;
    make("stack");
    make("stack/bottom");
    for (; may && made < DEEP && new_mount("stack") == 0; made++) {
        snprintf(name, sizeof name, "stack/%d", made);
        make(name);
    }
    CHECK_MAY("stacked", made);
    CHECK_MAY("stack-top", has("stack/299") && !has("stack/298") && !has("stack/bottom"));
    CHECK_MAY("stack-up", has("stack/../stack/299/../../stack/299"));
    for (; may && made > DEEP / 2; made--) {
        snprintf(name, sizeof name, "stack/%d", made - 1);
        right &= has(name) && umount2("stack", 0) == 0;
    }
    CHECK_MAY("stack-taken-off", right);
    CHECK_MAY("stack-moved", make("elsewhere") || mount("stack", "elsewhere", NULL, MS_MOVE, NULL));
    CHECK_MAY("stack-is-elsewhere", has("elsewhere/149") && has("stack/148"));
    CHECK_MAY("stack-beside", mount("elsewhere", "stack", NULL, MS_BIND, NULL));
    CHECK_MAY("stack-beside-is-top", has("stack/149"));
    for (made = 0; may && umount2("stack", MNT_DETACH) == 0; made++)
        ;
    CHECK_MAY("stack-all-off", made);
    CHECK_MAY("stack-bottom", has("stack/bottom"));
    umount2("elsewhere", 0);
}

int main(void)
{
    REQUIRE(make("base") == 0);
    // All of it is in a mount that nobody hears of, whatever the working directory's is.
    may = new_mount("base") == 0 && change("base", MS_PRIVATE) == 0 && chdir("base") == 0;
    recursive_binds();
    types();
    peers();
    one_mount();
    pivots();
    stacks();
    if (may)
        REQUIRE(chdir("..") == 0 && umount2("base", MNT_DETACH) == 0);
    return 0;
}
