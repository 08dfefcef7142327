// Which controllers groups have, and where processes may be then: cgroup.controllers, cgroup.subtree_control, cgroup.type.
#include "../cgroup.h"

// Whether a word is in a file with words.
static const char *lists(const char *path, const char *word)
{
    char text[600], pattern[64];
    snprintf(text, sizeof text, " %s ", get(path));
    snprintf(pattern, sizeof pattern, " %s ", word);
    return strstr(text, pattern) ? "yes" : "no";
}

int main(void)
{
    cgroup_begin();
    EXPECT("the root has pids", "yes", lists("../cgroup.controllers", "pids"));
    EXPECT("the root has cpu", "yes", lists("../cgroup.controllers", "cpu"));
    EXPECT("given pids", "yes", lists("cgroup.controllers", "pids"));
    EXPECT("gives nothing", "", get("cgroup.subtree_control"));
    EXPECT("a", "ok", make("a"));
    EXPECT("a has nothing", "", get("a/cgroup.controllers"));
    EXPECT("a cannot give pids", "ENOENT", put("a/cgroup.subtree_control", "+pids"));
    EXPECT("unknown", "EINVAL", put("cgroup.subtree_control", "+nothing"));
    EXPECT("no sign", "EINVAL", put("cgroup.subtree_control", "pids"));
    EXPECT("empty", "ok", put("cgroup.subtree_control", "\n"));
    EXPECT("take what is not given", "ok", put("cgroup.subtree_control", "-pids"));
    EXPECT("give", "ok", put("cgroup.subtree_control", "+pids"));
    EXPECT("given", "pids", get("cgroup.subtree_control"));
    EXPECT("a has it", "pids", get("a/cgroup.controllers"));
    EXPECT("a has its files", "max", get("a/pids.max"));
    EXPECT("not the other's", "ENOENT", get("a/cpu.weight"));
    EXPECT("change", "ok", put("a/pids.max", "7"));
    EXPECT("both at once", "ok", put("cgroup.subtree_control", "+cpu -pids"));
    EXPECT("cpu now", "cpu", get("cgroup.subtree_control"));
    EXPECT("pids is gone", "ENOENT", get("a/pids.max"));
    EXPECT("the last one counts", "ok", put("cgroup.subtree_control", "-pids +pids"));
    EXPECT("both", "cpu pids", get("cgroup.subtree_control"));
    EXPECT("the limit is forgotten", "max", get("a/pids.max"));
    EXPECT("a gives on", "ok", put("a/cgroup.subtree_control", "+pids +cpu"));
    EXPECT("a gives on what it needs", "EBUSY", put("cgroup.subtree_control", "-pids"));
    EXPECT("b", "ok", make("a/b"));
    EXPECT("b has both", "cpu pids", get("a/b/cgroup.controllers"));

    // Processes and controllers: pids and cpu tell threads apart, so they bear processes beside groups, as long as nobody is in those.
    pid_t first = -1, second = -1;
    DO(first = sleeper("a"));
    EXPECT("a bears processes", "domain threaded", get("a/cgroup.type"));
    EXPECT("b does not any more", "domain invalid", get("a/b/cgroup.type"));
    EXPECT("c", "ok", make("c"));
    DO(second = sleeper("c"));
    EXPECT("nobody gets into b", "EOPNOTSUPP", put_pid("a/b/cgroup.procs", second));
    EXPECT("nor gives it anything on", "EOPNOTSUPP", put("a/b/cgroup.subtree_control", "+pids"));
    EXPECT("the first leaves", "ok", put_pid("c/cgroup.procs", first));
    EXPECT("a is as it was", "domain", get("a/cgroup.type"));
    EXPECT("b is as it was", "domain", get("a/b/cgroup.type"));
    EXPECT("somebody in b", "ok", put_pid("a/b/cgroup.procs", second));
    EXPECT("nobody gets into a", "EBUSY", put_pid("a/cgroup.procs", first));
    EXPECT("into b", "ok", put_pid("a/b/cgroup.procs", first));
    EXPECT("a takes pids from b", "ok", put("a/cgroup.subtree_control", "-pids -cpu"));
    EXPECT("into a now", "ok", put_pid("a/cgroup.procs", first));
    EXPECT("a cannot give it again", "EBUSY", put("a/cgroup.subtree_control", "+pids"));
    DO(end(first); end(second));
    EXPECT_SOON("nobody in a", field("a/cgroup.events", "populated") == 0);
    // Linux has threaded groups, Ebb has not.
    EXPECT("threaded", "EOPNOTSUPP", is_ebb() ? put("a/b/cgroup.type", "threaded") : "EOPNOTSUPP");
    EXPECT("remove b", "ok", take("a/b"));
    EXPECT("remove a", "ok", take("a"));
    EXPECT("remove c", "ok", take("c"));
    cgroup_end();
    return 0;
}
