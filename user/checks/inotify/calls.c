// inotify(7): the calls themselves, what they refuse, and the limits.
#include "inotify.h"

static const char *lines(int fd)
{
    static char text[2048];
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    text[0] = 0;
    const char *at = check_read_file(path);
    while ((at = strstr(at, "inotify "))) {
        unsigned wd, mask;
        unsigned long number;
        REQUIRE(sscanf(at, "inotify wd:%x ino:%lx sdev:%*x mask:%x", &wd, &number, &mask) == 3);
        struct stat file;
        REQUIRE(stat(watch_names[wd], &file) == 0);
        snprintf(text + strlen(text), sizeof text - strlen(text), "[%s%s %s %#x]", watch_names[wd],
            file.st_ino == number ? "" : " (other)", event_names(mask & IN_ALL_EVENTS), mask & ~IN_ALL_EVENTS);
        at++;
    }
    return text;
}

static void set(const char *name, const char *value)
{
    char path[100];
    snprintf(path, sizeof path, "/proc/sys/fs/inotify/%s", name);
    check_write_file(path, value);
}

int main(void)
{
    CHECK("init1 with unknown flags", inotify_init1(1));
    int plain = inotify_init();
    CHECK("flags of inotify_init", fcntl(plain, F_GETFL) & (O_NONBLOCK | O_ACCMODE));
    CHECK("its descriptor", fcntl(plain, F_GETFD));
    REQUIRE(close(plain) == 0);
    start_watching();
    CHECK("flags of inotify_init1", fcntl(watcher, F_GETFL) & (O_NONBLOCK | O_ACCMODE));
    CHECK("its descriptor", fcntl(watcher, F_GETFD));
    CHECK("write", write(watcher, "x", 1));
    CHECK("lseek", lseek(watcher, 0, SEEK_SET));
    CHECK("read of nothing", read(watcher, &(char[64]){ 0 }, 64));

    REQUIRE(mkdir("d", 0755) == 0);
    check_write_file("file", "x");
    REQUIRE(symlink("file", "link") == 0 && symlink("nowhere", "dangling") == 0);
    CHECK("no mask", inotify_add_watch(watcher, "file", 0));
    CHECK("unknown bits", inotify_add_watch(watcher, "file", IN_OPEN | 0x00800000));
    CHECK("add and create", inotify_add_watch(watcher, "file", IN_OPEN | IN_MASK_ADD | IN_MASK_CREATE));
    CHECK("bad descriptor", inotify_add_watch(-1, "file", IN_OPEN));
    CHECK("not an instance", inotify_add_watch(1, "file", IN_OPEN));
    CHECK("nothing there", inotify_add_watch(watcher, "nothing", IN_OPEN));
    CHECK("empty path", inotify_add_watch(watcher, "", IN_OPEN));
    CHECK("bad pointer", inotify_add_watch(watcher, BAD_POINTER, IN_OPEN));
    CHECK("dangling link", inotify_add_watch(watcher, "dangling", IN_OPEN));
    CHECK("only directories", inotify_add_watch(watcher, "file", IN_OPEN | IN_ONLYDIR));
    CHECK("a slash behind a file", inotify_add_watch(watcher, "file/", IN_OPEN));
    CHECK("rm of nothing", inotify_rm_watch(watcher, 1));
    CHECK("rm of -1", inotify_rm_watch(watcher, -1));
    CHECK("rm by a bad descriptor", inotify_rm_watch(-1, 1));
    CHECK("rm by another file", inotify_rm_watch(1, 1));

    int wd = watch("file", IN_OPEN);
    CHECK_TRUE("the first number is 1", wd == 1);
    CHECK_TRUE("once more", watch("file", IN_CLOSE) == wd);
    REQUIRE(close(open("file", O_RDONLY)) == 0);
    show("the mask is replaced");
    CHECK_TRUE("added", watch("file", IN_OPEN | IN_MASK_ADD) == wd);
    REQUIRE(close(open("file", O_RDONLY)) == 0);
    show("the mask is added to");
    CHECK("created", inotify_add_watch(watcher, "file", IN_OPEN | IN_MASK_CREATE));
    CHECK_TRUE("by a link", inotify_add_watch(watcher, "link", IN_OPEN | IN_CLOSE) == wd);
    int of_link = watch("link", IN_ALL_EVENTS | IN_DONT_FOLLOW);
    CHECK_TRUE("the link itself", of_link != wd);
    watch("d", IN_OPEN | IN_CREATE | IN_ONLYDIR | IN_EXCL_UNLINK | IN_MASK_CREATE);
    watch_names[wd] = "file";
    CHECK_STR("fdinfo", lines(watcher));
    REQUIRE(unlink("link") == 0);
    show("the link is gone");
    CHECK_STR("fdinfo without it", lines(watcher));

    // Who may not read it may not watch it.
    REQUIRE(chmod("file", 0222) == 0);
    CHECK_CHILD("another user", {
        REQUIRE(setuid(1000) == 0);
        int own = inotify_init1(0);
        CHECK("unreadable file", inotify_add_watch(own, "file", IN_OPEN));
        CHECK("readable directory", inotify_add_watch(own, "d", IN_OPEN));
    });

    // Limits are for each user.
    char old_instances[32], old_watches[32], old_events[32];
    snprintf(old_instances, sizeof old_instances, "%s", check_read_file("/proc/sys/fs/inotify/max_user_instances"));
    snprintf(old_watches, sizeof old_watches, "%s", check_read_file("/proc/sys/fs/inotify/max_user_watches"));
    snprintf(old_events, sizeof old_events, "%s", check_read_file("/proc/sys/fs/inotify/max_queued_events"));
    CHECK_STR("instances", old_instances);
    CHECK_TRUE("watches", atol(old_watches) >= 8192);
    CHECK_STR("events", old_events);
    CHECK_CHILD("limits", {
        set("max_user_instances", "3");
        set("max_user_watches", "2");
        set("max_queued_events", "4");
        REQUIRE(setresuid(4321, 4321, 0) == 0);
        int fds[4];
        for (int i = 0; i < 4; i++)
            CHECK("instance", (fds[i] = inotify_init1(IN_NONBLOCK)) >= 0 ? 0 : -1);
        REQUIRE(close(fds[2]) == 0);
        CHECK("one was closed", (fds[2] = inotify_init1(IN_NONBLOCK)) >= 0 ? 0 : -1);
        CHECK("first watch", inotify_add_watch(fds[0], "d", IN_OPEN));
        CHECK("second watch", inotify_add_watch(fds[1], "d", IN_OPEN));
        CHECK("third watch", inotify_add_watch(fds[2], "d", IN_OPEN));
        CHECK("changing one", inotify_add_watch(fds[0], "d", IN_OPEN | IN_CLOSE));
        CHECK("removing one", inotify_rm_watch(fds[1], 1));
        CHECK("another one", inotify_add_watch(fds[2], "d", IN_OPEN));
        REQUIRE(close(fds[2]) == 0);
        CHECK("after a close", inotify_add_watch(fds[1], "d", IN_OPEN));
        watcher = fds[0];
        watch_names[1] = "d";
        for (int i = 0; i < 4; i++)
            REQUIRE(close(open("d", O_RDONLY)) == 0);
        show("too many events");
        REQUIRE(close(open("d", O_RDONLY)) == 0);
        show("then some more");
    });
    set("max_user_instances", old_instances);
    set("max_user_watches", old_watches);
    set("max_queued_events", old_events);
    return 0;
}
