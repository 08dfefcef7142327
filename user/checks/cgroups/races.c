// What several do at the same time, with an end that is known: moves against exits and forks, removal against clones into it, freezing against forks.
#include "../cgroup.h"
#include <sched.h>

// Runs a block in a child again and again until it is killed.
#define FOREVER(pid, ...)         \
    do {                          \
        pid = check_fork();       \
        if (pid == 0)             \
            for (;;) {            \
                __VA_ARGS__;      \
            }                     \
    } while (0)

static void reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

int main(void)
{
    cgroup_begin();
    DO(put("cgroup.subtree_control", "+pids"));
    EXPECT("a", "ok", make("a"));
    EXPECT("b", "ok", make("b"));

    // Children come and go in a, while all that is there is moved to b and back.
    pid_t forks = -1, moves = -1;
    if (usable) {
        FOREVER(forks, {
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            while (waitpid(child, NULL, 0) == -1 && errno == EINTR)
                ;
        });
        REQUIRE(strcmp(put_pid("a/cgroup.procs", forks), "ok") == 0);
        FOREVER(moves, {
            static char list[4096];
            for (int way = 0; way < 2; way++) {
                snprintf(list, sizeof list, "%s", get(way ? "b/cgroup.procs" : "a/cgroup.procs"));
                char *rest = list;
                for (char *word; (word = strsep(&rest, " ")) != NULL;)
                    if (*word)
                        put(way ? "a/cgroup.procs" : "b/cgroup.procs", word);
            }
        });
        check_sleep_ms(300);
        end(moves);
        end(forks);
        reap();
    }
    EXPECT_SOON("a is empty", strcmp(get("a/cgroup.events"), "populated 0 frozen 0") == 0);
    EXPECT_SOON("b is empty", strcmp(get("b/cgroup.events"), "populated 0 frozen 0") == 0);
    EXPECT_SOON("a counts nobody", strcmp(get("a/pids.current"), "0") == 0);
    EXPECT_SOON("b counts nobody", strcmp(get("b/pids.current"), "0") == 0);

    // A group is made and removed, while another clones into it.
    if (usable) {
        FOREVER(forks, {
            int fd = open(at("c"), O_RDONLY | O_DIRECTORY);
            long child = clone_into(fd, INTO_CGROUP, 88);
            if (child == 0)
                _exit(0);
            while (child > 0 && waitpid(child, NULL, 0) == -1 && errno == EINTR)
                ;
            close(fd);
        });
        long until = check_now_ms() + 300;
        while (check_now_ms() < until) {
            mkdir(at("c"), 0755);
            rmdir(at("c"));
        }
        end(forks);
        reap();
        rmdir(at("c"));
    }
    // One that was made in it may not have ended yet.
    EXPECT_SOON("none is left", (rmdir(at("c")), field("cgroup.stat", "nr_descendants") == 2));
    EXPECT_SOON("none is dying", field("cgroup.stat", "nr_dying_descendants") == 0);
    EXPECT_SOON("nobody is counted", strcmp(get("pids.current"), "0") == 0);

    // Freezing and thawing, while others are made: each time all stand still.
    int all_stood = 1;
    if (usable) {
        FOREVER(forks, {
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            while (waitpid(child, NULL, 0) == -1 && errno == EINTR)
                ;
        });
        REQUIRE(strcmp(put_pid("a/cgroup.procs", forks), "ok") == 0);
        for (int round = 0; round < 30; round++) {
            put("a/cgroup.freeze", "1");
            int tries = 0;
            while (field("a/cgroup.events", "frozen") != 1 && ++tries < 5000)
                check_sleep_ms(1);
            all_stood = all_stood && tries < 5000;
            if (round == 29)
                put("a/cgroup.kill", "1");
            put("a/cgroup.freeze", "0");
            sched_yield();
        }
        check_wait(forks);
        reap();
    }
    EXPECT("all stood still each time", "yes", all_stood ? "yes" : "no");
    EXPECT_SOON("all are gone", strcmp(get("a/pids.current"), "0") == 0);
    EXPECT_SOON("nobody is there", field("a/cgroup.events", "populated") == 0);
    EXPECT("remove a", "ok", take("a"));
    EXPECT("remove b", "ok", take("b"));
    cgroup_end();
    return 0;
}
