// The functions of the vDSO, without a C library that may or may not call them.
#pragma once
#include "../checks/vdso.h"
#include <sys/time.h>
#include <time.h>

// Each stays what it is, the system call, where there is no vDSO.
static int call_clock_gettime(clockid_t clock, struct timespec *time)
{
    return (int)call3(SYS_clock_gettime, clock, (long)time, 0);
}

static int call_gettimeofday(struct timeval *time, void *zone)
{
    return (int)call3(SYS_gettimeofday, (long)time, (long)zone, 0);
}

static time_t call_time(time_t *time)
{
    return call3(SYS_time, (long)time, 0, 0);
}

static int call_getcpu(unsigned *core, unsigned *node, void *unused)
{
    return (int)call3(SYS_getcpu, (long)core, (long)node, (long)unused);
}

static int (*vdso_clock_gettime)(clockid_t, struct timespec *) = call_clock_gettime;
static int (*vdso_gettimeofday)(struct timeval *, void *) = call_gettimeofday;
static time_t (*vdso_time)(time_t *) = call_time;
static int (*vdso_getcpu)(unsigned *, unsigned *, void *) = call_getcpu;

static void find_vdso(void)
{
    void *found;
    if ((found = vdso_find("__vdso_clock_gettime")))
        vdso_clock_gettime = (int (*)(clockid_t, struct timespec *))found;
    if ((found = vdso_find("__vdso_gettimeofday")))
        vdso_gettimeofday = (int (*)(struct timeval *, void *))found;
    if ((found = vdso_find("__vdso_time")))
        vdso_time = (time_t (*)(time_t *))found;
    if ((found = vdso_find("__vdso_getcpu")))
        vdso_getcpu = (int (*)(unsigned *, unsigned *, void *))found;
}
