// Groups whose members fork, end, open and map, beside moves, kills, removals and changed limits: in the end nothing is charged to anybody, and the memory is free again. Linux has no controller reclaim, so each fact is written down with what it must be.
#include "../cgroup.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define GROUPS 3

static unsigned seed;

static unsigned below(unsigned end)
{
    return rand_r(&seed) % end;
}

// A path of a file of a group.
static const char *of(int group, const char *file)
{
    static char paths[4][64];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "g%d%s%s", group, *file ? "/" : "", file);
    return path;
}

// What a member does until it is killed: it makes children, which hold this and that for a while.
static void work(int number)
{
    seed = number;
    for (;;) {
        int fds[24], count = below(12);
        for (int i = 0; i < count; i++)
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds + 2 * i) < 0)
                fds[2 * i] = fds[2 * i + 1] = -1;
        pid_t child = fork();
        if (child == 0) {
            long size = (1 + below(64)) * 4096;
            char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, (below(2) ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
            if (memory != MAP_FAILED)
                memset(memory, 1, size);
            if (below(3) == 0)
                sched_yield();
            _exit(0);
        }
        if (child > 0 && below(4))
            waitpid(child, NULL, 0);
        for (int i = 0; i < 2 * count; i++)
            if (fds[i] >= 0)
                close(fds[i]);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
}

static void set_up(int group)
{
    mkdir(at(of(group, "")), 0755);
}

// Starts a member in a group.
static void start(int group, int number)
{
    int fd = open(at(of(group, "")), O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return;
    if (clone_into(fd, INTO_CGROUP, 88) == 0) {
        close(fd);
        work(number);
    }
    close(fd);
}

static void move_all(int from, int to)
{
    static char list[8192];
    snprintf(list, sizeof list, "%s", get(of(from, "cgroup.procs")));
    char *rest = list;
    for (char *word; (word = strsep(&rest, " \n")) != NULL;)
        if (*word)
            put(of(to, "cgroup.procs"), word);
}

static void one_change(int number)
{
    static const char *const memory[] = { "max", "4M", "64M", "1M" }, *const pids[] = { "max", "3", "40" }, *const reclaim[] = { "max", "500", "20000", "0" };
    int group = below(GROUPS);
    switch (below(10)) {
    case 0:
    case 1:
    case 2:
        start(group, number);
        break;
    case 3:
        put(of(group, "cgroup.kill"), "1");
        break;
    case 4:
        move_all(group, below(GROUPS));
        break;
    case 5:
        put(of(group, "cgroup.kill"), "1");
        rmdir(at(of(group, "")));
        set_up(group);
        break;
    case 6:
        put(of(group, "memory.max"), memory[below(4)]);
        break;
    case 7:
        put(of(group, "pids.max"), pids[below(3)]);
        break;
    case 8:
        put(of(group, "reclaim.max"), reclaim[below(4)]);
        break;
    default:
        put("cgroup.subtree_control", below(2) ? "-reclaim" : "+reclaim");
        sched_yield();
        put("cgroup.subtree_control", "+reclaim");
    }
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

static long free_memory(void)
{
    static char text[4096];
    int fd = open("/proc/meminfo", O_RDONLY);
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    text[len > 0 ? len : 0] = 0;
    const char *line = strstr(text, "MemFree:");
    return line ? atol(line + 8) : 0;
}

static int all_are_gone(void)
{
    // Those who were not waited for count.
    pid_t waited;
    while ((waited = waitpid(-1, NULL, WNOHANG)) > 0)
        ;
    if (waited == 0)
        return 0;
    for (int group = 0; group < GROUPS; group++)
        if (has(of(group, "cgroup.events")) && field(of(group, "cgroup.events"), "populated") != 0)
            return 0;
    return 1;
}

// Some time of it, until all is gone again.
static void rounds(long ms, int number)
{
    for (int group = 0; group < GROUPS; group++)
        set_up(group);
    long until = check_now_ms() + ms;
    for (int i = 0; check_now_ms() < until; i++) {
        one_change(number + i);
        check_sleep_ms(below(4));
    }
    // Whom a kill has told to end may be on its way between two groups.
    for (int tries = 0; tries < 1000; tries++) {
        for (int group = 0; group < GROUPS; group++)
            put(of(group, "cgroup.kill"), "1");
        if (all_are_gone())
            break;
        check_sleep_ms(2);
    }
}

int main(void)
{
    cgroup_begin();
    usable = usable && is_ebb();
    // Children whose parents are killed are waited for here.
    REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    seed = 7;
    DO(cgroup_give_all());
    static char reclaim_before[64], memory_before[64];
    long free_before = 0;
    if (usable) {
        rounds(3000, 0);
        for (int group = 0; group < GROUPS; group++)
            rmdir(at(of(group, "")));
        free_before = free_memory();
        snprintf(reclaim_before, sizeof reclaim_before, "%s", get("reclaim.current"));
        snprintf(memory_before, sizeof memory_before, "%s", get("memory.current"));
        rounds(6000, 100000);
    }
    EXPECT_SOON("all are gone", all_are_gone());
    for (int group = 0; group < GROUPS; group++) {
        DO(set_up(group));
        EXPECT_SOON("nobody is counted", strcmp(get(of(group, "pids.current")), "0") == 0);
        EXPECT_SOON("no memory is charged", strcmp(get(of(group, "memory.current")), "0") == 0);
        EXPECT_SOON("it can be removed", rmdir(at(of(group, ""))) == 0);
    }
    EXPECT_SOON("none is left", field("cgroup.stat", "nr_descendants") == 0);
    EXPECT_SOON("none is dying", field("cgroup.stat", "nr_dying_descendants") == 0);
    EXPECT_SOON("the time of their ends is had back", strcmp(get("reclaim.current"), reclaim_before) == 0);
    EXPECT_SOON("the memory is charged to nobody", strcmp(get("memory.current"), memory_before) == 0);
    EXPECT_SOON("the memory is free", free_memory() >= free_before - 2048);
    cgroup_end();
    return 0;
}
