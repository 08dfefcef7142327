// F_NOTIFY: a signal for each change in a directory. All signals are blocked and taken out one by one.
#include "../check.h"
#include <dirent.h>
#include <sys/xattr.h>

#ifndef F_SETSIG
#define F_SETSIG 10
#endif

static int signal_number;

static long control(int fd, int command, long argument)
{
    return syscall(SYS_fcntl, fd, command, argument);
}

// Prints how many signals came, and what they say if they say the same.
static void show(const char *name, int fd)
{
    sigset_t all;
    sigfillset(&all);
    siginfo_t info;
    struct timespec none = { 0, 0 };
    int count = 0, right = 0, kernel = 0;
    unsigned long band = 0;
    int code = 0, signal;
    while ((signal = sigtimedwait(&all, &info, &none)) > 0) {
        if (signal == SIGCHLD || signal == SIGALRM)
            continue;
        count++;
        kernel += signal == SIGIO && info.si_code == SI_KERNEL;
        if (signal == signal_number) {
            right += info.si_fd == fd;
            code = info.si_code;
            band = info.si_band;
        }
    }
    if (count == 0)
        check_line("%s: nothing\n", name);
    else if (kernel == count)
        check_line("%s: %d SIGIO\n", name, count);
    else
        check_line("%s: %d, right descriptor %d, code %d, band %lx\n", name, count, right, code, band);
}

static int watch(const char *path, unsigned mask)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    REQUIRE(fd >= 0);
    REQUIRE(control(fd, F_SETSIG, signal_number) == 0);
    REQUIRE(control(fd, F_NOTIFY, mask) == 0);
    return fd;
}

// Does all that changes a directory, and says after each what came.
static void change_all(const char *title, unsigned mask)
{
    REQUIRE(mkdir("d", 0755) == 0 && mkdir("other", 0755) == 0);
    check_write_file("d/old", "text");
    check_write_file("other/far", "text");
    int fd = watch("d", mask | DN_MULTISHOT);
    check_line("-- %s\n", title);
    int file = open("d/new", O_RDWR | O_CREAT, 0644);
    show("create", fd);
    REQUIRE(write(file, "abcd", 4) == 4);
    show("write", fd);
    char byte;
    REQUIRE(pread(file, &byte, 1, 0) == 1);
    show("read", fd);
    REQUIRE(ftruncate(file, 2) == 0);
    show("truncate", fd);
    REQUIRE(fchmod(file, 0600) == 0);
    show("fchmod", fd);
    REQUIRE(chown("d/new", 1, 1) == 0);
    show("chown", fd);
    struct timespec now[2] = { { 0, UTIME_NOW }, { 0, UTIME_NOW } };
    REQUIRE(futimens(file, now) == 0);
    show("both times", fd);
    now[0].tv_nsec = UTIME_OMIT;
    REQUIRE(futimens(file, now) == 0);
    show("time of change", fd);
    close(file);
    show("close", fd);
    REQUIRE(mkdir("d/sub", 0755) == 0);
    show("mkdir", fd);
    REQUIRE(chmod("d/sub", 0700) == 0);
    show("chmod of a directory in it", fd);
    check_write_file("d/sub/deep", "x");
    show("two below", fd);
    REQUIRE(unlink("d/sub/deep") == 0 && rmdir("d/sub") == 0);
    show("rmdir", fd);
    REQUIRE(symlink("x", "d/link") == 0);
    show("symlink", fd);
    REQUIRE(mkfifo("d/fifo", 0644) == 0);
    show("mknod", fd);
    REQUIRE(link("d/old", "d/hard") == 0);
    show("link", fd);
    REQUIRE(unlink("d/hard") == 0);
    show("unlink", fd);
    REQUIRE(rename("d/new", "d/newer") == 0);
    show("rename inside", fd);
    REQUIRE(rename("d/newer", "other/newer") == 0);
    show("rename out", fd);
    REQUIRE(rename("other/newer", "d/newer") == 0);
    show("rename in", fd);
    REQUIRE(rename("d/newer", "d/old") == 0);
    show("rename over another", fd);
    REQUIRE(chmod("d", 0700) == 0);
    show("chmod of itself", fd);
    DIR *list = opendir("d");
    REQUIRE(list && readdir(list));
    closedir(list);
    show("listing it", fd);
    REQUIRE(truncate("d/old", 100) == 0);
    show("truncate by path", fd);
    close(fd);
    check_write_file("d/last", "x");
    show("closed", fd);
    REQUIRE(unlink("d/last") == 0 && unlink("d/old") == 0 && unlink("d/link") == 0 && unlink("d/fifo") == 0);
    REQUIRE(unlink("other/far") == 0 && rmdir("d") == 0 && rmdir("other") == 0);
}

static void lives(void)
{
    REQUIRE(mkdir("w", 0755) == 0);
    check_write_file("file", "");
    int file = open("file", O_RDONLY), fd = open("w", O_RDONLY);
    CHECK("on a file", control(file, F_NOTIFY, DN_CREATE));
    CHECK("nothing on a file", control(file, F_NOTIFY, 0));
    CHECK("bad descriptor", control(-1, F_NOTIFY, DN_CREATE));
    int path = open("w", O_PATH);
    CHECK("on a path", control(path, F_NOTIFY, DN_CREATE));
    close(path);
    CHECK("unknown bits", control(fd, F_NOTIFY, 0x40));
    CHECK("once", control(fd, F_NOTIFY, DN_CREATE));
    CHECK_TRUE("its owner is the caller", control(fd, F_GETOWN, 0) == getpid());
    check_write_file("w/1", "");
    show("first", fd);
    check_write_file("w/2", "");
    show("second", fd);
    CHECK("two kinds", control(fd, F_NOTIFY, DN_CREATE) + control(fd, F_NOTIFY, DN_DELETE));
    check_write_file("w/3", "");
    show("one of two", fd);
    REQUIRE(unlink("w/3") == 0);
    show("both went", fd);
    CHECK("many", control(fd, F_NOTIFY, DN_CREATE | DN_MULTISHOT));
    CHECK("taken away", control(fd, F_NOTIFY, 0));
    check_write_file("w/3", "");
    show("after that", fd);
    CHECK("many again", control(fd, F_NOTIFY, DN_CREATE | DN_MULTISHOT));
    CHECK("taken away by the flag alone", control(fd, F_NOTIFY, DN_MULTISHOT));
    check_write_file("w/4", "");
    show("after the flag", fd);

    REQUIRE(control(fd, F_SETSIG, signal_number) == 0);
    REQUIRE(control(fd, F_NOTIFY, DN_CREATE | DN_MULTISHOT) == 0);
    CHECK_CHILD("child changes", {
        check_write_file("w/5", "");
        show("child", fd);
    });
    show("parent", fd);
    CHECK_CHILD("child closes", close(fd));
    check_write_file("w/6", "");
    show("after child closed it", fd);
    int copy = dup(fd);
    REQUIRE(control(copy, F_NOTIFY, DN_DELETE | DN_MULTISHOT) == 0);
    REQUIRE(unlink("w/6") == 0);
    show("told through a copy", copy);
    check_write_file("w/6", "");
    show("the first kind still", copy);
    close(fd);
    check_write_file("w/7", "");
    show("any descriptor's close ends it", copy);
    close(copy);

    // A child that ends takes its own with it.
    fd = open("w", O_RDONLY);
    REQUIRE(control(fd, F_SETSIG, signal_number) == 0);
    REQUIRE(control(fd, F_SETOWN, getpid()) == 0);
    CHECK_CHILD("child watches", {
        REQUIRE(control(fd, F_NOTIFY, DN_CREATE | DN_MULTISHOT) == 0);
        check_write_file("w/8", "");
    });
    show("while it watched", fd);
    check_write_file("w/9", "");
    show("after its end", fd);
    // Two watch.
    int first = watch("w", DN_CREATE | DN_MULTISHOT), second = watch("w", DN_CREATE | DN_MULTISHOT);
    check_write_file("w/10", "");
    show("two descriptions", first);
    close(first);
    close(second);
    close(fd);
    close(file);
}

int main(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    signal_number = SIGRTMIN + 1;
    lives();
    change_all("access", DN_ACCESS);
    change_all("modify", DN_MODIFY);
    change_all("create", DN_CREATE);
    change_all("delete", DN_DELETE);
    change_all("rename", DN_RENAME);
    change_all("attributes", DN_ATTRIB);
    return 0;
}
