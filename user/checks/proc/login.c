// /proc/PID/loginuid and sessionid: who sets them, and who inherits them.
#include "../check.h"

#include <sys/prctl.h>

static const char *user = "/proc/self/loginuid";

static int put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0)
        return -1;
    ssize_t put = write(fd, text, strlen(text));
    int error = errno;
    close(fd);
    errno = error;
    return put < 0 ? -1 : (int)put;
}

static unsigned long number(const char *path)
{
    return strtoul(check_read_file(path), NULL, 10);
}

int main(void)
{
    struct stat status;
    CHECK("mode", stat(user, &status) == 0 ? status.st_mode & 0777 : 0);
    CHECK("session-mode", stat("/proc/self/sessionid", &status) == 0 ? status.st_mode & 0777 : 0);
    // What logs users in cuts it first.
    int fd = open(user, O_RDWR);
    CHECK("cut", ftruncate(fd, 0));
    CHECK("grown", ftruncate(fd, 100));
    CHECK("cut-by-name", truncate("/proc/self/comm", 0));
    CHECK("cut-read-only", truncate("/proc/self/stat", 0) == 0 || errno == EACCES ? 0 : -1);
    close(fd);
    CHECK("words", put(user, "root"));
    CHECK("negative", put(user, "-1"));
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/loginuid", getppid());
    CHECK("of-another", put(path, "0"));
    // Where somebody has logged in already, that may be final.
    unsigned long before = number("/proc/self/sessionid");
    if (number(user) == 0xffffffff) {
        CHECK_TRUE("set", put(user, "1234\n") == 5);
        CHECK_TRUE("is-set", number(user) == 1234);
        CHECK_TRUE("session", number("/proc/self/sessionid") != before);
    } else {
        CHECK_TRUE("set", 1);
        CHECK_TRUE("is-set", 1);
        CHECK_TRUE("session", before != 0xffffffff);
    }
    unsigned long own = number(user), session = number("/proc/self/sessionid");
    CHECK_CHILD("inherited", _exit(number(user) == own && number("/proc/self/sessionid") == session ? 3 : 4));
    CHECK_CHILD("only-once", REQUIRE(setgid(1000) == 0 && setuid(1000) == 0);
                REQUIRE(prctl(PR_SET_DUMPABLE, 1) == 0); put(user, "7"); _exit(number(user) == own ? 3 : 4));
    return 0;
}
