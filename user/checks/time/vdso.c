// The vDSO: found by hand as libraries do, its answers beside those of the system calls, and what a process may do with it.
#include "../check.h"
#include "../vdso.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>

typedef int gettime_fn(clockid_t, struct timespec *);
typedef int getday_fn(struct timeval *, struct timezone *);
typedef time_t time_fn(time_t *);
typedef int getcpu_fn(unsigned *, unsigned *, void *);

static gettime_fn *gettime, *getres;
static getday_fn *getday;
static time_fn *gettime_seconds;
static getcpu_fn *getcpu_number;

static const char *base;

static int look_up(void)
{
    base = vdso_base();
    if (!base)
        return 0;
    gettime = (gettime_fn *)vdso_find("__vdso_clock_gettime");
    getres = (gettime_fn *)vdso_find("__vdso_clock_getres");
    getday = (getday_fn *)vdso_find("__vdso_gettimeofday");
    gettime_seconds = (time_fn *)vdso_find("__vdso_time");
    getcpu_number = (getcpu_fn *)vdso_find("__vdso_getcpu");
    return gettime && getres && getday && gettime_seconds && getcpu_number;
}

static long long value(struct timespec t)
{
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

// Call, vDSO, call, vDSO: how often a clock was not in order, or not normalised.
static int out_of_order(clockid_t clock)
{
    int wrong = 0;
    long long last = -1;
    for (int i = 0; i < 2000; i++) {
        struct timespec t = { -1, -1 };
        int got = i % 2 ? gettime(clock, &t) : syscall(SYS_clock_gettime, clock, &t);
        wrong += got != 0 || t.tv_nsec < 0 || t.tv_nsec >= 1000000000 || value(t) < last;
        last = value(t);
    }
    return wrong;
}

// Threads on all cores hand one number on; whoever has it reads the clock.
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static long long last_seen;
static int went_back;

static void *watch(void *unused)
{
    for (int i = 0; i < 20000; i++) {
        struct timespec t;
        pthread_mutex_lock(&turn);
        gettime(CLOCK_MONOTONIC, &t);
        went_back += value(t) < last_seen;
        last_seen = value(t);
        pthread_mutex_unlock(&turn);
    }
    return unused;
}

// The line of /proc/self/maps that ends so: its rights, and its addresses.
static int find_line(const char *name, char rights[5], unsigned long range[2])
{
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    REQUIRE(maps);
    while (fgets(line, sizeof line, maps)) {
        line[strcspn(line, "\n")] = 0;
        size_t len = strlen(line);
        if (len > strlen(name) && strcmp(line + len - strlen(name), name) == 0)
            found = sscanf(line, "%lx-%lx %4s", &range[0], &range[1], rights) == 3;
    }
    fclose(maps);
    return found;
}

static int works(void)
{
    struct timespec t = { 0, 0 }, raw;
    struct timeval v;
    unsigned core = ~0u;
    return gettime(CLOCK_MONOTONIC, &t) == 0 && syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &raw) == 0 &&
           value(raw) >= value(t) && getday(&v, NULL) == 0 && getcpu_number(&core, NULL, NULL) == 0 && core < 4096;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        CHECK_TRUE("after-exec", look_up() && works());
        return 0;
    }
    CHECK_TRUE("found", look_up());
    static const char *const names[] = { "clock_gettime", "clock_getres", "gettimeofday", "time", "getcpu" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char long_name[64];
        snprintf(long_name, sizeof long_name, "__vdso_%s", names[i]);
        check_line("%s: %s\n", names[i], vdso_find(names[i]) && vdso_find(names[i]) == vdso_find(long_name) ? "both names" : "not both names");
    }
    const Elf64_Ehdr *header = (const void *)base;
    CHECK("type", header->e_type);
    CHECK("machine", header->e_machine);

    static const struct { const char *name; clockid_t clock; } clocks[] = {
        { "realtime", CLOCK_REALTIME }, { "monotonic", CLOCK_MONOTONIC }, { "raw", CLOCK_MONOTONIC_RAW },
        { "boot", CLOCK_BOOTTIME }, { "atomic", CLOCK_TAI }, { "realtime-coarse", CLOCK_REALTIME_COARSE },
        { "monotonic-coarse", CLOCK_MONOTONIC_COARSE }, { "process", CLOCK_PROCESS_CPUTIME_ID }, { "thread", CLOCK_THREAD_CPUTIME_ID },
    };
    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
        struct timespec ours = { -1, -1 }, theirs = { -2, -2 };
        CHECK(clocks[i].name, out_of_order(clocks[i].clock));
        CHECK("resolution", getres(clocks[i].clock, &ours));
        CHECK("resolution-call", syscall(SYS_clock_getres, clocks[i].clock, &theirs));
        CHECK_TRUE("same-resolution", ours.tv_sec == theirs.tv_sec && ours.tv_nsec == theirs.tv_nsec);
    }
    // What it does not know it asks the kernel; errors come back as the kernel says them.
    struct timespec t;
    CHECK("reserved-clock", gettime(10, &t));
    CHECK("unknown-clock", gettime(16, &t));
    CHECK("clock-33", gettime(33, &t));
    CHECK("negative-clock", gettime(-1, &t));
    CHECK("unknown-resolution", getres(99, &t));
    CHECK("no-resolution", getres(CLOCK_MONOTONIC, NULL));

    struct timeval v = { -1, -1 };
    struct timezone zone = { -77, -77 }, told = { -78, -78 };
    CHECK("day", getday(&v, &zone));
    CHECK_TRUE("microseconds", v.tv_usec >= 0 && v.tv_usec < 1000000);
    syscall(SYS_gettimeofday, NULL, &told);
    CHECK_TRUE("zone", zone.tz_minuteswest == told.tz_minuteswest && zone.tz_dsttime == told.tz_dsttime);
    CHECK("day-without-zone", getday(&v, NULL));
    CHECK("zone-without-day", getday(NULL, &zone));
    CHECK("neither", getday(NULL, NULL));
    int wrong = 0;
    for (int i = 0; i < 2000; i++) {
        struct timespec before, after;
        time_t stored = -1;
        gettime(CLOCK_REALTIME, &before);
        getday(&v, NULL);
        gettime(CLOCK_REALTIME, &after);
        wrong += value(before) / 1000 > v.tv_sec * 1000000ll + v.tv_usec || v.tv_sec * 1000000ll + v.tv_usec > value(after) / 1000;
        time_t seconds = gettime_seconds(&stored);
        gettime(CLOCK_REALTIME, &after);
        // Linux's seconds may be a tick late.
        wrong += stored != seconds || seconds < before.tv_sec - 1 || seconds > after.tv_sec;
    }
    CHECK("out-of-step", wrong);
    CHECK_TRUE("seconds", gettime_seconds(NULL) >= v.tv_sec - 1);
    // They go on while the only program computes, and while nobody does anything.
    time_t first = gettime_seconds(NULL);
    while (gettime_seconds(NULL) == first)
        ;
    CHECK_TRUE("next-second", gettime_seconds(NULL) > first);
    check_sleep_ms(1500);
    gettime(CLOCK_REALTIME, &t);
    CHECK_SOON("after-sleep", gettime_seconds(NULL) >= t.tv_sec && t.tv_sec > first);

    // On the one core that it may run on, it is on that core.
    cpu_set_t all, one;
    REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
    wrong = 0;
    for (unsigned core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &all))
            continue;
        unsigned number = ~0u, node = ~0u;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
        wrong += getcpu_number(&number, &node, NULL) != 0 || number != core;
        wrong += sched_getcpu() != (int)core;
        unsigned raw = ~0u, raw_node = ~0u;
        wrong += syscall(SYS_getcpu, &raw, &raw_node, NULL) != 0 || raw != core || raw_node != node;
    }
    REQUIRE(sched_setaffinity(0, sizeof all, &all) == 0);
    CHECK("wrong-core", wrong);
    CHECK("nothing-asked", getcpu_number(NULL, NULL, NULL));

    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_create(&threads[i], NULL, watch, NULL) == 0);
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    CHECK("went-back", went_back);

    // How it is mapped.
    char rights[5] = "", data_rights[5] = "";
    unsigned long code[2] = { 0 }, data[2] = { 0 };
    CHECK_TRUE("listed", find_line("[vdso]", rights, code) && find_line("[vvar]", data_rights, data));
    CHECK_STR("rights", rights);
    CHECK_STR("data-rights", data_rights);
    CHECK_TRUE("begins", code[0] == (unsigned long)base);
    CHECK("write-data", mprotect((void *)data[0], data[1] - data[0], PROT_READ | PROT_WRITE));
    CHECK("grow", (long)mremap((void *)code[0], code[1] - code[0], code[1] - code[0] + 4096, MREMAP_MAYMOVE));
    CHECK_CHILD("store-to-code", *(volatile char *)base = 1);
    CHECK_CHILD("store-to-data", *(volatile char *)data[0] = 1);
    CHECK_CHILD("after-fork", CHECK_TRUE("works", works()));
    // One's own copy of the code: nobody else sees it.
    CHECK_CHILD("own-copy", CHECK("allow", mprotect((void *)code[0], code[1] - code[0], PROT_READ | PROT_WRITE | PROT_EXEC));
                ((volatile char *)base)[1] = 'X'; CHECK_TRUE("changed", base[1] == 'X'); CHECK_TRUE("works", works()));
    CHECK_TRUE("unchanged", base[1] == 'E');
    char byte;
    struct iovec here = { &byte, 1 }, there = { (void *)base, 1 };
    CHECK("read-code", process_vm_readv(getpid(), &here, 1, &there, 1, 0));
    CHECK_CHILD("unmapped", CHECK("unmap", munmap((void *)code[0], code[1] - code[0])); CHECK("unmap-data", munmap((void *)data[0], data[1] - data[0]));
                CHECK_TRUE("gone", !find_line("[vdso]", rights, code) && !find_line("[vvar]", rights, code));
                CHECK("call", syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t)));
    CHECK_CHILD("exec", execl("/proc/self/exe", argv[0], "again", NULL));
    return 0;
}
