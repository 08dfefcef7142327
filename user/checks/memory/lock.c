// mlock, mlock2, mlockall and their opposites: what is counted, what is brought in, and the limit.
#include "../check.h"
#include <sys/mman.h>
#include <sys/resource.h>

#define PAGE 4096L
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif
#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

// What is locked, in pages.
static long locked(void)
{
    char *line = strstr(check_read_file("/proc/self/status"), "VmLck:");
    return line ? strtol(line + 6, NULL, 10) / 4 : -1;
}

static char *map(long pages)
{
    char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(p != MAP_FAILED);
    return p;
}

static int resident(char *p, long pages)
{
    unsigned char in[64];
    REQUIRE(pages <= 64 && mincore(p, pages * PAGE, in) == 0);
    int count = 0;
    for (long i = 0; i < pages; i++)
        count += in[i] & 1;
    return count;
}

static void limit_to(long pages)
{
    struct rlimit limit = { pages * PAGE, pages * PAGE };
    REQUIRE(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
}

// From here on the limit counts.
static void become_user(long pages)
{
    limit_to(pages);
    REQUIRE(setuid(1000) == 0);
}

static void ranges(void)
{
    char *p = map(16);
    CHECK("on-fault", syscall(SYS_mlock2, p, 8 * PAGE, MLOCK_ONFAULT));
    CHECK("on-fault-resident", resident(p, 16));
    CHECK("on-fault-locked", locked());
    p[0] = 1;
    CHECK("touched-resident", resident(p, 16));
    CHECK("again-now", syscall(SYS_mlock2, p, 4 * PAGE, 0));
    CHECK("now-resident", resident(p, 16));
    CHECK("now-locked", locked());
    CHECK("unaligned", syscall(SYS_mlock2, p + 8 * PAGE + 5, PAGE, 0));
    CHECK("unaligned-resident", resident(p, 16));
    CHECK("unaligned-locked", locked());
    CHECK("flags", syscall(SYS_mlock2, p, PAGE, 2));
    CHECK("flags-both", syscall(SYS_mlock2, p, PAGE, 3));
    CHECK("nothing", syscall(SYS_mlock2, p, 0L, 0));
    CHECK("nothing-unmapped", syscall(SYS_mlock2, BAD_POINTER, 0L, 0));
    CHECK("unmapped", syscall(SYS_mlock2, BAD_POINTER, PAGE, 0));
    CHECK("overflow", syscall(SYS_mlock2, p, -PAGE, 0));
    CHECK("too-long", syscall(SYS_mlock2, p, -1L, 0));
    REQUIRE(munmap(p + 12 * PAGE, PAGE) == 0);
    CHECK("up-to-hole", syscall(SYS_mlock2, p + 11 * PAGE, 4 * PAGE, MLOCK_ONFAULT));
    CHECK("up-to-hole-locked", locked());
    REQUIRE(mprotect(p + 13 * PAGE, PAGE, PROT_NONE) == 0);
    CHECK("no-access", syscall(SYS_mlock2, p + 13 * PAGE, PAGE, 0));
    CHECK("no-access-on-fault", syscall(SYS_mlock2, p + 13 * PAGE, PAGE, MLOCK_ONFAULT));
    CHECK("munlock-part", munlock(p + PAGE, 2 * PAGE));
    CHECK("munlock-part-locked", locked());
    CHECK("munlock-hole", munlock(p, 16 * PAGE));
    CHECK("munmap-locked", munmap(p, 4 * PAGE));
    CHECK("munmapped", locked());
    CHECK("munlockall", munlockall());
    CHECK("none-locked", locked());
    CHECK_CHILD("not-inherited", char *q = map(4); REQUIRE(mlock(q, 4 * PAGE) == 0); CHECK("parent", locked()); CHECK_CHILD("child", CHECK("locked", locked())));
}

static void everything(void)
{
    CHECK("mlockall-nothing", mlockall(0));
    CHECK("mlockall-on-fault-only", mlockall(MCL_ONFAULT));
    CHECK("mlockall-unknown", mlockall(8));
    char *p = map(8);
    CHECK("current-on-fault", mlockall(MCL_CURRENT | MCL_ONFAULT));
    CHECK("current-on-fault-resident", resident(p, 8));
    CHECK_TRUE("current-on-fault-locked", locked() >= 8);
    CHECK("current", mlockall(MCL_CURRENT));
    CHECK("current-resident", resident(p, 8));
    long before = locked();
    p = map(8);
    CHECK_TRUE("later-not-locked", locked() == before);
    CHECK("later-not-resident", resident(p, 8));
    CHECK("munlockall-after", munlockall());
    CHECK("munlockall-locked", locked());
}

static void future(void)
{
    CHECK("future", mlockall(MCL_FUTURE));
    CHECK("future-locks-nothing-yet", locked());
    char *p = map(8);
    CHECK("future-locked", locked());
    CHECK("future-resident", resident(p, 8));
    REQUIRE(munmap(p + 2 * PAGE, 2 * PAGE) == 0);
    CHECK("future-unmapped", locked());
    REQUIRE(mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    CHECK("future-no-access", locked());
    char *start = (char *)syscall(SYS_brk, 0);
    REQUIRE((char *)syscall(SYS_brk, start + 3 * PAGE) == start + 3 * PAGE);
    CHECK("future-break", locked());
    CHECK_TRUE("future-break-resident", resident((char *)(((uintptr_t)start + PAGE - 1) & -PAGE), 2) == 2);
    char *grown = mremap(p, 2 * PAGE, 5 * PAGE, MREMAP_MAYMOVE);
    CHECK_TRUE("grows", grown != MAP_FAILED);
    CHECK("grown-locked", locked());
    CHECK("grown-resident", resident(grown, 5));
    CHECK("future-on-fault", mlockall(MCL_FUTURE | MCL_ONFAULT));
    p = map(8);
    CHECK("future-on-fault-resident", resident(p, 8));
    CHECK("future-on-fault-locked", locked());
    CHECK("current-ends-future", mlockall(MCL_CURRENT | MCL_ONFAULT));
    long before = locked();
    map(8);
    CHECK_TRUE("ended", locked() == before);
    REQUIRE(mlockall(MCL_FUTURE) == 0);
    CHECK_CHILD("future-not-inherited", map(8); CHECK("locked", locked()));
    CHECK("munlockall-ends-it", munlockall());
    p = map(8);
    CHECK("after-munlockall", locked());
    CHECK("after-munlockall-resident", resident(p, 8));
}

static void limits(void)
{
    CHECK_CHILD("no-limit", become_user(0); char *p = map(1); CHECK("mlock", mlock(p, PAGE)); CHECK("mlock2", syscall(SYS_mlock2, p, PAGE, MLOCK_ONFAULT));
                CHECK("mlockall", mlockall(MCL_CURRENT)); CHECK("future", mlockall(MCL_FUTURE)); CHECK("munlock", munlock(p, PAGE)); CHECK("munlockall", munlockall());
                CHECK_MAP("map", syscall(SYS_mmap, NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0)));
    CHECK_CHILD("eight", become_user(8); char *p = map(16); CHECK("mlock", mlock(p, 8 * PAGE)); CHECK("same", mlock(p, 8 * PAGE)); CHECK("more", mlock(p, 9 * PAGE));
                CHECK("other", mlock(p + 8 * PAGE, PAGE)); CHECK("other-on-fault", syscall(SYS_mlock2, p + 8 * PAGE, PAGE, MLOCK_ONFAULT)); CHECK("locked", locked());
                CHECK_MAP("map", syscall(SYS_mmap, NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
                CHECK_MAP("grow", mremap(p, 16 * PAGE, 20 * PAGE, MREMAP_MAYMOVE)); CHECK("split-grow", munlock(p + 7 * PAGE, PAGE));
                CHECK_MAP("map-one", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0)); CHECK("locked-then", locked());
                CHECK_MAP("grow-locked", mremap(p, 7 * PAGE, 8 * PAGE, MREMAP_MAYMOVE)); CHECK("all", mlockall(MCL_CURRENT)); CHECK("all-on-fault", mlockall(MCL_CURRENT | MCL_ONFAULT)));
    CHECK_CHILD("future-limit", become_user(8); CHECK("future", mlockall(MCL_FUTURE | MCL_ONFAULT)); map(6);
                CHECK_MAP("too-much", mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); CHECK("locked", locked());
                CHECK_MAP("fits", mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
                long end = syscall(SYS_brk, 0); CHECK_TRUE("break", syscall(SYS_brk, end + 2 * PAGE) == end); CHECK("both", locked()));
}

int main(void)
{
    REQUIRE(locked() == 0);
    CHECK_CHILD("ranges", ranges());
    CHECK_CHILD("everything", everything());
    CHECK_CHILD("future", future());
    CHECK_CHILD("limits", limits());
    return 0;
}
