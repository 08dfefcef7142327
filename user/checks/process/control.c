// prctl, nice, scheduling policy and affinity.
#include "../check.h"
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

int main(void)
{
    char name[32] = { 0 };
    CHECK("set-name", prctl(PR_SET_NAME, "a name that is too long"));
    CHECK("get-name", prctl(PR_GET_NAME, name));
    CHECK_STR("name", name);
    CHECK_STR("name-in-proc", check_read_file("/proc/self/comm"));
    CHECK_CHILD("name-inherited", REQUIRE(prctl(PR_GET_NAME, name) == 0); CHECK_STR("child-name", name));
    CHECK("dumpable", prctl(PR_GET_DUMPABLE));
    CHECK("set-dumpable", prctl(PR_SET_DUMPABLE, 0) == 0 ? prctl(PR_GET_DUMPABLE) : -1);
    CHECK("set-dumpable-bad", prctl(PR_SET_DUMPABLE, 5));
    CHECK("set-no-new-privileges", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK("now", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    CHECK("clear-refused", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    CHECK("timer-slack", prctl(PR_GET_TIMERSLACK));
    CHECK("keep-capabilities", prctl(PR_GET_KEEPCAPS));
    CHECK("unknown", prctl(12345));
    int before = getpriority(PRIO_PROCESS, 0);
    CHECK("nice", before > 16 || nice(3) == before + 3);
    CHECK("nice-clamped", setpriority(PRIO_PROCESS, 0, 100) == 0 ? getpriority(PRIO_PROCESS, 0) : -1);
    CHECK("priority-bad-which", getpriority(9, 0));
    CHECK("priority-no-process", setpriority(PRIO_PROCESS, 0x3fffffff, 0));
    CHECK_CHILD("lower-unprivileged", REQUIRE(setuid(1000) == 0); CHECK("refused", setpriority(PRIO_PROCESS, 0, -5)));
    CHECK("policy", syscall(SYS_sched_getscheduler, 0));
    struct sched_param parameter = { 0 };
    CHECK("parameter", syscall(SYS_sched_getparam, 0, &parameter) == 0 ? parameter.sched_priority : -1);
    parameter.sched_priority = 5;
    CHECK("bad-priority", syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &parameter));
    CHECK("bad-policy", syscall(SYS_sched_setscheduler, 0, 99, &parameter));
    parameter.sched_priority = 0;
    CHECK("batch", syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &parameter) == 0 ? syscall(SYS_sched_getscheduler, 0) : -1);
    CHECK("fifo-range", sched_get_priority_min(SCHED_FIFO) * 100 + sched_get_priority_max(SCHED_FIFO));
    CHECK("other-range", sched_get_priority_max(SCHED_OTHER));
    CHECK("bad-range", sched_get_priority_max(99));
    CHECK("yield", sched_yield());
    cpu_set_t set;
    CPU_ZERO(&set);
    CHECK("affinity", sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0);
    cpu_set_t nothing;
    CPU_ZERO(&nothing);
    CHECK("no-processor", sched_setaffinity(0, sizeof nothing, &nothing));
    CHECK("affinity-again", sched_setaffinity(0, sizeof set, &set));
    CHECK("affinity-no-process", sched_getaffinity(0x3fffffff, sizeof set, &set));
    unsigned cpu = 99999;
    CHECK("getcpu", syscall(SYS_getcpu, &cpu, NULL, NULL) == 0 && CPU_ISSET(cpu, &set));
    return 0;
}
