// Settings below /proc/sys that can be written. The old value is written back; who may not write has nothing to compare.
#include "../check.h"

static int put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0)
        return -1;
    int put = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int error = errno;
    close(fd);
    errno = error;
    return put ? 0 : -1;
}

static void setting(const char *name, const char *path, const char *bad)
{
    char old[64], line[128];
    int fd = open(path, O_RDONLY);
    CHECK_TRUE(name, fd >= 0);
    ssize_t length = fd < 0 ? -1 : read(fd, old, sizeof old - 1);
    REQUIRE(length > 0);
    old[length] = 0;
    close(fd);
    int may = put(path, old) == 0;
    CHECK_TRUE("  kept", strcmp(check_read_file(path), strtok(old, "\n")) == 0);
    snprintf(line, sizeof line, "  refuses %s", bad);
    CHECK_TRUE(line, !may || (put(path, bad) == -1 && errno == EINVAL));
    CHECK_TRUE("  refuses words", !may || (put(path, "word\n") == -1 && errno == EINVAL));
    CHECK_TRUE("  still kept", strcmp(check_read_file(path), old) == 0);
    snprintf(line, sizeof line, "  %s\t\n", old);
    CHECK_TRUE("  takes white space", !may || put(path, line) == 0);
}

int main(void)
{
    setting("pipe-max-size", "/proc/sys/fs/pipe-max-size", "-5");
    setting("nr_open", "/proc/sys/fs/nr_open", "1");
    setting("max_map_count", "/proc/sys/vm/max_map_count", "-1");
    setting("pid_max", "/proc/sys/kernel/pid_max", "1");
    CHECK_CHILD("not-for-others", REQUIRE(setgid(1000) == 0 && setuid(1000) == 0);
                _exit(open("/proc/sys/fs/nr_open", O_WRONLY) == -1 && errno == EACCES ? 3 : 4));
    const char *drop = "/proc/sys/vm/drop_caches";
    CHECK_TRUE("drops-nothing", access(drop, W_OK) != 0 || (put(drop, "0\n") == -1 && errno == EINVAL));
    CHECK("drop-mode", stat(drop, &(struct stat){ 0 }));
    struct stat status;
    CHECK("mode", stat("/proc/sys/fs/nr_open", &status) == 0 ? status.st_mode & 0777 : 0);
    return 0;
}
