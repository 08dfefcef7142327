// cgroup.kill.
#include "../cgroup.h"
#include <sched.h>
#include <sys/prctl.h>

int main(void)
{
    cgroup_begin();
    EXPECT("a", "ok", make("a"));
    EXPECT("b", "ok", make("a/b"));
    EXPECT("zero", "ERANGE", put("a/cgroup.kill", "0"));
    EXPECT("two", "ERANGE", put("a/cgroup.kill", "2"));
    EXPECT("no number", "EINVAL", put("a/cgroup.kill", "all"));
    EXPECT("nobody there", "ok", put("a/cgroup.kill", "1\n"));
    pid_t one = -1, other = -1, beside = -1;
    DO(one = sleeper("a"); other = sleeper("a/b"); beside = sleeper("."));
    EXPECT("kill below only", "ok", put("a/b/cgroup.kill", "1"));
    int status = SIGKILL;
    DO(status = check_wait(other));
    CHECK_STATUS("below", status);
    EXPECT("above lives", "yes", waitpid(one, NULL, WNOHANG) == 0 ? "yes" : "no");
    DO(other = sleeper("a/b"));
    EXPECT("kill all", "ok", put("a/cgroup.kill", "1"));
    DO(status = check_wait(one));
    CHECK_STATUS("in it", status);
    DO(status = check_wait(other));
    CHECK_STATUS("below it", status);
    EXPECT("beside it", "yes", waitpid(beside, NULL, WNOHANG) == 0 ? "yes" : "no");
    DO(end(beside));
    EXPECT_SOON("empty", field("cgroup.events", "populated") == 0);

    // Oneself.
    DO(one = check_fork());
    if (one == 0) {
        REQUIRE(strcmp(put("a/cgroup.procs", "0"), "ok") == 0);
        put("a/cgroup.kill", "1");
        for (;;)
            pause();
    }
    status = SIGKILL;
    DO(status = check_wait(one));
    CHECK_STATUS("oneself", status);

    // Those who fork all the time do not outrun it: each forks, and its children do.
    REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    for (int round = 0; round < 5; round++) {
        DO(one = check_fork());
        if (one == 0) {
            put("a/cgroup.procs", "0");
            for (;;) {
                pid_t child = fork();
                if (child > 0 && getpid() % 2)
                    waitpid(-1, NULL, WNOHANG);
                if (child < 0)
                    sched_yield();
            }
        }
        DO(put("cgroup.subtree_control", "+pids"); put("a/pids.max", "200"));
        DO(while (strtol(get("a/pids.current"), NULL, 10) < 150) check_sleep_ms(1));
        EXPECT("kill those who fork", "ok", put("a/cgroup.kill", "1"));
        if (usable) {
            while (field("a/cgroup.events", "populated") != 0)
                while (waitpid(-1, &status, WNOHANG) > 0)
                    ;
            while (waitpid(-1, &status, 0) > 0)
                ;
        }
        EXPECT("all are dead", "0", get("a/pids.current"));
    }
    EXPECT("remove b", "ok", take("a/b"));
    EXPECT("remove a", "ok", take("a"));
    cgroup_end();
    return 0;
}
