// uname, sysinfo, getrandom, host names, unknown calls.
#include "../check.h"
#include <sys/personality.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

int main(void)
{
    struct utsname name;
    CHECK("uname", uname(&name));
    CHECK_STR("system", name.sysname);
    CHECK_STR("machine", name.machine);
    int major = 0, minor = 0;
    CHECK_TRUE("release", sscanf(name.release, "%d.%d", &major, &minor) == 2 && major >= 5);
    CHECK_TRUE("node", name.nodename[0] != 0);
    char host[65];
    CHECK_TRUE("gethostname", gethostname(host, sizeof host) == 0 && strcmp(host, name.nodename) == 0);
    struct sysinfo info;
    CHECK("sysinfo", sysinfo(&info));
    CHECK_TRUE("memory", info.totalram > 0 && info.freeram <= info.totalram && info.mem_unit > 0);
    CHECK_TRUE("processes", info.procs > 0);
    CHECK_TRUE("uptime", info.uptime >= 0);
    unsigned char a[64] = { 0 }, b[64] = { 0 };
    CHECK("getrandom", getrandom(a, sizeof a, 0));
    CHECK("getrandom-again", getrandom(b, sizeof b, GRND_NONBLOCK));
    CHECK_TRUE("differs", memcmp(a, b, sizeof a) != 0);
    int ones = 0;
    for (int i = 0; i < 64; i++)
        ones += __builtin_popcount(a[i]) + __builtin_popcount(b[i]);
    CHECK_TRUE("balanced", ones > 350 && ones < 674);
    CHECK("getrandom-bad-flags", getrandom(a, 1, 0x100));
    CHECK("getrandom-zero", getrandom(a, 0, 0));
    CHECK("unknown-call", syscall(999));
    CHECK("negative-call", syscall(-5));
    CHECK("personality", personality(0xffffffff));
    CHECK("hardware-threads", sysconf(_SC_NPROCESSORS_ONLN) >= 1);
    CHECK("page-size", sysconf(_SC_PAGESIZE));
    CHECK_TRUE("physical-pages", sysconf(_SC_PHYS_PAGES) > 1000);
    CHECK_CHILD("unprivileged", REQUIRE(setuid(1000) == 0); CHECK("sethostname", sethostname("x", 1)); CHECK("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL));
                CHECK("mount", syscall(SYS_mount, "none", "/", "tmpfs", 0, NULL));
                CHECK("settimeofday", syscall(SYS_settimeofday, &(struct timespec){ 1, 0 }, NULL)));
    return 0;
}
