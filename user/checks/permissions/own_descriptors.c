// A process that has changed its user ids finds its own descriptors by /proc/self/fd still; others of the same user do not.
#include "../check.h"
#include <dirent.h>
#include <pthread.h>

static int has(const char *directory, int fd)
{
    DIR *all = opendir(directory);
    if (!all)
        return -1;
    int found = 0;
    for (struct dirent *entry; (entry = readdir(all));)
        found += entry->d_name[0] != '.' && atoi(entry->d_name) == fd;
    closedir(all);
    return found;
}

static void *of_thread(void *path)
{
    CHECK("of-thread", open(path, O_RDONLY) >= 0);
    return NULL;
}

static void look(int fd)
{
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK("search", access("/proc/self/fd", X_OK));
    CHECK("search-effective", faccessat(AT_FDCWD, "/proc/self/fd", X_OK, AT_EACCESS));
    CHECK("list", has("/proc/self/fd", fd));
    CHECK("link", readlink(path, text, sizeof text) > 0);
    CHECK("open", open(path, O_RDONLY) >= 0);
    CHECK("open-to-write", open(path, O_WRONLY));
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", fd);
    CHECK("of-this-thread", open(path, O_RDONLY) >= 0);
    pthread_t thread;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    REQUIRE(pthread_create(&thread, NULL, of_thread, path) == 0 && pthread_join(thread, NULL) == 0);
}

int main(void)
{
    check_write_file("all-may-read", "text");
    REQUIRE(chmod("all-may-read", 0644) == 0);
    int fd = open("all-may-read", O_RDWR);
    REQUIRE(fd >= 0);
    look(fd);
    CHECK_CHILD("seteuid", REQUIRE(seteuid(1000) == 0); look(fd));
    CHECK_CHILD("setuid", REQUIRE(setgid(1000) == 0 && setuid(1000) == 0); look(fd));
    // Whoever was forked may look at itself, and not at its parent.
    CHECK_CHILD("child", REQUIRE(setuid(1000) == 0); char parent[64]; snprintf(parent, sizeof parent, "/proc/%d/fd", (int)getpid());
                CHECK_CHILD("child", look(fd); CHECK("list-of-parent", has(parent, fd)); CHECK("search-of-parent", access(parent, X_OK))));
    return 0;
}
