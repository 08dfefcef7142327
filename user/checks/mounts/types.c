// Types of file systems by their numbers, sysfs(2); how full one is by its device, ustat(2); and what mount(2) says of types and places.
#include "mount_calls.h"

struct room {
    int blocks;
    unsigned long inodes;
    char name[6], pack[6];
};

static void types(void)
{
    char name[64] = "";
    long number = syscall(SYS_sysfs, 1, "proc"), count = syscall(SYS_sysfs, 3);
    CHECK_TRUE("number", number >= 0 && number < count);
    CHECK("name", syscall(SYS_sysfs, 2, number, name));
    CHECK_STR("its-name", name);
    CHECK("unknown-name", syscall(SYS_sysfs, 1, "no-such-type"));
    CHECK("bad-name", syscall(SYS_sysfs, 1, BAD_POINTER));
    CHECK("number-too-large", syscall(SYS_sysfs, 2, count, name));
    CHECK("bad-buffer", syscall(SYS_sysfs, 2, number, BAD_POINTER));
    CHECK("unknown-option", syscall(SYS_sysfs, 4));
}

static void room(void)
{
    struct stat status;
    struct room room;
    memset(&room, 'x', sizeof room);
    CHECK("directory", stat("/proc", &status));
    CHECK("room", syscall(SYS_ustat, (unsigned)status.st_dev, &room));
    CHECK_TRUE("no-name", room.name[0] == 0 && room.pack[0] == 0);
    CHECK("room-bad-buffer", syscall(SYS_ustat, (unsigned)status.st_dev, BAD_POINTER));
    CHECK("no-such-device", syscall(SYS_ustat, ~0u, &room));
}

static void places(void)
{
    CHECK_MAY("no-type", fails(mount("none", "m", NULL, 0, NULL), EINVAL));
    CHECK_MAY("no-device", fails(mount(NULL, "m", "ext4", 0, NULL), errno == ENODEV ? ENODEV : EINVAL));
    CHECK_MAY("first", mount("none", "m", "cgroup2", 0, NULL));
    CHECK_MAY("same-again", fails(mount("none", "m", "cgroup2", 0, NULL), EBUSY));
    CHECK_MAY("another-above", mount("none", "m", "tmpfs", 0, NULL));
    CHECK_MAY("the-same-above", mount("none", "m", "cgroup2", 0, NULL));
    for (int i = 0; i < 3; i++)
        CHECK_MAY("ended", umount2("m", 0));
    // Each mount of these is a file system of its own.
    for (int i = 0; i < 2; i++)
        CHECK_MAY("proc-again", mount("proc", "m", "proc", 0, NULL));
    for (int i = 0; i < 2; i++)
        CHECK_MAY("terminals-again", mount("none", "m", "devpts", 0, NULL));
    for (int i = 0; i < 4; i++)
        CHECK_MAY("again-ended", umount2("m", 0));
}

int main(void)
{
    types();
    room();
    begin_in_own_mount();
    REQUIRE(make("m") == 0);
    places();
    end_own_mount();
    return 0;
}
