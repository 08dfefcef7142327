// Mounts that come, go and move while others open, remove and rename: a mount that is gone is not in use, one that is there can be reached. Who may not mount has nothing to compare.
#include "together.h"
#include <sys/mount.h>

#define ROUNDS 3000

static int may, opened, result, wrong;
static char outer[4096];

static int is_inside(int fd)
{
    struct stat file, outside;
    return fstat(fd, &file) == 0 && stat("outside", &outside) == 0 && file.st_dev != outside.st_dev;
}

static void mount_it(void)
{
    REQUIRE(mount("none", "m", "tmpfs", 0, "size=64k") == 0);
    check_write_file("m/file", "inside");
}

static void open_it(void)
{
    opened = open("m/file", O_RDONLY);
}

static void unmount_it(void)
{
    result = umount(outer);
}

// Either the file was opened and keeps the mount, or it was the one below.
static void end_opened(void)
{
    wrong += opened < 0 || (result == 0 && is_inside(opened)) || (result != 0 && !is_inside(opened));
    close(opened);
    if (result != 0)
        REQUIRE(umount("m") == 0);
}

static int entered;

static void enter_it(void)
{
    entered = chdir("m");
}

static void end_entered(void)
{
    // The directory below has this file.
    int is_below = access("below", F_OK) == 0;
    wrong += entered != 0 || (result == 0) != is_below;
    REQUIRE(chdir("..") == 0);
    if (result != 0)
        REQUIRE(umount("m") == 0);
}

static int removed;

static void make_point(void)
{
    REQUIRE(mkdir("point", 0755) == 0);
}

static void mount_on_point(void)
{
    result = mount("none", "point", "tmpfs", 0, "size=64k");
}

static void remove_point(void)
{
    removed = rmdir("point");
}

// What is mounted has a directory that it is mounted on.
static void end_point(void)
{
    wrong += (result == 0) == (removed == 0);
    if (result == 0 && removed != 0)
        REQUIRE(umount("point") == 0);
    rmdir("point");
}

static void make_points(void)
{
    REQUIRE(mkdir("point", 0755) == 0 && mkdir("other", 0755) == 0);
}

static void replace_point(void)
{
    removed = rename("other", "point");
}

static void end_replaced(void)
{
    wrong += result == 0 && umount("point") != 0;
    rmdir("point");
    rmdir("other");
}

static void mount_both(void)
{
    REQUIRE(mount("none", "a", "tmpfs", 0, "size=64k") == 0 && mkdir("a/in", 0755) == 0);
    REQUIRE(mount("none", "b", "tmpfs", 0, "size=64k") == 0 && mkdir("b/in", 0755) == 0);
}

static void move_to_second(void)
{
    opened = mount("a", "b/in", NULL, MS_MOVE, NULL);
}

static void move_to_first(void)
{
    result = mount("b", "a/in", NULL, MS_MOVE, NULL);
}

// One of the two is in the other, and both can be unmounted.
static void end_moved(void)
{
    wrong += (opened == 0) == (result == 0);
    if (opened == 0 && result != 0)
        wrong += umount("b/in") != 0 || umount("b") != 0;
    if (result == 0 && opened != 0)
        wrong += umount("a/in") != 0 || umount("a") != 0;
}

static void mount_outer(void)
{
    REQUIRE(mount("none", "m", "tmpfs", 0, "size=64k") == 0 && mkdir("m/in", 0755) == 0);
}

static void mount_inner(void)
{
    opened = mount("none", "m/in", "tmpfs", 0, "size=64k");
}

// A mount in another keeps that.
static void end_inner(void)
{
    wrong += (opened == 0) == (result == 0);
    if (opened == 0)
        umount("m/in");
    umount("m");
}

static int count_lines(const char *path)
{
    FILE *file = fopen(path, "r");
    int count = 0;
    for (int byte; file && (byte = fgetc(file)) != EOF;)
        count += byte == '\n';
    if (file)
        fclose(file);
    return count;
}

static void run(const char *name, void (*before)(void), void (*one)(void), void (*other)(void), void (*after)(void))
{
    wrong = 0;
    if (may)
        together(ROUNDS, before, one, other, after);
    CHECK(name, wrong);
}

int main(void)
{
    REQUIRE(mkdir("m", 0755) == 0 && mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0);
    check_write_file("outside", "");
    check_write_file("m/file", "below");
    check_write_file("m/below", "");
    REQUIRE(getcwd(outer, sizeof outer - 2) != NULL);
    strcat(outer, "/m");
    may = mount("none", "a", "tmpfs", 0, "size=64k") == 0 && umount("a") == 0;
    int before = count_lines("/proc/self/mounts");
    run("opened-in-what-is-unmounted", mount_it, open_it, unmount_it, end_opened);
    run("entered-what-is-unmounted", mount_it, enter_it, unmount_it, end_entered);
    run("mounted-on-what-is-removed", make_point, mount_on_point, remove_point, end_point);
    run("mounted-on-what-is-replaced", make_points, mount_on_point, replace_point, end_replaced);
    run("moved-into-each-other", mount_both, move_to_second, move_to_first, end_moved);
    run("mounted-in-what-is-unmounted", mount_outer, mount_inner, unmount_it, end_inner);
    if (may) {
        REQUIRE(mount("none", "a", "tmpfs", 0, "size=64k") == 0 && mkdir("a/in", 0755) == 0);
        wrong = mount("a", "a/in", NULL, MS_MOVE, NULL) == 0 || errno != ELOOP;
        wrong += mount("a", "outside", NULL, MS_MOVE, NULL) == 0 || errno != EINVAL;
        REQUIRE(umount("a") == 0);
    }
    CHECK("moved-into-itself", wrong);
    CHECK("mounts-left", count_lines("/proc/self/mounts") - before);
    return 0;
}
