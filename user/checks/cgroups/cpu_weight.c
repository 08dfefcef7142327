// cpu.weight: who gets how much of one core. What groups have had is compared with what others had meanwhile.
#include "../cgroup_cpu.h"

// How much of the processor somebody has had, in microseconds.
typedef long used(const void *by);

static long by_group(const void *group)
{
    return usage(group);
}

static long by_process(const void *process)
{
    clockid_t clock;
    struct timespec used = { 0 };
    REQUIRE(clock_getcpuclockid(*(const pid_t *)process, &clock) == 0 && clock_gettime(clock, &used) == 0);
    return used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

// Whether of what both have from now on the first one's part is from `least` to `most` percent, once they have had some. A machine that stands still now and then gives all of that time to whoever ran just then, who
// has less for seconds after it: so they are watched for longer where it is not.
static int is_share(used *used, const void *one, const void *other, long least, long most)
{
    long before = used(one), before_other = used(other);
    for (;;) {
        long had = used(one) - before, all = had + used(other) - before_other;
        int holds = had * 100 >= least * all && had * 100 <= most * all;
        if (all >= (holds ? 600000 : 15000000))
            return holds;
        check_sleep_ms(20);
    }
}

#define EXPECT_SHARE(name, one, other, least, most) \
    EXPECT(name, "yes", yes(!usable || is_share(by_group, one, other, least, most)))
#define EXPECT_SHARE_OF_PROCESS(name, one, other, least, most) \
    EXPECT(name, "yes", yes(!usable || is_share(by_process, &(one), &(other), least, most)))

// One child after the other, each of which computes for some milliseconds.
static void make_children(const char *group)
{
    join(group);
    for (;;) {
        pid_t child = fork();
        if (child == 0) {
            compute(3);
            _exit(0);
        }
        check_wait(child);
    }
}

int main(void)
{
    cgroup_begin();
    stay_on_one_core();
    EXPECT("give", "ok", put("cgroup.subtree_control", "+cpu"));
    EXPECT("light", "ok", make("light"));
    EXPECT("heavy", "ok", make("heavy"));
    EXPECT("300", "ok", put("heavy/cpu.weight", "300"));

    pid_t hogs[5];
    for (int i = 0; i < 5; i++)
        hogs[i] = hog(i < 4 ? "light" : "heavy");
    EXPECT_SHARE("one beside four with a third of the weight", "heavy", "light", 67, 83);
    EXPECT("light becomes heavier", "ok", put("light/cpu.weight", "900"));
    EXPECT_SHARE("four beside one with a third of the weight", "light", "heavy", 67, 83);
    EXPECT("as heavy", "ok", put("light/cpu.weight.nice", "0"));
    EXPECT("all the same", "ok", put("heavy/cpu.weight", "100"));
    EXPECT_SHARE("one beside four of the same weight", "heavy", "light", 42, 58);

    // Who moves has a part of where it is.
    DO(put_pid("heavy/cgroup.procs", hogs[0]));
    DO(put_pid("heavy/cgroup.procs", hogs[1]));
    EXPECT_SHARE("three beside two", "heavy", "light", 42, 58);
    for (int i = 0; i < 5; i++)
        DO(end(hogs[i]));

    // Nice values count within a group.
    hogs[0] = hog("light");
    hogs[1] = hog("light");
    DO(REQUIRE(setpriority(PRIO_PROCESS, hogs[0], 19) == 0 && setpriority(PRIO_PROCESS, hogs[1], 10) == 0));
    hogs[2] = hog("heavy");
    EXPECT_SHARE("two that are nice beside one that is not", "light", "heavy", 42, 58);
    EXPECT_SHARE_OF_PROCESS("nice 19 beside nice 10", hogs[0], hogs[1], 5, 25);
    DO(REQUIRE(setpriority(PRIO_PROCESS, hogs[0], 0) == 0 && setpriority(PRIO_PROCESS, hogs[1], 0) == 0));
    EXPECT_SHARE_OF_PROCESS("both as before", hogs[0], hogs[1], 42, 58);
    for (int i = 0; i < 3; i++)
        DO(end(hogs[i]));

    // A group of groups.
    EXPECT("heavy again", "ok", put("heavy/cpu.weight", "300"));
    EXPECT("heavy gives", "ok", put("heavy/cgroup.subtree_control", "+cpu"));
    EXPECT("x", "ok", make("heavy/x"));
    EXPECT("y", "ok", make("heavy/y"));
    EXPECT("y is heavier", "ok", put("heavy/y/cpu.weight", "200"));
    hogs[0] = hog("light");
    hogs[1] = hog("light");
    hogs[2] = hog("heavy/x");
    hogs[3] = hog("heavy/x");
    hogs[4] = hog("heavy/y");
    EXPECT_SHARE("the upper level", "heavy", "light", 67, 83);
    EXPECT_SHARE("the lower level", "heavy/y", "heavy/x", 58, 75);
    for (int i = 0; i < 5; i++)
        DO(end(hogs[i]));
    EXPECT("light is as it was", "ok", put("light/cpu.weight", "100"));
    EXPECT("heavy is as it was", "ok", put("heavy/cpu.weight", "100"));

    // What those before them had is not forgotten when new ones come.
    pid_t maker = -1;
    DO(maker = check_fork());
    if (maker == 0)
        make_children("light");
    hogs[0] = hog("heavy/x");
    EXPECT_SHARE("one that makes others all the time", "light", "heavy", 25, 65);
    DO(put("light/cgroup.kill", "1"));
    DO(check_wait(maker));
    DO(end(hogs[0]));

    // Where the controller is not enabled, those below count as those above.
    EXPECT("weight of x", "ok", put("heavy/x/cpu.weight", "10000"));
    EXPECT("taking it back", "ok", put("heavy/cgroup.subtree_control", "-cpu"));
    hogs[0] = hog("heavy/x");
    hogs[1] = hog("heavy/y");
    hogs[2] = hog("light");
    EXPECT_SHARE("x beside y", "heavy/x", "heavy/y", 42, 58);
    EXPECT_SHARE("both beside light", "heavy", "light", 42, 58);
    EXPECT("giving it again", "ok", put("heavy/cgroup.subtree_control", "+cpu"));
    EXPECT("the weight is forgotten", "100", get("heavy/x/cpu.weight"));
    EXPECT("x is heavier", "ok", put("heavy/x/cpu.weight", "300"));
    EXPECT_SHARE("x beside y again", "heavy/x", "heavy/y", 67, 83);
    for (int i = 0; i < 3; i++)
        DO(end(hogs[i]));
    EXPECT_SOON("all have ended", field("cgroup.events", "populated") == 0);
    EXPECT("remove x", "ok", take("heavy/x"));
    EXPECT("remove y", "ok", take("heavy/y"));
    EXPECT("remove heavy", "ok", take("heavy"));
    EXPECT("remove light", "ok", take("light"));
    cgroup_end();
    return 0;
}
