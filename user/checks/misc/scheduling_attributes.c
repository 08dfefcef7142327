// How a thread is scheduled, in one structure of several versions: sched_getattr(2), sched_setattr(2).
#include "../check.h"
#include <sched.h>
#include <sys/resource.h>

struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t least, most;
    uint64_t behind[2];
};

enum { SIZE = 56, FIRST_SIZE = 48, RESET = 1, KEEP_POLICY = 8, KEEP_PARAMETERS = 0x10 };

static struct attributes now;

static long get(void)
{
    memset(&now, 0xee, sizeof now);
    return syscall(SYS_sched_getattr, 0, &now, SIZE, 0);
}

static long set(struct attributes attributes)
{
    now = attributes;
    return syscall(SYS_sched_setattr, 0, &now, 0);
}

static void told(void)
{
    CHECK("get", get());
    CHECK("size", now.size);
    CHECK("policy", now.policy);
    CHECK("flags", now.flags);
    CHECK("nice", now.nice);
    CHECK("priority", now.priority);
    CHECK_TRUE("nothing-behind", now.behind[0] == 0xeeeeeeeeeeeeeeeeu);
    memset(&now, 0xee, sizeof now);
    CHECK("get-first-version", syscall(SYS_sched_getattr, 0, &now, FIRST_SIZE, 0));
    CHECK("first-size", now.size);
    CHECK_TRUE("nothing-behind-first", now.least == 0xeeeeeeeeu);
    CHECK("get-more", syscall(SYS_sched_getattr, 0, &now, sizeof now, 0));
    CHECK("size-of-more", now.size);
}

static void refused(void)
{
    CHECK("get-nothing", syscall(SYS_sched_getattr, 0, NULL, SIZE, 0));
    CHECK("get-too-little", syscall(SYS_sched_getattr, 0, &now, FIRST_SIZE - 1, 0));
    CHECK("get-too-much", syscall(SYS_sched_getattr, 0, &now, 4097, 0));
    CHECK("get-flags", syscall(SYS_sched_getattr, 0, &now, SIZE, 1));
    CHECK("get-negative", syscall(SYS_sched_getattr, -1, &now, SIZE, 0));
    CHECK("get-nobody", syscall(SYS_sched_getattr, 0x3fffffff, &now, SIZE, 0));
    CHECK("get-bad", syscall(SYS_sched_getattr, 0, BAD_POINTER, SIZE, 0));
    CHECK("set-nothing", syscall(SYS_sched_setattr, 0, NULL, 0));
    CHECK("set-bad", syscall(SYS_sched_setattr, 0, BAD_POINTER, 0));
    CHECK("set-flags", syscall(SYS_sched_setattr, 0, &(struct attributes){ .size = SIZE }, 1));
    CHECK("set-nobody", syscall(SYS_sched_setattr, 0x3fffffff, &(struct attributes){ .size = SIZE }, 0));
    CHECK("set-too-little", set((struct attributes){ .size = FIRST_SIZE - 1 }));
    CHECK("told-size", now.size);
    CHECK("set-too-much", set((struct attributes){ .size = 4097 }));
    CHECK("set-more", set((struct attributes){ .size = sizeof now, .behind = { 0, 1 } }));
    CHECK("told-size-again", now.size);
    CHECK("set-more-of-nothing", set((struct attributes){ .size = sizeof now }));
    CHECK("set-unknown-policy", set((struct attributes){ .size = SIZE, .policy = 99 }));
    CHECK("set-negative-policy", set((struct attributes){ .size = SIZE, .policy = ~0u }));
    CHECK("set-unknown-flag", set((struct attributes){ .size = SIZE, .flags = 1ull << 40 }));
    CHECK("set-priority-without", set((struct attributes){ .size = SIZE, .priority = 1 }));
}

static void changed(void)
{
    CHECK("set-nice", set((struct attributes){ .size = SIZE, .nice = 5 }));
    CHECK("is-nice", getpriority(PRIO_PROCESS, 0));
    CHECK("set-batch", set((struct attributes){ .size = 0, .policy = SCHED_BATCH, .nice = 7, .flags = RESET }));
    CHECK("is-batch", syscall(SYS_sched_getscheduler, 0));
    CHECK("get-batch", get() == 0 ? now.policy : -1);
    CHECK("nice-of-batch", now.nice);
    CHECK("reset-of-batch", now.flags);
    CHECK("keep-policy", set((struct attributes){ .size = SIZE, .nice = 9, .flags = KEEP_POLICY | RESET }));
    CHECK("policy-kept", get() == 0 ? now.policy : -1);
    CHECK("with-nice", now.nice);
    CHECK("keep-parameters", set((struct attributes){ .size = SIZE, .policy = SCHED_OTHER, .nice = 1, .flags = KEEP_PARAMETERS | RESET }));
    CHECK("parameters-kept", get() == 0 ? now.nice : -1);
    CHECK("with-policy", now.policy);
    CHECK("too-nice", set((struct attributes){ .size = SIZE, .nice = 100, .flags = RESET }) == 0 ? getpriority(PRIO_PROCESS, 0) : -1);
    CHECK_CHILD("not-allowed", {
        struct rlimit none = { 0, 0 };
        if (setrlimit(RLIMIT_NICE, &none) != 0 || setresuid(65534, 65534, 65534) != 0)
            _exit(1);
        CHECK("less-nice", set((struct attributes){ .size = SIZE, .nice = 3 }));
        CHECK("of-another", syscall(SYS_sched_setattr, getppid(), &(struct attributes){ .size = SIZE, .nice = 19, .flags = RESET }, 0));
    });
}

int main(void)
{
    told();
    refused();
    changed();
    return 0;
}
