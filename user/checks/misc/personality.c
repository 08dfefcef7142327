// personality(2): what it takes, who inherits it, and what it changes: the version that uname says, and time-outs that stay as they were.
#include "../check.h"
#include <sys/personality.h>
#include <sys/select.h>
#include <sys/utsname.h>

static int left_of(long microseconds)
{
    int ends[2];
    struct timeval timeout = { 0, microseconds };
    fd_set readable;
    REQUIRE(pipe(ends) == 0);
    FD_ZERO(&readable);
    FD_SET(ends[0], &readable);
    REQUIRE(syscall(SYS_select, ends[0] + 1, &readable, NULL, NULL, &timeout) == 0);
    close(ends[0]);
    close(ends[1]);
    return timeout.tv_sec == 0 && timeout.tv_usec == microseconds;
}

static void version(const char *name)
{
    struct utsname names;
    REQUIRE(uname(&names) == 0);
    CHECK_TRUE(name, strncmp(names.release, "2.6.", 4) == 0);
}

int main(int count, char **arguments)
{
    if (count > 1) {
        printf("executed: %x\n", personality(0xffffffff));
        return 0;
    }
    static const unsigned long values[] = {
        PER_LINUX, PER_LINUX_32BIT, PER_SVR4, PER_BSD, PER_LINUX32, PER_RISCOS, PER_UW7, SHORT_INODE, WHOLE_SECONDS,
        MMAP_PAGE_ZERO, STICKY_TIMEOUTS, ADDR_LIMIT_3GB, ADDR_LIMIT_32BIT, UNAME26, ADDR_NO_RANDOMIZE, 0xfffffffe,
    };
    REQUIRE(personality(PER_LINUX) >= 0);
    long before = PER_LINUX;
    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "%lx", values[i]);
        CHECK_TRUE(line, (unsigned)personality(values[i]) == (unsigned)before);
        before = (long)values[i];
    }
    REQUIRE(personality(PER_LINUX) != 0);
    CHECK_TRUE("time-out-counted", !left_of(2000));
    version("version-old");
    REQUIRE(personality(STICKY_TIMEOUTS | UNAME26) == PER_LINUX);
    CHECK_TRUE("time-out-kept", left_of(2000));
    version("version-old-asked-for");
    CHECK_CHILD("inherited", version("inherited-version"));
    CHECK_CHILD("program", execl("/proc/self/exe", arguments[0], "executed", NULL));
    return 0;
}
