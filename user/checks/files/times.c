// Time stamps: utimensat and what changes mtime and ctime.
#include "../check.h"
#include <sys/time.h>
#include <utime.h>

static void show(const char *name, const char *path)
{
    struct stat st;
    REQUIRE(lstat(path, &st) == 0);
    check_line("%s: %ld.%09ld %ld.%09ld\n", name, (long)st.st_atim.tv_sec, st.st_atim.tv_nsec, (long)st.st_mtim.tv_sec,
               st.st_mtim.tv_nsec);
}

int main(void)
{
    struct stat before, after;
    check_write_file("f", "x");
    REQUIRE(symlink("f", "link") == 0);
    struct timespec times[2] = { { 1000000, 123456789 }, { 2000000, 987654321 } };
    CHECK("set", utimensat(AT_FDCWD, "f", times, 0));
    show("set-times", "f");
    times[0].tv_nsec = UTIME_OMIT;
    times[1].tv_sec = 3000000;
    times[1].tv_nsec = 5;
    CHECK("omit-access", utimensat(AT_FDCWD, "f", times, 0));
    show("omit-times", "f");
    times[0].tv_nsec = times[1].tv_nsec = UTIME_OMIT;
    CHECK("omit-both", utimensat(AT_FDCWD, "f", times, 0));
    show("omit-both-times", "f");
    times[0] = (struct timespec){ 7, 0 };
    times[1] = (struct timespec){ 8, 0 };
    CHECK("link-itself", utimensat(AT_FDCWD, "link", times, AT_SYMLINK_NOFOLLOW));
    struct stat st;
    REQUIRE(lstat("link", &st) == 0);
    CHECK("link-mtime", st.st_mtim.tv_sec);
    show("target-untouched", "f");
    times[0].tv_nsec = 1000000000;
    CHECK("bad-nanoseconds", utimensat(AT_FDCWD, "f", times, 0));
    CHECK("missing", utimensat(AT_FDCWD, "missing", NULL, 0));
    int fd = open("f", O_RDWR);
    struct timespec both[2] = { { 11, 0 }, { 12, 0 } };
    CHECK("futimens", futimens(fd, both));
    show("futimens-times", "f");
    struct utimbuf old = { 21, 22 };
    CHECK("utime", utime("f", &old));
    show("utime-times", "f");
    // Writing moves mtime and ctime forward; chmod only ctime.
    CHECK("write", write(fd, "y", 1));
    REQUIRE(stat("f", &after) == 0);
    CHECK_TRUE("write-moves-mtime", after.st_mtim.tv_sec > 22 && after.st_ctim.tv_sec >= after.st_mtim.tv_sec);
    REQUIRE(utime("f", &old) == 0 && stat("f", &before) == 0);
    check_sleep_ms(20);
    REQUIRE(chmod("f", 0600) == 0 && stat("f", &after) == 0);
    CHECK_TRUE("chmod-keeps-mtime", after.st_mtim.tv_sec == 22);
    CHECK_TRUE("chmod-moves-ctime", after.st_ctim.tv_sec > before.st_ctim.tv_sec ||
                                        (after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
                                         after.st_ctim.tv_nsec > before.st_ctim.tv_nsec));
    // An entry made in a directory moves the directory's mtime.
    REQUIRE(mkdir("d", 0755) == 0 && utime("d", &old) == 0);
    check_write_file("d/new", "");
    REQUIRE(stat("d", &after) == 0);
    CHECK_TRUE("new-entry-moves-directory", after.st_mtim.tv_sec > 22);
    REQUIRE(utime("d", &old) == 0 && unlink("d/new") == 0 && stat("d", &after) == 0);
    CHECK_TRUE("unlink-moves-directory", after.st_mtim.tv_sec > 22);
    // Files are dated by the real-time clock.
    struct timespec now;
    REQUIRE(clock_gettime(CLOCK_REALTIME, &now) == 0);
    check_write_file("fresh", "");
    REQUIRE(stat("fresh", &after) == 0);
    CHECK_TRUE("fresh-is-now", labs((long)(after.st_mtim.tv_sec - now.tv_sec)) <= 2);
    return 0;
}
