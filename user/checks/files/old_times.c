// utimes and futimesat: times of a file in microseconds.
#include "../check.h"
#include <sys/time.h>

static void show(const char *name, const char *path)
{
    struct stat st;
    REQUIRE(lstat(path, &st) == 0);
    check_line("%s: %ld.%09ld %ld.%09ld\n", name, (long)st.st_atim.tv_sec, st.st_atim.tv_nsec, (long)st.st_mtim.tv_sec,
               st.st_mtim.tv_nsec);
}

int main(void)
{
    REQUIRE(mkdir("d", 0755) == 0 && symlink("f", "d/link") == 0);
    check_write_file("d/f", "x");
    int dir = open("d", O_RDONLY | O_DIRECTORY), file = open("d/f", O_RDONLY);
    REQUIRE(dir >= 0 && file >= 0);
    struct timeval times[2] = { { 1000000, 123456 }, { 2000000, 654321 } };
    CHECK("in-directory", syscall(SYS_futimesat, dir, "f", times));
    show("in-directory-times", "d/f");
    times[0].tv_sec = 5;
    CHECK("in-working-directory", syscall(SYS_futimesat, AT_FDCWD, "d/f", times));
    show("in-working-directory-times", "d/f");
    times[0].tv_sec = 6;
    CHECK("of-descriptor", syscall(SYS_futimesat, file, NULL, times));
    show("of-descriptor-times", "d/f");
    times[0].tv_sec = 7;
    CHECK("follows-link", syscall(SYS_futimesat, dir, "link", times));
    show("follows-link-times", "d/f");
    times[0].tv_sec = -8;
    CHECK("before-1970", syscall(SYS_futimesat, dir, "f", times));
    show("before-1970-times", "d/f");
    struct stat before, after;
    REQUIRE(stat("d/f", &before) == 0);
    CHECK("now", syscall(SYS_futimesat, dir, "f", NULL));
    REQUIRE(stat("d/f", &after) == 0);
    CHECK_TRUE("now-is-later", after.st_atime > before.st_atime && after.st_mtime > before.st_mtime);
    CHECK_TRUE("now-is-one", after.st_atim.tv_sec == after.st_mtim.tv_sec && after.st_atim.tv_nsec == after.st_mtim.tv_nsec);
    times[0] = (struct timeval){ 1, 1000000 };
    CHECK("microseconds", syscall(SYS_futimesat, dir, "f", times));
    times[0].tv_usec = -1;
    CHECK("microseconds-negative", syscall(SYS_futimesat, dir, "f", times));
    // What utimensat takes for "now" and "leave it" is no number of microseconds.
    times[0].tv_usec = UTIME_NOW;
    CHECK("no-now", syscall(SYS_futimesat, dir, "f", times));
    times[0].tv_usec = UTIME_OMIT;
    CHECK("no-omit", syscall(SYS_futimesat, dir, "f", times));
    times[0].tv_usec = 1;
    CHECK("missing", syscall(SYS_futimesat, dir, "missing", times));
    CHECK("empty", syscall(SYS_futimesat, dir, "", times));
    CHECK("below-file", syscall(SYS_futimesat, file, "f", times));
    CHECK("closed", syscall(SYS_futimesat, 999, "f", times));
    CHECK("closed-null", syscall(SYS_futimesat, 999, NULL, times));
    CHECK("working-directory-null", syscall(SYS_futimesat, AT_FDCWD, NULL, times));
    CHECK("bad-path", syscall(SYS_futimesat, dir, BAD_POINTER, times));
    CHECK("bad-times", syscall(SYS_futimesat, dir, "f", BAD_POINTER));
    CHECK("bad-times-of-missing", syscall(SYS_futimesat, dir, "missing", BAD_POINTER));
    CHECK("wrong-times-of-missing", (times[1].tv_usec = 2000000, syscall(SYS_futimesat, dir, "missing", times)));
    CHECK("utimes-wrong", syscall(SYS_utimes, "d/f", times));
    times[1].tv_usec = 7;
    CHECK("utimes", syscall(SYS_utimes, "d/f", times));
    show("utimes-times", "d/f");
    CHECK("utimes-null", syscall(SYS_utimes, NULL, times));
    CHECK("utimes-missing", syscall(SYS_utimes, "missing", NULL));
    REQUIRE(chmod("d/f", 0644) == 0 && chmod("d", 0777) == 0 && chmod(".", 0777) == 0);
    CHECK_CHILD("stranger", REQUIRE(setuid(1000) == 0); CHECK("set", syscall(SYS_futimesat, dir, "f", times));
                CHECK("now", syscall(SYS_futimesat, dir, "f", NULL)));
    REQUIRE(chmod("d/f", 0666) == 0);
    CHECK_CHILD("writer", REQUIRE(setuid(1000) == 0); CHECK("set", syscall(SYS_futimesat, dir, "f", times));
                CHECK("now", syscall(SYS_futimesat, dir, "f", NULL)));
    return 0;
}
