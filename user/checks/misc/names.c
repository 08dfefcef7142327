// sethostname and setdomainname: who may, how long, and what uname says then. On Linux the names that change are those of a namespace of its own.
#include "../check.h"
#include <sched.h>
#include <sys/utsname.h>

static struct utsname names(void)
{
    struct utsname now;
    REQUIRE(uname(&now) == 0);
    return now;
}

int main(void)
{
    struct utsname first = names();
    char long_name[66];
    memset(long_name, 'n', sizeof long_name);
    CHECK_CHILD("unprivileged", REQUIRE(setuid(1000) == 0); CHECK("domain", syscall(SYS_setdomainname, "x", 1)); CHECK("host", syscall(SYS_sethostname, "x", 1));
                CHECK("domain-long", syscall(SYS_setdomainname, long_name, 65)); CHECK("domain-bad", syscall(SYS_setdomainname, BAD_POINTER, 1)));
    CHECK("too-long", syscall(SYS_setdomainname, long_name, 65));
    CHECK("negative", syscall(SYS_setdomainname, long_name, -1));
    CHECK("bad-pointer", syscall(SYS_setdomainname, BAD_POINTER, 3));
    CHECK("host-too-long", syscall(SYS_sethostname, long_name, 65));
    CHECK("host-negative", syscall(SYS_sethostname, long_name, -1));
    CHECK("host-bad-pointer", syscall(SYS_sethostname, BAD_POINTER, 3));
    CHECK_TRUE("unchanged", memcmp(&first, &(struct utsname[]){ names() }[0], sizeof first) == 0);
    // A Linux that refuses a namespace keeps its names; then nothing below is done there.
    int own = unshare(CLONE_NEWUTS) == 0 || strstr(first.release, "ebb");
#define IF_OWN(expr) (own ? (expr) : 0)
    CHECK("domain", IF_OWN(syscall(SYS_setdomainname, "example.org", 11)));
    CHECK_STR("domain-is", own ? names().domainname : "example.org");
    CHECK("domain-shorter", IF_OWN(syscall(SYS_setdomainname, "abcdef", 2)));
    CHECK_STR("domain-shorter-is", own ? names().domainname : "ab");
    CHECK("domain-longest", IF_OWN(syscall(SYS_setdomainname, long_name, 64)));
    CHECK_TRUE("domain-longest-is", !own || strlen(names().domainname) == 64);
    CHECK("domain-with-zero", IF_OWN(syscall(SYS_setdomainname, "a\0b", 3)));
    CHECK_STR("domain-with-zero-is", own ? names().domainname : "a");
    CHECK("domain-empty", IF_OWN(syscall(SYS_setdomainname, BAD_POINTER, 0)));
    CHECK_STR("domain-empty-is", own ? names().domainname : "");
    CHECK("host", IF_OWN(syscall(SYS_sethostname, "machine", 7)));
    CHECK_STR("host-is", own ? names().nodename : "machine");
    CHECK("host-empty", IF_OWN(syscall(SYS_sethostname, "", 0)));
    CHECK_STR("host-empty-is", own ? names().nodename : "");
    if (own)
        REQUIRE(sethostname(first.nodename, strlen(first.nodename)) == 0 && setdomainname(first.domainname, strlen(first.domainname)) == 0);
    return 0;
}
