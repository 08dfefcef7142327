// The controller memory: what is charged, and to whom.
#include "../cgroup_memory.h"

static void touch_eight(void)
{
    long before = number_of("a/b/memory.current");
    touch(8 * MIB);
    EXPECT("eight MiB more", "yes", is_about(number_of("a/b/memory.current") - before, 8 * MIB) ? "yes" : "no");
    EXPECT("counted above", "yes", number_of("a/memory.current") >= 8 * MIB ? "yes" : "no");
    EXPECT("they are anonymous", "yes", is_about(field("a/b/memory.stat", "anon"), 8 * MIB) ? "yes" : "no");
    EXPECT("page tables", "yes", field("a/b/memory.stat", "pagetables") >= 5 * PAGE ? "yes" : "no");
}

static void fork_with_pages(void)
{
    char *pages = touch(8 * MIB);
    long before = number_of("a/b/memory.current");
    pid_t child = check_fork();
    if (child == 0) {
        long now = number_of("a/b/memory.current");
        EXPECT("shared after a fork", "yes", now - before < 2 * MIB ? "yes" : "no");
        for (long at = 0; at < 8 * MIB; at += PAGE)
            pages[at] = 2;
        now = number_of("a/b/memory.current");
        EXPECT("copied when written", "yes", is_about(now - before, 8 * MIB) ? "yes" : "no");
        _exit(0);
    }
    check_wait(child);
    EXPECT_SOON("the copies are gone", number_of("a/b/memory.current") - before < 2 * MIB);
}

static void shared_memory(void)
{
    long before = field("a/b/memory.stat", "shmem");
    char *start = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(start != MAP_FAILED);
    for (long at = 0; at < 4 * MIB; at += PAGE)
        start[at] = 1;
    EXPECT("shared memory", "yes", field("a/b/memory.stat", "shmem") - before == 4 * MIB ? "yes" : "no");
    EXPECT("is of files", "yes", field("a/b/memory.stat", "file") >= 4 * MIB ? "yes" : "no");
    munmap(start, 4 * MIB);
    EXPECT_SOON("gone when unmapped", field("a/b/memory.stat", "shmem") == before);
}

static int file;
static void write_file(void)
{
    static char block[65536];
    memset(block, 1, sizeof block);
    for (long at = 0; at < 4 * MIB; at += sizeof block)
        REQUIRE(pwrite(file, block, sizeof block, at) == sizeof block);
}

static void read_file(void)
{
    static char block[65536];
    for (long at = 0; at < 4 * MIB; at += sizeof block)
        REQUIRE(pread(file, block, sizeof block, at) == sizeof block);
}

int main(void)
{
    memory_begin();
    EXPECT("a", "ok", make("a"));
    EXPECT("a gives", "ok", put("a/cgroup.subtree_control", "+memory"));
    EXPECT("b", "ok", make("a/b"));
    EXPECT("c", "ok", make("a/c"));
    EXPECT("given", "memory", get("a/cgroup.subtree_control"));
    EXPECT("nothing", "0", get("a/b/memory.current"));
    EXPECT("none ended", "0", get("a/b/memory.oom.group"));
    EXPECT("events", "low 0 high 0 max 0 oom 0 oom_kill 0 oom_group_kill 0", get("a/b/memory.events"));
    EXPECT("local events", "low 0 high 0 max 0 oom 0 oom_kill 0 oom_group_kill 0", get("a/b/memory.events.local"));

    EXPECT("limits", "0 0 max max", ({
               static char text[128];
               snprintf(text, sizeof text, "%s %s %s %s", get("a/b/memory.min"), get("a/b/memory.low"), get("a/b/memory.high"),
                        get("a/b/memory.max"));
               text;
           }));
    const char *files[] = { "a/b/memory.min", "a/b/memory.low", "a/b/memory.high", "a/b/memory.max" };
    for (int i = 0; i < 4; i++) {
        EXPECT("set", "ok", put(files[i], "1048577\n"));
        EXPECT("whole pages", "1048576", get(files[i]));
        EXPECT("with a unit", "ok", put(files[i], "2M"));
        EXPECT("shown", "2097152", get(files[i]));
        EXPECT("small letters", "ok", put(files[i], "16k"));
        EXPECT("shown again", "16384", get(files[i]));
        EXPECT("hexadecimal", "ok", put(files[i], "0x4000"));
        EXPECT("shown as ever", "16384", get(files[i]));
        EXPECT("negative", "EINVAL", put(files[i], "-1"));
        EXPECT("a word", "EINVAL", put(files[i], "few"));
        EXPECT("a word behind it", "EINVAL", put(files[i], "1 page"));
        EXPECT("very much", "ok", put(files[i], "9223372036854775807"));
        EXPECT("is no limit", "max", get(files[i]));
        EXPECT("none", "ok", put(files[i], "0"));
        EXPECT("is none", "0", get(files[i]));
        EXPECT("max", "ok", put(files[i], "max"));
        EXPECT("shown as max", "max", get(files[i]));
    }
    EXPECT("min back", "ok", put("a/b/memory.min", "0"));
    EXPECT("low back", "ok", put("a/b/memory.low", "0"));
    EXPECT("all or one", "ok", put("a/b/memory.oom.group", "1"));
    EXPECT("all", "1", get("a/b/memory.oom.group"));
    EXPECT("neither", "EINVAL", put("a/b/memory.oom.group", "2"));
    EXPECT("one", "ok", put("a/b/memory.oom.group", "0"));

    // It is no controller of threads: a group with processes gives it to none.
    pid_t child = sleeper("a/c");
    EXPECT("with a process in it", "EBUSY", put("a/c/cgroup.subtree_control", "+memory"));
    DO(end(child));

    EXPECT("touching", "0", usable ? run_in("a/b", touch_eight) ? "fails" : "0" : "0");
    if (!usable)
        check_line("eight MiB more: yes\ncounted above: yes\nthey are anonymous: yes\npage tables: yes\n");
    EXPECT_SOON("all is given back", number_of("a/b/memory.current") < MIB);
    EXPECT_NEW("a/b/memory.peak", "the peak stays", "yes", number_of("a/b/memory.peak") >= 8 * MIB ? "yes" : "no");
    EXPECT("forking", "0", usable ? run_in("a/b", fork_with_pages) ? "fails" : "0" : "0");
    if (!usable)
        check_line("shared after a fork: yes\ncopied when written: yes\nthe copies are gone: yes\n");
    EXPECT("sharing", "0", usable ? run_in("a/b", shared_memory) ? "fails" : "0" : "0");
    if (!usable)
        check_line("shared memory: yes\nis of files: yes\ngone when unmapped: yes\n");

    // Who first writes a page of a file pays for it until it is gone, whoever else uses it.
    file = memfd_create("file", 0);
    REQUIRE(file >= 0);
    EXPECT("writing", "0", usable ? run_in("a/b", write_file) ? "fails" : "0" : "0");
    EXPECT("reading", "0", usable ? run_in("a/c", read_file) ? "fails" : "0" : "0");
    EXPECT("charged to the writer", "4194304", usable ? ({
        static char text[24];
        snprintf(text, sizeof text, "%ld", field("a/b/memory.stat", "shmem"));
        text;
    }) : "");
    EXPECT("not to the reader", "0", usable ? ({
        static char text[24];
        snprintf(text, sizeof text, "%ld", field("a/c/memory.stat", "shmem"));
        text;
    }) : "");
    // A group that is gone leaves what it has to those above.
    EXPECT("the writer's is removed", "ok", take("a/b"));
    EXPECT("counted above it", "yes", is_about(number_of("a/memory.current"), 4 * MIB) ? "yes" : "no");
    close(file);
    EXPECT_SOON("gone with the file", number_of("a/memory.current") < MIB);

    // What a process has stays where it was charged when it moves.
    EXPECT("b again", "ok", make("a/b"));
    int gates[2][2];
    REQUIRE(pipe(gates[0]) == 0 && pipe(gates[1]) == 0);
    pid_t mover = -1;
    DO(mover = check_fork());
    char byte = 0;
    if (mover == 0) {
        REQUIRE(strcmp(put("a/b/cgroup.procs", "0"), "ok") == 0);
        touch(4 * MIB);
        REQUIRE(write(gates[1][1], "", 1) == 1 && read(gates[0][0], &byte, 1) == 1);
        touch(4 * MIB);
        REQUIRE(write(gates[1][1], "", 1) == 1);
        for (;;)
            pause();
    }
    DO(REQUIRE(read(gates[1][0], &byte, 1) == 1));
    EXPECT("before it moves", "yes", is_about(number_of("a/b/memory.current"), 4 * MIB) ? "yes" : "no");
    EXPECT("moving", "ok", put_pid("a/c/cgroup.procs", mover));
    DO(REQUIRE(write(gates[0][1], "", 1) == 1 && read(gates[1][0], &byte, 1) == 1));
    EXPECT("stays", "yes", is_about(number_of("a/b/memory.current"), 4 * MIB) ? "yes" : "no");
    EXPECT("new ones", "yes", is_about(number_of("a/c/memory.current"), 4 * MIB) ? "yes" : "no");
    DO(end(mover));
    EXPECT_SOON("both are free", number_of("a/b/memory.current") < MIB && number_of("a/c/memory.current") < MIB);

    // Where it is not enabled below, the group above pays.
    EXPECT("taking it back", "ok", put("a/cgroup.subtree_control", "-memory"));
    EXPECT("no file", "ENOENT", put("a/b/memory.max", "1"));
    pid_t above = -1;
    DO(above = check_fork());
    if (above == 0) {
        REQUIRE(strcmp(put("a/b/cgroup.procs", "0"), "ok") == 0);
        touch(4 * MIB);
        REQUIRE(write(gates[1][1], "", 1) == 1 && read(gates[0][0], &byte, 1) == 1);
        touch(4 * MIB);
        REQUIRE(write(gates[1][1], "", 1) == 1);
        for (;;)
            pause();
    }
    DO(REQUIRE(read(gates[1][0], &byte, 1) == 1));
    EXPECT("the one above has it", "yes", is_about(number_of("a/memory.current"), 4 * MIB) ? "yes" : "no");
    EXPECT("giving it again", "ok", put("a/cgroup.subtree_control", "+memory"));
    EXPECT("nothing of what was before", "yes", number_of("a/b/memory.current") < MIB ? "yes" : "no");
    DO(REQUIRE(write(gates[0][1], "", 1) == 1 && read(gates[1][0], &byte, 1) == 1));
    EXPECT("what comes behind it", "yes", is_about(number_of("a/b/memory.current"), 4 * MIB) ? "yes" : "no");
    DO(end(above));
    EXPECT_SOON("all is free", number_of("a/memory.current") < MIB);
    EXPECT("remove b", "ok", take("a/b"));
    EXPECT("remove c", "ok", take("a/c"));
    EXPECT("remove a", "ok", take("a"));
    cgroup_end();
    return 0;
}
