// The controller cpu, and the times of groups.
#include "../cgroup_cpu.h"

static int adds_up(const char *path)
{
    long all, user, system;
    return sscanf(get(path), "usage_usec %ld user_usec %ld system_usec %ld", &all, &user, &system) == 3
        && labs(all - user - system) <= 1;
}

int main(void)
{
    cgroup_begin();
    EXPECT("give", "ok", put("cgroup.subtree_control", "+cpu"));
    EXPECT("a", "ok", make("a"));
    EXPECT("b", "ok", make("a/b"));
    EXPECT("weight", "100", get("a/cpu.weight"));
    EXPECT("nice", "0", get("a/cpu.weight.nice"));
    EXPECT("set", "ok", put("a/cpu.weight", "1\n"));
    EXPECT("set shown", "1", get("a/cpu.weight"));
    EXPECT("most", "ok", put("a/cpu.weight", "10000"));
    EXPECT("most shown", "10000", get("a/cpu.weight"));
    EXPECT("none", "ERANGE", put("a/cpu.weight", "0"));
    EXPECT("too much", "ERANGE", put("a/cpu.weight", "10001"));
    EXPECT("no number", "EINVAL", put("a/cpu.weight", "heavy"));
    EXPECT("nice 5", "ok", put("a/cpu.weight.nice", "5"));
    EXPECT("nice 5 as weight", "33", get("a/cpu.weight"));
    EXPECT("nice 5 shown", "5", get("a/cpu.weight.nice"));
    EXPECT("nice -20", "ok", put("a/cpu.weight.nice", "-20"));
    EXPECT("nice -20 as weight", "8668", get("a/cpu.weight"));
    EXPECT("nice 20", "ERANGE", put("a/cpu.weight.nice", "20"));
    EXPECT("nice -21", "ERANGE", put("a/cpu.weight.nice", "-21"));
    EXPECT("between two", "ok", put("a/cpu.weight", "90"));
    EXPECT("the nearest nice", "0", get("a/cpu.weight.nice"));
    EXPECT("nothing used", "0", usable && field("a/cpu.stat", "usage_usec") == 0 ? "0" : "some");
    EXPECT("periods", "yes", yes(field("a/cpu.stat", "nr_periods") == 0));
    EXPECT("no periods without the controller", "yes", yes(field("a/b/cpu.stat", "nr_periods") == -1));
    EXPECT("the root's adds up", "yes", yes(adds_up("../cpu.stat")));

    // One that has ended, one that has moved on, and one that is there.
    pid_t child = -1;
    DO(child = check_fork());
    if (child == 0) {
        put("a/b/cgroup.procs", "0");
        compute(60);
        _exit(0);
    }
    DO(check_wait(child));
    EXPECT("it has ended", "yes", yes(field("a/b/cpu.stat", "usage_usec") >= 50000));
    EXPECT("also above", "yes", yes(field("a/cpu.stat", "usage_usec") >= 50000));
    EXPECT("adds up", "yes", yes(adds_up("a/cpu.stat")));
    EXPECT("c", "ok", make("c"));
    long before = 0;
    DO(before = field("a/cpu.stat", "usage_usec"));
    DO(child = check_fork());
    if (child == 0) {
        put("a/b/cgroup.procs", "0");
        compute(60);
        put("c/cgroup.procs", "0");
        for (;;)
            pause();
    }
    EXPECT_SOON("it has moved on", field("c/cgroup.events", "populated") == 1);
    EXPECT("what it had used stays", "yes", yes(field("a/cpu.stat", "usage_usec") >= before + 50000));
    EXPECT("and is not told twice", "yes", yes(field("c/cpu.stat", "usage_usec") < 50000));
    DO(end(child));
    DO(child = check_fork());
    if (child == 0) {
        put("c/cgroup.procs", "0");
        for (;;)
            ;
    }
    EXPECT_SOON("it is there", field("c/cpu.stat", "usage_usec") >= 30000);
    DO(end(child));
    EXPECT_SOON("all have ended", field("cgroup.events", "populated") == 0);
    EXPECT("remove b", "ok", take("a/b"));
    EXPECT("remove a", "ok", take("a"));
    EXPECT("remove c", "ok", take("c"));
    cgroup_end();
    return 0;
}
