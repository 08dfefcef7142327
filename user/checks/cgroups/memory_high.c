// memory.high: who takes more is slowed down, and not ended.
#include "../cgroup_memory.h"
#include <sys/resource.h>

static int gate[2];

// Takes page after page, and tells of each 16.
static void take_pages(void)
{
    for (int i = 0;; i++) {
        touch(16 * PAGE);
        REQUIRE(write(gate[1], "", 1) == 1);
    }
}

static void take_few(void)
{
    touch(2 * MIB);
}

// How many sixteens of pages were taken since this was asked last.
static long taken(void)
{
    char text[4096];
    long all = 0;
    for (ssize_t got; (got = read(gate[0], text, sizeof text)) > 0; all += got)
        ;
    return all;
}

static pid_t taker(void)
{
    if (!usable)
        return -1;
    pid_t child = check_fork();
    if (child == 0) {
        REQUIRE(strcmp(put("a/cgroup.procs", "0"), "ok") == 0);
        take_pages();
    }
    return child;
}

int main(void)
{
    memory_begin();
    REQUIRE(pipe2(gate, O_NONBLOCK) == 0);
    EXPECT("a", "ok", make("a"));
    EXPECT("high", "ok", put("a/memory.high", "4M"));
    EXPECT("less than that", "0", usable ? run_in("a", take_few) ? "fails" : "0" : "0");
    EXPECT("is not counted", "0", field("a/memory.events", "high") == 0 ? "0" : "some");

    // It would take all the machine's memory in no time. Sleeps grow to two seconds each.
    pid_t child = taker();
    EXPECT_SOON("it goes beyond", field("a/memory.events", "high") > 0);
    DO(check_sleep_ms(1500));
    EXPECT("but not far", "yes", number_of("a/memory.current") < 32 * MIB ? "yes" : "no");
    EXPECT("it is not ended", "yes", !usable || kill(child, 0) == 0 ? "yes" : "no");
    EXPECT("nor is anybody", "0", field("a/memory.events", "oom_kill") == 0 ? "0" : "some");
    DO(end(child));
    EXPECT_SOON("it can be killed meanwhile", number_of("a/memory.current") < 2 * MIB);

    // One that is told to go on with more.
    child = taker();
    EXPECT_SOON("another goes beyond", number_of("a/memory.current") > 4 * MIB);
    EXPECT("freezing", "ok", put("a/cgroup.freeze", "1"));
    EXPECT_SOON("it is frozen", field("a/cgroup.events", "frozen") == 1);
    EXPECT("thawing", "ok", put("a/cgroup.freeze", "0"));
    EXPECT("no limit", "ok", put("a/memory.high", "max"));
    EXPECT("but an end", "ok", put("a/memory.max", "64M"));
    EXPECT_SOON("it takes what it may", field("a/memory.events", "oom_kill") == 1);
    DO(check_wait(child));
    DO(REQUIRE(taken() > 0));

    // The limit of the group above.
    EXPECT("no end", "ok", put("a/memory.max", "max"));
    EXPECT("high above", "ok", put("memory.high", "4M"));
    long before = 0;
    DO(before = field("memory.events", "high"));
    child = taker();
    EXPECT_SOON("it is held there", field("memory.events", "high") > before);
    DO(check_sleep_ms(1000));
    EXPECT("nearly", "yes", number_of("a/memory.current") < 32 * MIB ? "yes" : "no");
    EXPECT("that is not its own", "0", field("a/memory.events.local", "high") == field("a/memory.events", "high") ? "0" : "some");
    DO(end(child));
    EXPECT("no limit above", "ok", put("memory.high", "max"));
    EXPECT_SOON("all have ended", field("cgroup.events", "populated") == 0);
    EXPECT("remove a", "ok", take("a"));
    cgroup_end();
    return 0;
}
