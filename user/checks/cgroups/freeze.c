// cgroup.freeze.
#include "../cgroup.h"
#include <sched.h>
#include <sys/mman.h>

// What the children count.
static volatile long *counts;

static pid_t counter(const char *group, int index)
{
    pid_t child = check_fork();
    if (child == 0)
        for (;;)
            counts[index * 64]++;
    char file[128];
    snprintf(file, sizeof file, "%s/cgroup.procs", group);
    REQUIRE(strcmp(put_pid(file, child), "ok") == 0);
    return child;
}

static int moves(int index)
{
    long before = counts[index * 64];
    for (int tries = 0; tries < 2000; tries++) {
        if (counts[index * 64] != before)
            return 1;
        check_sleep_ms(1);
    }
    return 0;
}

// Whether it does not move: a wrong answer is possible only where it moves and the machine does not let it.
static int rests(int index)
{
    long before = counts[index * 64];
    check_sleep_ms(50);
    return counts[index * 64] == before;
}

static const char *yes(int condition)
{
    return condition ? "yes" : "no";
}

static void note_signal(int number)
{
    counts[192] = number;
}

int main(void)
{
    counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cgroup_begin();
    EXPECT("a", "ok", make("a"));
    EXPECT("b", "ok", make("a/b"));
    EXPECT("not frozen", "0", get("a/cgroup.freeze"));
    EXPECT("two", "ERANGE", put("a/cgroup.freeze", "2"));
    EXPECT("negative", "ERANGE", put("a/cgroup.freeze", "-1"));
    EXPECT("no number", "EINVAL", put("a/cgroup.freeze", "yes"));
    EXPECT("empty ones freeze", "ok", put("a/cgroup.freeze", "1"));
    EXPECT("frozen", "populated 0 frozen 1", get("a/cgroup.events"));
    EXPECT("below, too", "populated 0 frozen 1", get("a/b/cgroup.events"));
    EXPECT("below, by itself", "0", get("a/b/cgroup.freeze"));
    EXPECT("above not", "populated 0 frozen 0", get("cgroup.events"));
    EXPECT("thaw", "ok", put("a/cgroup.freeze", "0"));
    EXPECT("thawed", "populated 0 frozen 0", get("a/cgroup.events"));

    // One computes, one sleeps in a call, one is stopped.
    pid_t computes = -1, sleeps = -1, stopped = -1;
    DO(computes = counter("a/b", 0); sleeps = sleeper("a"); stopped = sleeper("a"));
    DO(int status; kill(stopped, SIGSTOP); REQUIRE(waitpid(stopped, &status, WUNTRACED) == stopped));
    EXPECT("it computes", "yes", yes(moves(0)));
    EXPECT("freeze", "ok", put("a/cgroup.freeze", "1"));
    EXPECT_SOON("all stand still", field("a/cgroup.events", "frozen") == 1);
    EXPECT("those below", "populated 1 frozen 1", get("a/b/cgroup.events"));
    EXPECT("it rests", "yes", yes(rests(0)));
    EXPECT("the whole is not frozen", "populated 1 frozen 0", get("cgroup.events"));
    EXPECT("not known as stopped", "yes", yes(waitpid(computes, NULL, WUNTRACED | WNOHANG) == 0));
    EXPECT("freeze below as well", "ok", put("a/b/cgroup.freeze", "1"));
    EXPECT("thaw above only", "ok", put("a/cgroup.freeze", "0"));
    EXPECT_SOON("above moves", field("a/cgroup.events", "frozen") == 0);
    EXPECT("below rests", "yes", yes(rests(0)));
    EXPECT("below is frozen", "populated 1 frozen 1", get("a/b/cgroup.events"));
    EXPECT("thaw below", "ok", put("a/b/cgroup.freeze", "0"));
    EXPECT("it computes again", "yes", yes(moves(0)));

    // Coming and going.
    EXPECT("freeze b", "ok", put("a/b/cgroup.freeze", "1"));
    EXPECT_SOON("frozen again", field("a/b/cgroup.events", "frozen") == 1);
    EXPECT("leave", "ok", put_pid("a/cgroup.procs", computes));
    EXPECT("who leaves computes", "yes", yes(moves(0)));
    EXPECT("come", "ok", put_pid("a/b/cgroup.procs", computes));
    EXPECT_SOON("who comes freezes", rests(0));
    EXPECT_SOON("and is counted", field("a/b/cgroup.events", "frozen") == 1);
    int fd = -1;
    pid_t born = -1;
    DO(fd = open(at("a/b"), O_RDONLY | O_DIRECTORY));
    DO(born = clone_into(fd, INTO_CGROUP, 88));
    if (born == 0) {
        signal(SIGUSR1, note_signal);
        counts[64] = 1;
        for (;;)
            pause();
    }
    EXPECT_SOON("who is born there is frozen", field("a/b/cgroup.events", "frozen") == 1);
    EXPECT("and has done nothing", "yes", yes(counts[64] == 0));

    // A signal waits, but for what ends the process.
    EXPECT("b thaws", "ok", put("a/b/cgroup.freeze", "0"));
    EXPECT_SOON("it has begun to do something", counts[64] == 1);
    EXPECT("b freezes", "ok", put("a/b/cgroup.freeze", "1"));
    EXPECT_SOON("once more", field("a/b/cgroup.events", "frozen") == 1);
    DO(kill(born, SIGUSR1); check_sleep_ms(20));
    EXPECT("a signal waits", "yes", yes(counts[192] == 0));
    EXPECT("and all are still frozen", "populated 1 frozen 1", get("a/b/cgroup.events"));
    DO(kill(computes, SIGKILL));
    int status = 0;
    DO(status = check_wait(computes));
    CHECK_STATUS("SIGKILL does not", usable ? status : SIGKILL);
    EXPECT("thaw b", "ok", put("a/b/cgroup.freeze", "0"));
    EXPECT_SOON("the signal comes", counts[192] == SIGUSR1);
    EXPECT("b freezes again", "ok", put("a/b/cgroup.freeze", "1"));
    EXPECT_SOON("it is frozen again", field("a/b/cgroup.events", "frozen") == 1);
    DO(kill(born, SIGTERM); status = check_wait(born));
    CHECK_STATUS("one that ends it does not wait", usable ? status : SIGTERM);
    EXPECT("b thaws again", "ok", put("a/b/cgroup.freeze", "0"));
    DO(close(fd));

    // Who waits for a child that has its memory is frozen, too.
    pid_t waits = -1;
    DO(waits = check_fork());
    if (waits == 0) {
        REQUIRE(strcmp(put("a/cgroup.procs", "0"), "ok") == 0);
        counts[128] = 1;
        if (vfork() == 0) {
            for (;;)
                pause();
        }
        _exit(0);
    }
    EXPECT_SOON("it has begun", counts[128] == 1);
    DO(end(stopped));
    EXPECT("freeze a", "ok", put("a/cgroup.freeze", "1"));
    EXPECT_SOON("all of them", field("a/cgroup.events", "frozen") == 1);
    EXPECT("kill the frozen", "ok", put("a/cgroup.kill", "1"));
    DO(check_wait(sleeps); check_wait(waits));
    EXPECT_SOON("all are dead", field("a/cgroup.events", "populated") == 0);
    EXPECT("remove b", "ok", take("a/b"));
    EXPECT("remove a", "ok", take("a"));
    cgroup_end();
    return 0;
}
