// cpu.max: groups that have used up their time wait for the next period.
#include "../cgroup_cpu.h"

#define QUOTA 20000L

// The group has had so many periods more than before, and in these no more than there is in each, with room for what is noticed late and for two that had begun.
static int is_held(const char *group, long periods)
{
    long before = stat_of(group, "nr_periods"), had = usage(group);
    for (;;) {
        long now = stat_of(group, "nr_periods");
        if (now >= before + periods)
            return usage(group) - had <= (now - before + 2) * (QUOTA + QUOTA / 2);
        check_sleep_ms(20);
    }
}

static int is_throttled(const char *group)
{
    long before = stat_of(group, "nr_throttled");
    return before > 0 && stat_of(group, "throttled_usec") > 0;
}

static int is_more(const char *group, long before)
{
    return usage(group) >= before + 100000;
}

static void formats(void)
{
    EXPECT("the root has none", "ENOENT", put("../cpu.max", "max"));
    EXPECT("no limit", "max 100000", get("a/cpu.max"));
    EXPECT("no burst", "0", get("a/cpu.max.burst"));
    EXPECT("a quota", "ok", put("a/cpu.max", "50000\n"));
    EXPECT("shown", "50000 100000", get("a/cpu.max"));
    EXPECT("and a period", "ok", put("a/cpu.max", "200000 1000000"));
    EXPECT("shown with it", "200000 1000000", get("a/cpu.max"));
    EXPECT("the period stays", "ok", put("a/cpu.max", "max"));
    EXPECT("shown as max", "max 1000000", get("a/cpu.max"));
    EXPECT("only a period", "ok", put("a/cpu.max", "max 50000"));
    EXPECT("shown as it is", "max 50000", get("a/cpu.max"));
    EXPECT("nothing", "EINVAL", put("a/cpu.max", " "));
    EXPECT("a word", "EINVAL", put("a/cpu.max", "much"));
    EXPECT("negative", "EINVAL", put("a/cpu.max", "-1"));
    EXPECT("too little", "EINVAL", put("a/cpu.max", "999"));
    EXPECT("too short a period", "EINVAL", put("a/cpu.max", "1000 999"));
    EXPECT("too long a period", "EINVAL", put("a/cpu.max", "1000 1000001"));
    EXPECT("too much", "EINVAL", put("a/cpu.max", "17592186044416"));
    EXPECT("the most", "ok", put("a/cpu.max", "17592186044415 100000"));
    EXPECT("a word behind it", "ok", put("a/cpu.max", "20000 long"));
    EXPECT("is not looked at", "20000 100000", get("a/cpu.max"));
    EXPECT("a burst", "ok", put("a/cpu.max.burst", "20000"));
    EXPECT("the burst", "20000", get("a/cpu.max.burst"));
    EXPECT("a longer one", "EINVAL", put("a/cpu.max.burst", "20001"));
    EXPECT("less than the burst", "EINVAL", put("a/cpu.max", "10000"));
    EXPECT("a negative one", "EINVAL", put("a/cpu.max.burst", "-1"));
    EXPECT("none again", "ok", put("a/cpu.max.burst", "0"));
    EXPECT("max again", "ok", put("a/cpu.max", "max 100000"));
    EXPECT("a burst of no limit", "ok", put("a/cpu.max.burst", "5000"));
    EXPECT("it holds", "0", put("a/cpu.max.burst", "0") ? "0" : "");
    // Without a quota nothing is counted.
    EXPECT("no periods", "yes", yes(stat_of("a", "nr_periods") == 0 && stat_of("a", "nr_throttled") == 0));
    EXPECT("keys", "yes", yes(strstr(get("a/cpu.stat"), "nr_periods 0 nr_throttled 0 throttled_usec 0") != NULL));
}

// What becomes of one that waits.
static void waiting(void)
{
    EXPECT("next to nothing", "ok", put("a/cpu.max", "1000 1000000"));
    pid_t child = hog("a/b");
    EXPECT_SOON("it waits", stat_of("a", "nr_throttled") > 0);
    long periods = 0;
    DO(periods = stat_of("a", "nr_periods"));
    DO(end(child));
    EXPECT("one that waits is killed", "yes", yes(stat_of("a", "nr_periods") <= periods + 2));
    child = hog("a/b");
    DO(periods = stat_of("a", "nr_throttled"));
    EXPECT_SOON("another waits", stat_of("a", "nr_throttled") > periods);
    DO(periods = stat_of("a", "nr_periods"));
    DO(REQUIRE(kill(child, SIGTERM) == 0));
    DO(check_wait(child));
    EXPECT("it ends by other signals, too", "yes", yes(stat_of("a", "nr_periods") <= periods + 2));

    child = hog("a/b");
    DO(periods = stat_of("a", "nr_throttled"));
    EXPECT_SOON("a third waits", stat_of("a", "nr_throttled") > periods);
    DO(periods = stat_of("a", "nr_periods"));
    EXPECT("freezing", "ok", put("a/cgroup.freeze", "1"));
    EXPECT_SOON("it is frozen", field("a/cgroup.events", "frozen") == 1);
    EXPECT("that does not wait", "yes", yes(stat_of("a", "nr_periods") <= periods + 2));
    EXPECT("thawing", "ok", put("a/cgroup.freeze", "0"));
    EXPECT_SOON("it is not frozen", field("a/cgroup.events", "frozen") == 0);

    long before = 0;
    DO(before = usage("a/b"));
    EXPECT("more", "ok", put("a/cpu.max", "max 1000000"));
    EXPECT_SOON("takes effect", is_more("a/b", before));
    EXPECT("less", "ok", put("a/cpu.max", "1000 1000000"));
    DO(periods = stat_of("a", "nr_throttled"));
    EXPECT_SOON("takes effect as well", stat_of("a", "nr_throttled") > periods);
    DO(before = usage("c"));
    EXPECT("moving on", "ok", put_pid("c/cgroup.procs", child));
    EXPECT_SOON("it runs", is_more("c", before));
    DO(before = stat_of("a", "nr_throttled"));
    EXPECT("moving back", "ok", put_pid("a/b/cgroup.procs", child));
    EXPECT_SOON("it waits again", stat_of("a", "nr_throttled") > before);
    DO(before = usage("a/b"));
    EXPECT("taking the controller", "ok", put("cgroup.subtree_control", "-cpu"));
    EXPECT_SOON("it runs again", is_more("a/b", before));
    EXPECT("giving it", "ok", put("cgroup.subtree_control", "+cpu"));
    EXPECT("the limit is forgotten", "max 100000", get("a/cpu.max"));
    EXPECT("next to nothing again", "ok", put("a/cpu.max", "1000 1000000"));
    EXPECT_SOON("it waits once more", stat_of("a", "nr_throttled") > 0);
    EXPECT("all are killed", "ok", put("a/cgroup.kill", "1"));
    DO(check_wait(child));
    EXPECT_SOON("nobody is left", field("a/cgroup.events", "populated") == 0);
}

// Real-time tasks do not wait.
static void real_time(void)
{
    EXPECT("a tenth", "ok", put("c/cpu.max", "10000 100000"));
    pid_t child = -1;
    DO(child = check_fork());
    if (child == 0) {
        struct sched_param urgent = { .sched_priority = 1 };
        REQUIRE(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &urgent) == 0);
        join("c");
        compute(used_ms() + 100);
        _exit(0);
    }
    DO(check_wait(child));
    EXPECT("one that is urgent had its time", "yes", yes(usage("c") >= 100000));
    EXPECT("and did not wait", "yes", yes(stat_of("c", "nr_throttled") == 0));
    EXPECT("no limit for c", "ok", put("c/cpu.max", "max"));
}

int main(void)
{
    cgroup_begin();
    EXPECT("give", "ok", put("cgroup.subtree_control", "+cpu"));
    EXPECT("a", "ok", make("a"));
    EXPECT("b", "ok", make("a/b"));
    EXPECT("c", "ok", make("c"));
    formats();

    EXPECT("a fifth", "ok", put("a/cpu.max", "20000 100000"));
    pid_t hogs[3];
    hogs[0] = hog("a/b");
    EXPECT("one is held", "yes", yes(!usable || is_held("a", 8)));
    EXPECT("it is told", "yes", yes(!usable || is_throttled("a")));
    hogs[1] = hog("a/b");
    hogs[2] = hog("a");
    EXPECT("three are held", "yes", yes(!usable || is_held("a", 8)));
    EXPECT("without the controller nothing is told", "-1", stat_of("a/b", "nr_periods") == -1 ? "-1" : "some");
    for (int i = 0; i < 3; i++)
        DO(end(hogs[i]));
    EXPECT_SOON("they have ended", field("a/cgroup.events", "populated") == 0);

    // The limit of the group above holds for those below.
    EXPECT("a gives", "ok", put("a/cgroup.subtree_control", "+cpu"));
    EXPECT("much more", "ok", put("a/b/cpu.max", "5000000 1000000"));
    hogs[0] = hog("a/b");
    hogs[1] = hog("a/b");
    EXPECT("those below are held", "yes", yes(!usable || is_held("a", 8)));
    EXPECT("their own limit is not in the way", "yes", yes(stat_of("a/b", "nr_throttled") <= 0));
    for (int i = 0; i < 2; i++)
        DO(end(hogs[i]));
    EXPECT_SOON("those have ended", field("a/cgroup.events", "populated") == 0);
    EXPECT("a takes it", "ok", put("a/cgroup.subtree_control", "-cpu"));
    waiting();
    real_time();
    EXPECT("remove b", "ok", take("a/b"));
    EXPECT("remove a", "ok", take("a"));
    EXPECT("remove c", "ok", take("c"));
    cgroup_end();
    return 0;
}
