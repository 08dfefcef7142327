// What it takes to end a workload with very many objects of one class: one static program that runs on Linux and on Ebb.
//
//     groups [CELL...]
//
// A cell is `way:class/N`. The ways: `kill` starts a program in a cgroup, which makes N objects of the class, and writes to cgroup.kill; `read` does the same and
// sees by reading instead of poll(2) that the group is empty; `end` is SIGKILL, without a cgroup; `gap` is `kill` while a process outside does nothing but
// read the time stamp counter. For each cell there is a line `begin<TAB>cell`, and then `cell<TAB>name=value...`, times in ticks and memory in bytes:
//
//     made, error   objects there were, and why not N (errno); 0 if there are
//     created       time to make them
//     held          memory that was free before the workload was started and is not any more
//     write         the call that kills
//     dead          from before that call until nothing runs in the group
//     usable        from before that call until the memory is free again; -1 if it was not within two seconds
//     kept          what was missing then
//     before, after first use of a page by a fresh process, before the workload and after its end
//     gap           the longest time between two readings of the process outside, from before the kill until 0.2 s after
//     charged       what the controller reclaim had charged for the kill, in nanoseconds; -1 without it
//     measured      what that controller says it took
//     share         of the time from before the kill until nothing ran in the group, what that process had of the processor, in thousandths
//
// Figures are medians of five for N up to 100 and one measurement for N up to 10,000, after one that does not count; what is larger is measured once,
// first. Without cgroup2 all is done without a cgroup, and a line `cgroup2<TAB>no` says so. As process 1 it mounts what it needs first, takes the
// cells from the file /rows and powers the machine off at the end.
#include "groups.h"
#include <sched.h>
#include <sys/resource.h>

enum figure { MADE, ERROR, CREATED, HELD, WRITE, DEAD, USABLE, KEPT, BEFORE, AFTER, GAP, CHARGED, MEASURED, SHARE, FIGURES };
static const char *const figure_names[] = { "made",  "error",  "created", "held",    "write",    "dead", "usable",
                                            "kept",  "before", "after",   "gap",     "charged",  "measured", "share" };

enum {
    REPETITIONS = 5,
    // Up to how many objects there are so many, and up to how many a kernel may warm up what is lazy.
    MANY_REPEATED = 100,
    MANY_WARM = 10000,
    // How long a workload may take to get ready, in milliseconds.
    PATIENCE = 120000,
    // How much of the memory may be missing, in bytes, and which part of what the group held.
    TOLERANCE = 1 << 20,
    TOLERANCE_PART = 50,
};

static char *program = "/init";

// Ticks for each of so many pages that a fresh process touches.
static long first_use(long pages)
{
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            fail("mmap");
        uint64_t start = ticks();
        for (long i = 0; i < pages; i++)
            *(volatile char *)(memory + i * PAGE) = 1;
        board->touched = ticks() - start;
        _exit(0);
    }
    must(waitpid(pid, NULL, 0), "wait");
    return (long)board->touched / pages;
}

static void await_ready(struct place *place)
{
    for (int i = 0; i < PATIENCE && !board->ready; i++) {
        int status;
        if (waitpid(place->leader, &status, WNOHANG) > 0) {
            printf("bench: the workload ended early (status %#x)\n", status);
            exit(1);
        }
        usleep(1000);
    }
    if (!board->ready) {
        printf("bench: the workload was not ready in time\n");
        exit(1);
    }
}

// Gives the time until `wanted` bytes are free, without that of looking, or -1.
static long await_memory(uint64_t start, long wanted)
{
    for (int i = 0; i < 20100; i++) {
        uint64_t now = ticks();
        if (free_memory() >= wanted)
            return (long)(now - start);
        if (i < 100)
            call3(SYS_sched_yield, 0, 0, 0);
        else
            usleep(100);
    }
    return -1;
}

// A process that watches; `*pace` is how many readings it makes in 1,000 ticks while nothing else runs.
static pid_t start_watch(double *pace)
{
    board->gap = (struct gap){ 0 };
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        watch(&board->gap);
        _exit(0);
    }
    usleep(50000);
    uint64_t start = ticks(), readings = board->gap.readings;
    usleep(50000);
    *pace = (double)(board->gap.readings - readings) * 1000 / (double)(ticks() - start);
    return pid;
}

static void measure_once(const struct class *class, enum mode mode, int has_neighbour, long pages, long *figures)
{
    char count[24];
    char *arguments[] = { program, "--workload", (char *)class->name, count, NULL };
    snprintf(count, sizeof count, "%ld", many);
    struct place place;
    figures[BEFORE] = first_use(pages);
    make_place(&place, mode);
    // Until what a kernel puts off has been done.
    usleep(100000);
    long before = free_memory();
    memset(board, 0, sizeof *board);
    start_in(&place, arguments);
    await_ready(&place);
    usleep(100000);
    figures[MADE] = board->made;
    figures[ERROR] = board->error;
    figures[CREATED] = (long)board->created;
    long held = before - free_memory();
    figures[HELD] = held;
    double pace = 0;
    pid_t watcher = has_neighbour ? start_watch(&pace) : 0;
    uint64_t readings = board->gap.readings;
    long wanted = before - TOLERANCE - held / TOLERANCE_PART;
    uint64_t start = ticks();
    kill_place(&place);
    figures[WRITE] = (long)(ticks() - start);
    await_empty(&place);
    figures[DEAD] = (long)(ticks() - start);
    readings = board->gap.readings - readings;
    // A process that computes has memory of its own and keeps what is put off from being done: the time is another measurement's.
    figures[USABLE] = has_neighbour ? figures[DEAD] : await_memory(start, wanted);
    figures[KEPT] = before - free_memory();
    figures[SHARE] = has_neighbour ? (long)((double)readings * 1e6 / pace / (double)figures[DEAD]) : 0;
    if (has_neighbour) {
        usleep(200000);
        board->gap.is_over = 1;
        must(waitpid(watcher, NULL, 0), "wait");
    }
    figures[GAP] = (long)board->gap.longest;
    charged_last(&place, &figures[CHARGED], &figures[MEASURED]);
    figures[AFTER] = first_use(pages);
    remove_place(&place);
}

static int compare(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static void measure(const char *cell)
{
    static const struct {
        const char *name;
        enum mode mode;
        int has_neighbour;
    } ways[] = { { "kill", GROUP, 0 }, { "read", GROUP_READ, 0 }, { "end", PROCESSES, 0 }, { "gap", GROUP, 1 } };
    char way[16], name[48];
    if (sscanf(cell, "%15[^:]:%47[^/]/%ld", way, name, &many) != 3)
        fail(cell);
    const struct class *class = class_named(name);
    size_t w = 0;
    while (w < sizeof ways / sizeof ways[0] && strcmp(ways[w].name, way) != 0)
        w++;
    if (!class || w == sizeof ways / sizeof ways[0]) {
        printf("%s\terror=%d\tmade=0\n", cell, EINVAL);
        return;
    }
    long bytes = class->bytes * many;
    if (bytes > free_memory() / 10 * 9) {
        printf("%s\terror=%d\tmade=0\n", cell, ENOMEM);
        return;
    }
    if (class->prepare)
        class->prepare(many);
    long pages = bytes / PAGE < 64 ? 64 : bytes / PAGE > 32768 ? 32768 : bytes / PAGE;
    int repetitions = many <= MANY_REPEATED ? REPETITIONS : 1;
    static long all[FIGURES][REPETITIONS];
    for (int i = many <= MANY_WARM ? -1 : 0; i < repetitions; i++) {
        long figures[FIGURES];
        measure_once(class, ways[w].mode, ways[w].has_neighbour, pages, figures);
        for (int figure = 0; i >= 0 && figure < FIGURES; figure++)
            all[figure][i] = figures[figure];
    }
    printf("%s", cell);
    for (int figure = 0; figure < FIGURES; figure++) {
        qsort(all[figure], repetitions, sizeof(long), compare);
        printf("\t%s=%ld", figure_names[figure], all[figure][repetitions / 2]);
    }
    printf("\n");
}

// As a process of its own, so that what goes wrong ends that cell alone; meanwhile process 1 waits for whom the workload leaves behind, as it does
// in any system.
static void run_cell(const char *cell)
{
    printf("begin\t%s\n", cell);
    fflush(stdout);
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        measure(cell);
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    for (pid_t ended = 0; ended != pid;)
        must(ended = waitpid(-1, &status, 0), "wait");
    if (status != 0) {
        printf("failed\t%s\t%#x\n", cell, status);
        if (getpid() == 1)
            remove_whatever_runs();
    }
    fflush(stdout);
}

static void put(const char *path, const char *value)
{
    int file = open(path, O_WRONLY);
    // A kernel that has no such limit has no such file.
    if (file >= 0 && write(file, value, strlen(value)) < 0)
        printf("note: %s is not %s: %s\n", path, value, strerror(errno));
    if (file >= 0)
        close(file);
}

static void raise_limits(void)
{
    put("/proc/sys/fs/file-max", "100000000");
    put("/proc/sys/vm/max_map_count", "10000000");
    put("/proc/sys/vm/overcommit_memory", "1");
    put("/proc/sys/kernel/pid_max", "4194304");
    put("/proc/sys/kernel/threads-max", "1000000");
    put("/proc/sys/kernel/pty/max", "1000000");
    put("/proc/sys/fs/pipe-user-pages-soft", "0");
    put("/proc/sys/fs/inotify/max_user_instances", "2000000");
    put("/proc/sys/fs/inotify/max_user_watches", "2000000");
    struct rlimit descriptors = { 1 << 20, 1 << 20 }, endless = { RLIM_INFINITY, RLIM_INFINITY };
    must(setrlimit(RLIMIT_NOFILE, &descriptors), "RLIMIT_NOFILE");
    setrlimit(RLIMIT_SIGPENDING, &endless);
    setrlimit(RLIMIT_NPROC, &endless);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--workload") == 0) {
        open_board();
        run_workload(argv[2], argv[3]);
    }
    static char cells[65536];
    if (getpid() == 1) {
        become_init();
        mkdir("/dev/pts", 0755);
        mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=0666");
        mkdir("/tmp", 01777);
        if (mount("tmpfs", "/tmp", "tmpfs", 0, "size=100%,nr_inodes=0") < 0)
            printf("note: /tmp is no file system of its own: %s\n", strerror(errno));
        int file = open("/rows", O_RDONLY);
        must(file, "/rows");
        must(read(file, cells, sizeof cells - 1), "/rows");
        close(file);
    } else {
        program = argv[0];
        for (int i = 1; i < argc; i++)
            strcat(strcat(cells, argv[i]), "\n");
    }
    open_board();
    raise_limits();
    mount_groups();
    for (char *cell = strtok(cells, "\n"); cell; cell = strtok(NULL, "\n"))
        run_cell(cell);
    done();
}
