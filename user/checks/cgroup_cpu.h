// For the checks of the controller cpu: programs that compute, and how much of the processor groups have had.
#ifndef EBB_CGROUP_CPU_H
#define EBB_CGROUP_CPU_H
#include "cgroup.h"
#include <sched.h>
#include <sys/resource.h>

static inline const char *yes(int condition)
{
    return condition ? "yes" : "no";
}

static inline long used_ms(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

// Computes until the process has had so much of the processor.
static inline void compute(long ms)
{
    while (used_ms() < ms)
        for (volatile int i = 0; i < 100000; i++)
            ;
}

static inline void join(const char *group)
{
    char file[128];
    snprintf(file, sizeof file, "%s/cgroup.procs", group);
    REQUIRE(strcmp(put(file, "0"), "ok") == 0);
}

// A child in the group that computes for ever.
static inline pid_t hog(const char *group)
{
    if (!usable)
        return -1;
    pid_t child = check_fork();
    if (child == 0) {
        join(group);
        for (volatile int i = 0;; i++)
            ;
    }
    return child;
}

// A number of the group's cpu.stat.
static inline long stat_of(const char *group, const char *key)
{
    char file[128];
    snprintf(file, sizeof file, "%s/cpu.stat", group);
    return field(file, key);
}

static inline long usage(const char *group)
{
    return stat_of(group, "usage_usec");
}

// This process and all that it makes run on one core.
static inline void stay_on_one_core(void)
{
    cpu_set_t cores;
    REQUIRE(sched_getaffinity(0, sizeof cores, &cores) == 0);
    int first = 0;
    while (!CPU_ISSET(first, &cores))
        first++;
    CPU_ZERO(&cores);
    CPU_SET(first, &cores);
    REQUIRE(sched_setaffinity(0, sizeof cores, &cores) == 0);
}
#endif
