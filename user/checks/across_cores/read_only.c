// A mount that is made read-only while others change something through it: nothing changes any more when mount(2) is back, nobody is refused without cause, and only files that are
// open for writing keep it from becoming so. Who may not mount has nothing to compare.
#include "together.h"
#include <sys/mount.h>

#define ROUNDS 4000

static int may, result, directory, reader, closed, late, refused, other_error, both;

static int remount(unsigned long flags)
{
    return mount("none", "m", NULL, MS_REMOUNT | flags, NULL);
}

static void make_writable(void)
{
    REQUIRE(remount(0) == 0);
}

// Makes it read-only, and says whether a change was made later: `count` is what changes count.
static void close_it(long (*count)(void))
{
    errno = 0;
    result = remount(MS_RDONLY);
    int why = errno;
    if (result != 0) {
        refused++;
        other_error += why != EBUSY;
        return;
    }
    long before = count();
    for (int i = 0; i < 20; i++)
        sched_yield();
    late += count() != before;
}

static long links(void)
{
    struct stat status;
    return fstat(directory, &status) == 0 ? (long)status.st_nlink : -1;
}

static long mode(void)
{
    struct stat status;
    return fstat(reader, &status) == 0 ? (long)status.st_mode : -1;
}

static long size(void)
{
    struct stat status;
    return fstat(reader, &status) == 0 ? (long)status.st_size : -1;
}

static void note(int failed)
{
    other_error += failed && errno != EROFS;
}

// Until it is refused: a few directories more.
static void make_directories(void)
{
    char name[32];
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "m/d%d", i);
        int made = mkdir(name, 0700);
        note(made != 0);
        if (made != 0)
            return;
    }
}

static void remove_directories(void)
{
    char name[32];
    make_writable();
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "m/d%d", i);
        rmdir(name);
    }
}

static void change_modes(void)
{
    for (int i = 0; i < 30; i++) {
        int changed = fchmod(reader, 0600 | (i & 077));
        note(changed != 0);
        if (changed != 0)
            return;
    }
}

static void change_sizes(void)
{
    for (int i = 0; i < 30; i++) {
        int changed = truncate("m/file", i + 1);
        note(changed != 0);
        if (changed != 0)
            return;
    }
}

static void close_against_directories(void)
{
    close_it(links);
}

static void close_against_modes(void)
{
    close_it(mode);
}

static void close_against_sizes(void)
{
    close_it(size);
}

static int opened;

static void open_it(void)
{
    opened = open("m/file", O_WRONLY);
    note(opened < 0);
}

static void close_against_open(void)
{
    result = remount(MS_RDONLY);
}

// Either the file is open for writing or the mount is read-only.
static void end_both(void)
{
    both += opened >= 0 && result == 0;
    closed += opened < 0 && result != 0;
    if (opened >= 0)
        close(opened);
}

static int always_open, spurious;

static void open_more(void)
{
    for (int i = 0; i < 8; i++) {
        int fd = open("m/file", O_WRONLY);
        spurious += fd < 0;
        if (fd >= 0)
            close(fd);
        fd = open("m/made", O_CREAT | O_EXCL | O_RDONLY, 0600);
        spurious += fd < 0;
        if (fd >= 0)
            close(fd);
        spurious += unlink("m/made") != 0;
    }
}

static void fail_to_close(void)
{
    for (int i = 0; i < 8; i++)
        spurious += remount(MS_RDONLY) == 0 || errno != EBUSY;
}

static void nothing(void)
{
}

int main(void)
{
    REQUIRE(mkdir("m", 0755) == 0);
    may = mount("none", "m", "tmpfs", 0, "size=1m") == 0;
    if (may) {
        check_write_file("m/file", "text");
        directory = open("m", O_RDONLY | O_DIRECTORY);
        reader = open("m/file", O_RDONLY);
        REQUIRE(directory >= 0 && reader >= 0);
        together(ROUNDS, remove_directories, make_directories, close_against_directories, nothing);
        make_writable();
    }
    CHECK("directories-made-later", late);
    late = 0;
    if (may)
        together(ROUNDS, make_writable, change_modes, close_against_modes, nothing);
    CHECK("modes-changed-later", late);
    late = 0;
    if (may)
        together(ROUNDS, make_writable, change_sizes, close_against_sizes, nothing);
    CHECK("sizes-changed-later", late);
    if (may)
        together(ROUNDS, make_writable, open_it, close_against_open, end_both);
    CHECK("open-for-writing-and-read-only", both);
    CHECK("refused-on-both-sides", closed);
    CHECK("errors-of-another-kind", other_error);
    if (may) {
        make_writable();
        always_open = open("m/file", O_WRONLY);
        REQUIRE(always_open >= 0);
        together(ROUNDS, nothing, open_more, fail_to_close, nothing);
    }
    CHECK("refused-although-it-stays-writable", spurious);
    return 0;
}
