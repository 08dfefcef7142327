// Namespaces for a program without privileges: it may not have any.
#include "../check.h"
#include <sched.h>

static long make(unsigned long flags)
{
    long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0);
    if (pid == 0)
        _exit(0);
    int error = errno;
    if (pid > 0)
        check_wait((pid_t)pid);
    errno = error;
    return pid > 0 ? 0 : pid;
}

int main(void)
{
    static const struct {
        const char *name;
        unsigned long flag;
    } kinds[] = {
        { "mounts", CLONE_NEWNS }, { "groups", CLONE_NEWCGROUP }, { "names", CLONE_NEWUTS },
        { "ipc", CLONE_NEWIPC }, { "processes", CLONE_NEWPID }, { "network", CLONE_NEWNET },
    };
    CHECK("unshare-unknown", unshare(-1));
    CHECK("unshare-files", unshare(CLONE_FILES));
    CHECK_CHILD("unprivileged", {
        REQUIRE(setgid(1000) == 0 && setuid(1000) == 0);
        CHECK("clone", make(0));
        for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            char line[64];
            snprintf(line, sizeof line, "clone-%s", kinds[i].name);
            CHECK(line, make(kinds[i].flag));
            snprintf(line, sizeof line, "unshare-%s", kinds[i].name);
            CHECK(line, unshare(kinds[i].flag));
        }
        CHECK("unshare-unknown-unprivileged", unshare(-1));
    });
    return 0;
}
