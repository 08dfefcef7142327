// Scheduling, I/O priorities, barriers, limits: arguments that are wrong, and what is inherited.
#include "../check.h"
#include <sys/prctl.h>
#include <sys/resource.h>

struct param {
    int priority;
};

#define RESET 0x40000000

static void own(const char *name)
{
    struct param param = { -1 };
    long policy = syscall(SYS_sched_getscheduler, 0);
    REQUIRE(syscall(SYS_sched_getparam, 0, &param) == 0);
    check_line("%s: policy %lx priority %d nice %d\n", name, policy, param.priority, getpriority(PRIO_PROCESS, 0));
}

int main(void)
{
    struct param five = { 5 }, none = { 0 };
    uint64_t mask = 1;
    CHECK("getparam-null", syscall(SYS_sched_getparam, 0, NULL));
    CHECK("getparam-negative", syscall(SYS_sched_getparam, -1, &none));
    CHECK("getparam-nobody", syscall(SYS_sched_getparam, 0x3fffffff, &none));
    CHECK("setparam-null", syscall(SYS_sched_setparam, 0, NULL));
    CHECK("setparam-negative", syscall(SYS_sched_setparam, -1, &none));
    CHECK("setparam-bad", syscall(SYS_sched_setparam, 0, BAD_POINTER));
    CHECK("setparam-priority", syscall(SYS_sched_setparam, 0, &five));
    CHECK("setscheduler-null", syscall(SYS_sched_setscheduler, 0, 0, NULL));
    CHECK("setscheduler-policy", syscall(SYS_sched_setscheduler, 0, 99, &none));
    CHECK("setscheduler-negative", syscall(SYS_sched_setscheduler, 0, -1, &none));
    CHECK("getscheduler-negative", syscall(SYS_sched_getscheduler, -1));
    CHECK("getaffinity-negative", syscall(SYS_sched_getaffinity, -1, sizeof mask, &mask));
    CHECK("getaffinity-negative-short", syscall(SYS_sched_getaffinity, -1, 1, &mask));
    CHECK("setaffinity-negative", syscall(SYS_sched_setaffinity, -1, sizeof mask, &mask));
    CHECK("setaffinity-nobody", syscall(SYS_sched_setaffinity, 0x3fffffff, sizeof mask, &mask));
    for (int policy = 0; policy < 7; policy++) {
        CHECK("priority-max", syscall(SYS_sched_get_priority_max, policy));
        CHECK("priority-min", syscall(SYS_sched_get_priority_min, policy));
    }
    CHECK("priority-none", syscall(SYS_sched_get_priority_max, -1));
    struct timespec slice = { -1, -1 };
    CHECK("interval", syscall(SYS_sched_rr_get_interval, 0, &slice));
    CHECK_TRUE("interval-of-others", slice.tv_sec == 0 && slice.tv_nsec >= 0 && slice.tv_nsec < 1000000000);
    CHECK("interval-negative", syscall(SYS_sched_rr_get_interval, -1, &slice));
    CHECK("interval-nobody", syscall(SYS_sched_rr_get_interval, 0x3fffffff, &slice));
    CHECK("interval-bad", syscall(SYS_sched_rr_get_interval, 0, BAD_POINTER));
    CHECK("interval-null", syscall(SYS_sched_rr_get_interval, 0, NULL));
    CHECK("interval-nobody-bad", syscall(SYS_sched_rr_get_interval, 0x3fffffff, BAD_POINTER));
    CHECK_CHILD("interval-first-in", REQUIRE(syscall(SYS_sched_setscheduler, 0, 1, &five) == 0 && syscall(SYS_sched_rr_get_interval, 0, &slice) == 0);
                check_line("is: %ld %ld\n", (long)slice.tv_sec, slice.tv_nsec));
    CHECK_CHILD("interval-round-robin", REQUIRE(syscall(SYS_sched_setscheduler, 0, 2, &five) == 0 && syscall(SYS_sched_rr_get_interval, 0, &slice) == 0);
                CHECK_TRUE("some", slice.tv_sec == 0 && slice.tv_nsec > 0));
    CHECK_CHILD("interval-of-a-stranger", pid_t parent = getppid(); REQUIRE(setuid(1234) == 0); CHECK("call", syscall(SYS_sched_rr_get_interval, parent, &slice)));
    CHECK_CHILD("reset", REQUIRE(syscall(SYS_sched_setscheduler, 0, 1 | RESET, &five) == 0); own("parent"); CHECK_CHILD("forked", own("child")));
    CHECK_CHILD("reset-nice", REQUIRE(setpriority(PRIO_PROCESS, 0, -5) == 0 && syscall(SYS_sched_setscheduler, 0, 0 | RESET, &none) == 0); own("parent");
                CHECK_CHILD("forked", own("child")));
    CHECK_CHILD("reset-stays", REQUIRE(syscall(SYS_sched_setscheduler, 0, 0 | RESET, &none) == 0 && setuid(1234) == 0);
                CHECK("take-away", syscall(SYS_sched_setscheduler, 0, 0, &none)); CHECK("keep", syscall(SYS_sched_setscheduler, 0, 3 | RESET, &none)));
    CHECK_CHILD("idle-of-a-user", REQUIRE(setuid(1234) == 0 && syscall(SYS_sched_setscheduler, 0, 5, &none) == 0); CHECK("batch", syscall(SYS_sched_setscheduler, 0, 3, &none)));
    for (int level = 0; level < 8; level++)
        CHECK("best-effort", syscall(SYS_ioprio_set, 1, 0, 2 << 13 | level));
    CHECK("none", syscall(SYS_ioprio_set, 1, 0, 0));
    CHECK("none-with-level", syscall(SYS_ioprio_set, 1, 0, 3));
    CHECK("no-class", syscall(SYS_ioprio_set, 1, 0, 5 << 13));
    CHECK("idle-with-level", syscall(SYS_ioprio_set, 1, 0, 3 << 13 | 7));
    CHECK("get-idle", syscall(SYS_ioprio_get, 1, 0));
    CHECK_CHILD("barriers", CHECK("unregistered", syscall(SYS_membarrier, 8, 0)); CHECK("core-unregistered", syscall(SYS_membarrier, 32, 0));
                CHECK("global", syscall(SYS_membarrier, 1, 0)); CHECK("global-expedited", syscall(SYS_membarrier, 2, 0)); CHECK("register", syscall(SYS_membarrier, 16, 0));
                CHECK("registered", syscall(SYS_membarrier, 8, 0)); CHECK("core", syscall(SYS_membarrier, 32, 0)); CHECK("register-core", syscall(SYS_membarrier, 64, 0));
                CHECK("core-registered", syscall(SYS_membarrier, 32, 0)); CHECK_CHILD("inherited", CHECK("private", syscall(SYS_membarrier, 8, 0)));
                CHECK("flags", syscall(SYS_membarrier, 0, 99)); CHECK("no-command", syscall(SYS_membarrier, -1, 0)));
    struct rlimit above = { 100, (1UL << 30) + 1 };
    CHECK("files-above-nr-open", setrlimit(RLIMIT_NOFILE, &above));
    CHECK_CHILD("slack", REQUIRE(prctl(PR_SET_TIMERSLACK, 70000) == 0); CHECK_CHILD("inherited", CHECK("current", prctl(PR_GET_TIMERSLACK)); REQUIRE(prctl(PR_SET_TIMERSLACK, 5) == 0);
                CHECK("own", prctl(PR_GET_TIMERSLACK)); REQUIRE(prctl(PR_SET_TIMERSLACK, 0) == 0); CHECK("default", prctl(PR_GET_TIMERSLACK))));
    CHECK("get-cpuid", syscall(SYS_arch_prctl, 0x1011, 0));
    CHECK("prctl-timing", prctl(PR_SET_TIMING, 1, 0, 0, 0));
    CHECK("prctl-thp-junk", prctl(PR_GET_THP_DISABLE, 1, 1, 0, 0));
    CHECK("prctl-pdeathsig", prctl(PR_SET_PDEATHSIG, -1L, 0, 0, 0));
    int tsc = 0;
    CHECK("prctl-get-tsc", prctl(PR_GET_TSC, &tsc));
    check_line("tsc: %d\n", tsc);
    return 0;
}
