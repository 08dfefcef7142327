// What mounts do not allow, how they keep access times, and how they go. Who may not mount has nothing to compare.
#include "../check.h"
#include <sys/mount.h>
#include <sys/statfs.h>

#define CHECK_IF(name, condition) CHECK_TRUE(name, !may || (condition))

static int fails(long result, int error)
{
    return result == -1 && errno == error;
}

static int moves(const char *path, int reads_directory)
{
    struct timespec times[2] = { { 5000, 0 }, { 2000, 0 } };
    char bytes[512];
    struct stat status;
    // Accessed after the last change: only a mount with strict times moves it.
    if (utimensat(AT_FDCWD, path, times, 0) != 0)
        return -1;
    int fd = open(path, O_RDONLY);
    if (reads_directory ? syscall(SYS_getdents64, fd, bytes, sizeof bytes) < 0 : read(fd, bytes, 1) != 1)
        return -2;
    close(fd);
    return stat(path, &status) != 0 ? -3 : status.st_atime != 5000;
}

static unsigned long flags_of(const char *path)
{
    struct statfs status;
    return statfs(path, &status) == 0 ? status.f_flags & ~0x20UL : 0;
}

int main(void)
{
    REQUIRE(mkdir("m", 0755) == 0);
    int may = mount("none", "m", "tmpfs", 0, "size=1m") == 0;
    CHECK_IF("made", may && close(open("m/f", O_CREAT | O_RDWR, 0644)) == 0 && mkdir("m/d", 0755) == 0);
    CHECK_IF("written", truncate("m/f", 10) == 0);
    CHECK_IF("linked", symlink("f", "m/link") == 0);
    CHECK_IF("default-is-relatime", flags_of("m") == 0x1000);
    CHECK_IF("strict", mount("none", "m", NULL, MS_REMOUNT | MS_STRICTATIME, NULL) == 0);
    CHECK_IF("strict-flags", flags_of("m") == 0);
    CHECK_IF("strict-moves", moves("m/f", 0) == 1);
    CHECK_IF("strict-moves-directory", moves("m/d", 1) == 1);
    CHECK_IF("remount-keeps", mount("none", "m", NULL, MS_REMOUNT, NULL) == 0 && flags_of("m") == 0);
    CHECK_IF("noatime", mount("none", "m", NULL, MS_REMOUNT | MS_NOATIME, NULL) == 0);
    CHECK_IF("noatime-flags", flags_of("m") == ST_NOATIME);
    CHECK_IF("noatime-stays", moves("m/f", 0) == 0);
    CHECK_IF("nodiratime", mount("none", "m", NULL, MS_REMOUNT | MS_STRICTATIME | MS_NODIRATIME, NULL) == 0);
    CHECK_IF("nodiratime-flags", flags_of("m") == ST_NODIRATIME);
    CHECK_IF("nodiratime-file", moves("m/f", 0) == 1);
    CHECK_IF("nodiratime-directory", moves("m/d", 1) == 0);
    CHECK_IF("no-links", mount("none", "m", NULL, MS_REMOUNT | MS_RELATIME | 256, NULL) == 0);
    CHECK_IF("no-links-flags", flags_of("m") == (0x1000 | 0x2000));
    char bytes[16];
    CHECK_IF("no-links-open", fails(open("m/link", O_RDONLY), ELOOP));
    CHECK_IF("no-links-stat", fails(access("m/link", F_OK), ELOOP));
    CHECK_IF("no-links-readlink", readlink("m/link", bytes, sizeof bytes) == 1);
    CHECK_IF("no-links-lstat", lstat("m/link", &(struct stat){ 0 }) == 0);
    int writer = open("m/f", O_WRONLY);
    CHECK_IF("read-only-while-written", fails(mount("none", "m", NULL, MS_REMOUNT | MS_RDONLY, NULL), EBUSY));
    close(writer);
    CHECK_IF("read-only", mount("none", "m", NULL, MS_REMOUNT | MS_RDONLY | MS_STRICTATIME, NULL) == 0);
    CHECK_IF("read-only-create", fails(open("m/new", O_CREAT | O_WRONLY, 0600), EROFS));
    CHECK_IF("read-only-open", fails(open("m/f", O_WRONLY), EROFS));
    CHECK_IF("read-only-existing", open("m/f", O_RDONLY | O_CREAT, 0600) >= 0);
    CHECK_IF("read-only-truncate", fails(truncate("m/f", 1), EROFS));
    CHECK_IF("read-only-access", fails(access("m/f", W_OK), EROFS));
    CHECK_IF("read-only-exec-access", access("m/f", R_OK) == 0);
    CHECK_IF("read-only-link", fails(link("m/f", "m/g"), EROFS));
    CHECK_IF("read-only-times", fails(utimensat(AT_FDCWD, "m/f", NULL, 0), EROFS));
    syscall(SYS_close_range, 3, ~0U, 0);
    struct stat before, after;
    CHECK_IF("read-only-no-access-time",
             stat("m/f", &before) == 0 && close(open("m/f", O_RDONLY)) == 0 && stat("m/f", &after) == 0 &&
                 before.st_atime == after.st_atime);

    CHECK_IF("expire-and-force", fails(umount2("m", MNT_EXPIRE | MNT_FORCE), EINVAL));
    CHECK_IF("expire-and-detach", fails(umount2("m", MNT_EXPIRE | MNT_DETACH), EINVAL));
    CHECK_IF("unknown-flag", fails(umount2("m", 0x1000), EINVAL));
    CHECK_IF("expire-marks", fails(umount2("m", MNT_EXPIRE), EAGAIN));
    CHECK_IF("use-clears", access("m/f", F_OK) == 0);
    CHECK_IF("expire-marks-again", fails(umount2("m", MNT_EXPIRE), EAGAIN));
    int inside = open("m/f", O_RDONLY);
    CHECK_IF("expire-busy", fails(umount2("m", MNT_EXPIRE), EBUSY));
    close(inside);
    CHECK_IF("expire-marks-then", fails(umount2("m", MNT_EXPIRE), EAGAIN));
    CHECK_IF("expired", umount2("m", MNT_EXPIRE) == 0);
    CHECK_IF("gone", fails(umount2("m", 0), EINVAL));
    return 0;
}
