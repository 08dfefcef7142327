// Limits of the controller memory, and who is ended for them.
#include "../cgroup_memory.h"
#include <poll.h>

static const char *text_of(int status)
{
    static char text[32];
    if (status >= 1000)
        snprintf(text, sizeof text, "%s", check_signal_name(status - 1000));
    else
        snprintf(text, sizeof text, "%d", status);
    return text;
}

static void touch_four(void)
{
    touch(4 * MIB);
}

static void touch_too_much(void)
{
    touch(64 * MIB);
}

static void touch_again_and_again(void)
{
    for (int i = 0; i < 20; i++)
        munmap(touch(8 * MIB), 8 * MIB);
}

static void populate_too_much(void)
{
    mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
}

static void write_too_much(void)
{
    static char block[65536];
    int file = memfd_create("file", 0);
    REQUIRE(file >= 0);
    memset(block, 1, sizeof block);
    for (long at = 0; at < 64 * MIB;) {
        ssize_t length = pwrite(file, block, sizeof block, at);
        REQUIRE(length > 0);
        at += length;
    }
}

static void map_too_much(void)
{
    char *start = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(start != MAP_FAILED);
    for (long at = 0; at < 64 * MIB; at += PAGE)
        start[at] = 1;
}

// Reads from /dev/zero into more than there is.
static void read_too_much(void)
{
    char *start = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int zero = open("/dev/zero", O_RDONLY);
    REQUIRE(start != MAP_FAILED && zero >= 0);
    for (long at = 0; at < 64 * MIB;) {
        ssize_t length = read(zero, start + at, 64 * MIB - at);
        REQUIRE(length > 0);
        at += length;
    }
}

// A large one that waits, in the group; it is told when it has its memory.
static pid_t large_sleeper(const char *group, size_t bytes)
{
    int gate[2];
    char byte;
    REQUIRE(pipe(gate) == 0);
    pid_t child = check_fork();
    if (child == 0) {
        char file[128];
        snprintf(file, sizeof file, "%s/cgroup.procs", group);
        REQUIRE(strcmp(put(file, "0"), "ok") == 0);
        touch(bytes);
        REQUIRE(write(gate[1], "", 1) == 1);
        for (;;)
            pause();
    }
    REQUIRE(read(gate[0], &byte, 1) == 1);
    close(gate[0]);
    close(gate[1]);
    return child;
}

static const char *ended_by(pid_t child)
{
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    return text_of(WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status));
}

int main(void)
{
    memory_begin();
    EXPECT("a", "ok", make("a"));
    EXPECT("a gives", "ok", put("a/cgroup.subtree_control", "+memory"));
    EXPECT("b", "ok", make("a/b"));
    EXPECT("c", "ok", make("a/c"));
    EXPECT("no swap", "ok", has("a/b/memory.swap.max") ? put("a/memory.swap.max", "0") : "ok");
    EXPECT("limit", "ok", put("a/memory.max", "16M"));

    struct pollfd events = { .fd = -1, .events = POLLPRI };
    char text[256];
    DO(events.fd = open(at("a/memory.events"), O_RDONLY));
    DO(REQUIRE(read(events.fd, text, sizeof text) > 0));
    EXPECT("nothing happened yet", "0", usable ? poll(&events, 1, 0) ? "something" : "0" : "0");
    EXPECT("within the limit", "0", text_of(run_in("a/b", touch_four)));
    EXPECT("again and again", "0", text_of(run_in("a/b", touch_again_and_again)));
    EXPECT("nobody was ended", "0", field("a/memory.events", "oom_kill") == 0 ? "0" : "some");
    EXPECT("too much", "SIGKILL", text_of(run_in("a/b", touch_too_much)));
    EXPECT("told", "yes", poll(&events, 1, 10000) == 1 && events.revents & POLLPRI ? "yes" : "no");
    DO(close(events.fd));
    EXPECT("the limit was in the way", "yes", field("a/memory.events", "max") > 0 ? "yes" : "no");
    EXPECT("where the limit is", "yes", field("a/memory.events.local", "oom") == 1 ? "yes" : "no");
    EXPECT("not below", "0", field("a/b/memory.events", "oom") == 0 ? "0" : "some");
    EXPECT("one was ended", "1", field("a/memory.events", "oom_kill") == 1 ? "1" : "other");
    EXPECT("there", "1", field("a/b/memory.events.local", "oom_kill") == 1 ? "1" : "other");
    EXPECT("not above", "0", field("a/memory.events.local", "oom_kill") == 0 ? "0" : "other");
    EXPECT_SOON("all is free", number_of("a/memory.current") < MIB);
    EXPECT_NEW("a/memory.peak", "the peak is the limit", "yes",
               number_of("a/memory.peak") >= 15 * MIB && number_of("a/memory.peak") <= 16 * MIB + 64 * PAGE ? "yes" : "no");

    // Memory that a call brings in.
    EXPECT("populate", "SIGKILL", text_of(run_in("a/b", populate_too_much)));
    EXPECT("write to a file of memory", "SIGKILL", text_of(run_in("a/b", write_too_much)));
    EXPECT("shared memory", "SIGKILL", text_of(run_in("a/b", map_too_much)));
    EXPECT("read into it", "SIGKILL", text_of(run_in("a/b", read_too_much)));
    EXPECT("five were ended", "5", field("a/memory.events", "oom_kill") == 5 ? "5" : "other");
    EXPECT_SOON("all is free again", number_of("a/memory.current") < MIB);
    EXPECT_SOON("nothing at all on Ebb", !is_ebb() || number_of("a/memory.current") == 0);

    // The largest is ended, also if it waits, and who asked goes on.
    pid_t large = -1, small = -1;
    DO(small = large_sleeper("a/c", MIB); large = large_sleeper("a/b", 11 * MIB));
    EXPECT("who asks", "0", text_of(run_in("a/c", touch_four)) /* 1 + 11 + 4 and the tables */);
    EXPECT("the large one", "SIGKILL", ended_by(large));
    EXPECT("the small one stays", "0", usable && waitpid(small, NULL, WNOHANG) ? "ended" : "0");
    DO(end(small));

    // Who must not be ended is not, and who is to be ended first is.
    DO(large = large_sleeper("a/b", 8 * MIB); small = large_sleeper("a/c", 4 * MIB));
    DO(snprintf(text, sizeof text, "/proc/%d/oom_score_adj", small); check_write_file(text, "1000"));
    EXPECT("who asks now", "0", text_of(run_in("a/c", touch_four)));
    EXPECT("the one that is to be ended", "SIGKILL", ended_by(small));
    EXPECT("the large one stays", "0", usable && waitpid(large, NULL, WNOHANG) ? "ended" : "0");
    DO(end(large));

    // All together.
    EXPECT("together", "ok", put("a/b/memory.oom.group", "1"));
    DO(small = large_sleeper("a/b", PAGE); large = large_sleeper("a/b", 8 * MIB));
    EXPECT("one of them too much", "SIGKILL", text_of(run_in("a/b", touch_too_much)));
    EXPECT("all of them", "SIGKILL", ended_by(small));
    EXPECT("the large one too", "SIGKILL", ended_by(large));
    EXPECT("told as one", "1", field("a/b/memory.events", "oom_group_kill") == 1 ? "1" : "other");
    EXPECT("apart", "ok", put("a/b/memory.oom.group", "0"));

    // A limit below what there is ends somebody until it holds.
    DO(large = large_sleeper("a/b", 8 * MIB); small = large_sleeper("a/b", MIB));
    EXPECT("lower", "ok", put("a/b/memory.max", "4M"));
    EXPECT("the large one goes", "SIGKILL", ended_by(large));
    EXPECT("the small one does not", "0", usable && waitpid(small, NULL, WNOHANG) ? "ended" : "0");
    EXPECT("it holds", "yes", number_of("a/b/memory.current") <= 4 * MIB ? "yes" : "no");
    DO(end(small));
    EXPECT("limit of one", "SIGKILL", text_of(run_in("a/b", touch_too_much)));
    EXPECT("raised", "ok", put("a/b/memory.max", "max"));

    // Above memory.high nobody is ended, and it is told.
    EXPECT("high", "ok", put("a/c/memory.high", "4M"));
    EXPECT("above high", "0", text_of(run_in("a/c", touch_four)));
    EXPECT("counted", "yes", field("a/c/memory.events", "high") > 0 ? "yes" : "no");
    EXPECT("no kill", "0", field("a/c/memory.events.local", "oom") == 0 ? "0" : "some");
    EXPECT_SOON("all is free at the end", number_of("a/memory.current") < MIB);

    EXPECT("remove b", "ok", take("a/b"));
    EXPECT("remove c", "ok", take("a/c"));
    EXPECT("remove a", "ok", take("a"));
    cgroup_end();
    return 0;
}
