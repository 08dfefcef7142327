// inotify(7): the end of what is watched, and of watches.
#include "inotify.h"
#include <sys/mount.h>

int main(void)
{
    start_watching();
    check_write_file("file", "x");
    int first = watch("file", IN_ALL_EVENTS);
    REQUIRE(unlink("file") == 0);
    show("the last name");
    CHECK("the watch is gone", inotify_rm_watch(watcher, first));

    check_write_file("file", "x");
    watch("file", IN_ALL_EVENTS);
    int fd = open("file", O_RDWR);
    show("open");
    REQUIRE(unlink("file") == 0);
    show("the last name, while it is open");
    REQUIRE(write(fd, "y", 1) == 1);
    show("write");
    REQUIRE(close(fd) == 0);
    show_when("the last close", IN_IGNORED);

    check_write_file("file", "x");
    REQUIRE(link("file", "hard") == 0);
    watch("file", IN_ALL_EVENTS);
    REQUIRE(unlink("file") == 0);
    show("one of two names");
    REQUIRE(unlink("hard") == 0);
    show("the other");

    // Only what was asked for.
    check_write_file("file", "x");
    watch("file", IN_MODIFY);
    REQUIRE(unlink("file") == 0);
    show("for changes only");

    REQUIRE(mkdir("d", 0755) == 0);
    watch("d", IN_ALL_EVENTS);
    fd = open("d", O_RDONLY);
    REQUIRE(rmdir("d") == 0);
    show("rmdir, while it is open");
    REQUIRE(close(fd) == 0);
    show_when("its close", IN_IGNORED);

    // Two who watch.
    check_write_file("file", "x");
    int other = inotify_init1(IN_NONBLOCK);
    REQUIRE(inotify_add_watch(other, "file", IN_DELETE_SELF) > 0);
    watch("file", IN_DELETE_SELF);
    REQUIRE(unlink("file") == 0);
    show("two who watch");
    int mine = watcher;
    watcher = other;
    watch_names[1] = "file";
    show("the other one");
    watcher = mine;
    REQUIRE(close(other) == 0);

    check_write_file("file", "x");
    int wd = watch("file", IN_ALL_EVENTS);
    CHECK("rm_watch", inotify_rm_watch(watcher, wd));
    show("removed");
    CHECK("again", inotify_rm_watch(watcher, wd));
    check_write_file("file", "y");
    show("not watched any more");
    CHECK_TRUE("numbers are not used again", watch("file", IN_ALL_EVENTS) == wd + 1);

    wd = watch("file", IN_OPEN | IN_ONESHOT);
    fd = open("file", O_RDONLY);
    REQUIRE(close(fd) == 0);
    show("once");
    fd = open("file", O_RDONLY);
    REQUIRE(close(fd) == 0);
    show("once only");

    // Files that have lost their names, by descriptors.
    for (int excludes = 0; excludes < 2; excludes++) {
        REQUIRE(mkdir("e", 0755) == 0);
        check_write_file("e/file", "x");
        watch("e", IN_ALL_EVENTS | (excludes ? IN_EXCL_UNLINK : 0));
        fd = open("e/file", O_RDWR);
        REQUIRE(unlink("e/file") == 0);
        show(excludes ? "excluded: unlink" : "unlink");
        REQUIRE(write(fd, "y", 1) == 1 && pread(fd, &(char){ 0 }, 1, 0) == 1);
        show("read and write");
        REQUIRE(fchmod(fd, 0600) == 0);
        show("fchmod");
        REQUIRE(close(fd) == 0);
        show("close");
        REQUIRE(rmdir("e") == 0);
        show("rmdir");
    }

    // A closed instance leaves nothing behind.
    for (int i = 0; i < 1000; i++) {
        int many = inotify_init1(0);
        REQUIRE(many >= 0 && inotify_add_watch(many, "file", IN_ALL_EVENTS) == 1 && close(many) == 0);
    }
    check_write_file("file", "z");
    CHECK("still there", unlink("file"));

    if (mkdir("m", 0755) == 0 && mount("none", "m", "tmpfs", 0, "") == 0) {
        check_write_file("m/file", "x");
        watch("m", IN_ALL_EVENTS);
        watch("m/file", IN_ALL_EVENTS);
        fd = open("m/file", O_WRONLY);
        REQUIRE(write(fd, "y", 1) == 1 && close(fd) == 0);
        show("on another file system");
        REQUIRE(umount("m") == 0);
        // In whichever order.
        int count = 0, unmounts = 0, ends = 0;
        while (count < 4) {
            char buffer[1024] __attribute__((aligned(8)));
            struct pollfd ready = { watcher, POLLIN, 0 };
            REQUIRE(poll(&ready, 1, 60000) == 1);
            ssize_t length = read(watcher, buffer, sizeof buffer);
            for (ssize_t at = 0; at < length; at += sizeof(struct inotify_event), count++) {
                struct inotify_event *event = (void *)(buffer + at);
                unmounts += (event->mask & IN_UNMOUNT) != 0;
                ends += (event->mask & IN_IGNORED) != 0;
            }
        }
        check_line("unmounted: %d events, %d of them UNMOUNT, %d IGNORED\n", count, unmounts, ends);
    }
    return 0;
}
