// Random workloads in control groups with budgets of time, which are killed at random moments: what a kill took must not be more than was charged.
//
//     kills ROUNDS [SEED [FIRST [each] [KIND]]]
//
// Only for guests, as process 1; it takes its arguments from the kernel's command line and powers the machine off at the end. FIRST is the first
// round, to have one again; with `each` there is a line for each kill, with KIND workloads have objects of that kind only.
//
// After each kill the group must be empty, who has the other ends of what was in it must see their end, all budgets must be back at what an empty group has charged,
// and the groups can be removed. From time to time the free memory must be what it was. What is wrong is a line with VIOLATION; the last lines say how much of what was
// charged kills took, and in which kind of group most. With more than one core times are not the kernel's alone, and a kill that took longer is only told. So is one
// for which more time passed than was charged, though less was measured: others may have had it, or the kernel does not count what it did.
#include "kills.h"
#include <ftw.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/sysinfo.h>

enum {
    MOST_STEPS = 7,
    MOST_LEADERS = 3,
    // Rounds between two looks at the memory, and until caches and tables have grown, which they keep.
    LOOK = 100,
    WARM = 500,
    // What may be missing, in KiB; each further core has caches of its own.
    TOLERANCE = 1024,
    CORE_CACHED = 450,
    // More threads at once, and more names in /proc, than workloads have.
    THREADS_KEPT = 2000,
    NAMES_KEPT = 600,
};

struct board *board;

static uint64_t random_state;
static long the_round = -1;
static int is_counted;

void seed_sequence(uint64_t seed, uint64_t round, uint64_t index)
{
    random_state = (seed * 0x9e3779b97f4a7c15u ^ round * 0xbf58476d1ce4e5b9u ^ index * 0x94d049bb133111ebu) | 1;
    for (int i = 0; i < 4; i++)
        any(2);
}

uint32_t any(uint32_t below)
{
    // xorshift64* of Marsaglia and Vigna.
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)((random_state * 0x2545f4914f6cdd1du) >> 33) % below;
}

int once_in(uint32_t many) { return any(many) == 0; }

static void tell(const char *what, const char *format, va_list arguments)
{
    char text[600];
    int length = snprintf(text, sizeof text, "kills: round %ld: %s: ", the_round, what);
    length += vsnprintf(text + length, sizeof text - length, format, arguments);
    if (length > (int)sizeof text - 2)
        length = sizeof text - 2;
    text[length++] = '\n';
    (void)!write(1, text, length);
}

void violation(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell("VIOLATION", format, arguments);
    va_end(arguments);
    __atomic_add_fetch(&board->violations, 1, __ATOMIC_SEQ_CST);
}

void late(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell(is_counted ? "VIOLATION" : "late", format, arguments);
    va_end(arguments);
    if (is_counted)
        __atomic_add_fetch(&board->violations, 1, __ATOMIC_SEQ_CST);
}

void sleep_micros(long micros)
{
    struct timespec time = { micros / 1000000, micros % 1000000 * 1000 };
    nanosleep(&time, NULL);
}

// What one process of a round does.
struct recipe {
    const struct kind *kinds[MOST_STEPS];
    int amounts[MOST_STEPS];
    int steps, moment, leaf;
};

static const struct kind *const tables[] = { memory_kinds, file_kinds, descriptor_kinds, socket_kinds, task_kinds };
// The only kind that there is to be.
static const struct kind *only;

static const struct kind *kind_named(const char *name)
{
    for (size_t table = 0; table < sizeof tables / sizeof tables[0]; table++)
        for (const struct kind *kind = tables[table]; kind->name; kind++)
            if (strcmp(kind->name, name) == 0)
                return kind;
    printf("kills: there is no kind %s\n", name);
    return NULL;
}

static const struct kind *any_kind(void)
{
    if (only)
        return only;
    const struct kind *table = tables[any(sizeof tables / sizeof tables[0])];
    int count = 0;
    while (table[count].name)
        count++;
    return &table[any(count)];
}

static int any_amount(int most)
{
    static const int limits[] = { 4, 4, 30, 30, 30, 300, 300, 300, 1000, 10000 };
    int limit = limits[any(sizeof limits / sizeof limits[0])];
    return 1 + any(limit < most ? limit : most);
}

static void choose_recipe(struct recipe *recipe, const struct tree *tree)
{
    // Many of one kind show what that costs.
    recipe->steps = once_in(3) ? 1 : any(MOST_STEPS + 1);
    recipe->moment = any(moment_count);
    recipe->leaf = any(tree->leaves);
    for (int i = 0; i < recipe->steps; i++) {
        recipe->kinds[i] = any_kind();
        recipe->amounts[i] = any_amount(recipe->kinds[i]->most);
    }
}

static void run(const struct recipe *recipe)
{
    signal(SIGUSR1, SIG_IGN);
    for (int i = 0; i < recipe->steps; i++)
        recipe->kinds[i]->make(recipe->amounts[i]);
    __atomic_add_fetch(&board->ready, 1, __ATOMIC_SEQ_CST);
    moments[recipe->moment].go_on();
}

static long now_micros(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct recipe recipes[MOST_LEADERS];
static int leaders;

// The recipes of the round, and how its groups are.
static const char *describe(const struct tree *tree)
{
    static char text[600];
    int length = snprintf(text, sizeof text, "%d levels, %d leaves, %d links", tree->depth, tree->leaves, link_count);
    for (int leader = 0; leader < leaders; leader++) {
        const struct recipe *recipe = &recipes[leader];
        length += snprintf(text + length, sizeof text - length, "; in leaf %d:", recipe->leaf);
        for (int i = 0; i < recipe->steps; i++)
            length += snprintf(text + length, sizeof text - length, " %s %d", recipe->kinds[i]->name, recipe->amounts[i]);
        length += snprintf(text + length, sizeof text - length, " @%s", moments[recipe->moment].name);
    }
    return text;
}

// Kills whose group had most charged for one class.
static struct class {
    char name[16];
    long kills, most_round, latest_round;
    // Of what was charged: the most that was measured, and the most that passed until the group was empty, which others may have had a part of.
    double most, latest;
} classes[32];

enum { BUCKETS = 10 };
static const double bucket_ends[BUCKETS - 1] = { 0.1, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 4 };
static long histogram[BUCKETS];
static long kills, longer, later;
static int is_verbose;

// The class that a group has most charged for, of a text as in reclaim.stat.
static struct class *dominant_class(const char *stat)
{
    char name[16], dominant[16] = "none";
    long count, most = 0, cost;
    for (const char *line = stat; *line && sscanf(line, "%15s %ld %ld", name, &count, &cost) == 3; line = strchr(line, '\n') + 1)
        if (cost > most) {
            most = cost;
            strcpy(dominant, name);
        }
    struct class *class = classes;
    while (class->name[0] && strcmp(class->name, dominant) != 0)
        class++;
    strcpy(class->name, dominant);
    return class;
}

static const char *short_stat(const char *stat)
{
    static char text[400];
    char name[16];
    long count, cost;
    int length = 0;
    text[0] = 0;
    for (const char *line = stat; *line && sscanf(line, "%15s %ld %ld", name, &count, &cost) == 3; line = strchr(line, '\n') + 1)
        if (count > 0)
            length += snprintf(text + length, sizeof text - length, " %s %ld", name, count);
    return text;
}

static void kill_group(const char *group, const struct tree *tree)
{
    char stat[1024];
    snprintf(stat, sizeof stat, "%s", group_text(group, "reclaim.stat"));
    long overruns = group_number(group, "reclaim.events", "overrun");
    if (write_group(group, "cgroup.kill", "1") < 0)
        violation("cgroup.kill: %s", strerror(errno));
    await_empty(group);
    kills++;
    // There is no budget.
    if (overruns < 0)
        return;
    // Where the last member leaves on another core, the group may be seen to be empty before all of this is said.
    if (!is_counted)
        sleep_micros(1000);
    long charged = group_number(group, "reclaim.last", "charged_us");
    long measured = group_number(group, "reclaim.last", "measured_us");
    long elapsed = group_number(group, "reclaim.last", "elapsed_us");
    int is_overrun = group_number(group, "reclaim.events", "overrun") != overruns;
    if (charged < 0 || measured < 0 || elapsed < 0) {
        violation("reclaim.last of %s says nothing", group);
        return;
    }
    // The first is rounded down and the second up.
    if (is_overrun ? measured <= charged : measured > charged + 1)
        violation("%ld us were charged and %ld measured, but overrun is %d", charged, measured, is_overrun);
    double part = (double)measured / (double)(charged ? charged : 1);
    double elapsed_part = (double)elapsed / (double)(charged ? charged : 1);
    struct class *class = dominant_class(stat);
    class->kills++;
    if (part > class->most) {
        class->most = part;
        class->most_round = the_round;
    }
    // Otherwise those who are not killed have a part of it.
    int is_all = strcmp(group, tree->chain[0]) == 0;
    if (is_all && elapsed_part > class->latest) {
        class->latest = elapsed_part;
        class->latest_round = the_round;
    }
    int bucket = 0;
    while (bucket < BUCKETS - 1 && part > bucket_ends[bucket])
        bucket++;
    histogram[bucket]++;
    if (is_overrun) {
        longer++;
        static const char form[] = "%s: charged_us %ld measured_us %ld elapsed_us %ld (%.2f);%s; %s";
        if (is_counted)
            violation(form, group, charged, measured, elapsed, part, short_stat(stat), describe(tree));
        else if (longer <= 20)
            printf("kills: round %ld: longer than charged: %ld us, %ld charged;%s\n", the_round, measured, charged, short_stat(stat));
    } else if (is_verbose || (is_counted && is_all && elapsed > charged && later++ < 30)) {
        printf("kills: round %ld: %s: charged_us %ld measured_us %ld elapsed_us %ld (%.2f);%s; %s\n", the_round, group, charged, measured, elapsed,
               part, short_stat(stat), describe(tree));
    }
}

static void await_workloads(int started)
{
    // Some are killed before they have all that they want.
    if (once_in(6)) {
        sleep_micros(any(once_in(2) ? 500 : 20000));
        return;
    }
    // Some have not for long: a call that waits, or much to do.
    for (int i = 0; i < 80 && board->ready < started; i++)
        sleep_micros(500);
    sleep_micros(once_in(3) ? 0 : any(3000));
}

static const char *any_group(const struct tree *tree)
{
    return once_in(2) ? tree->leaf[any(tree->leaves)] : tree->chain[any(tree->depth)];
}

static void move(pid_t pid, const char *group)
{
    char text[16];
    snprintf(text, sizeof text, "%d", pid);
    write_group(group, "cgroup.procs", text);
}

// What is charged with nobody in the groups must be what it was before; what is still on its way back may take a moment.
static void await_charge(const char *group, long wanted)
{
    long found = -1;
    for (int i = 0; i < 200; i++) {
        found = group_number(group, "reclaim.current", "");
        if (found == wanted)
            return;
        sleep_micros(1000);
    }
    violation("%s has %ld us charged, but had %ld without processes:%s", group, found, wanted, short_stat(group_text(group, "reclaim.stat")));
}

static void do_round(uint64_t seed, long round)
{
    static struct tree tree;
    the_round = round;
    seed_sequence(seed, round, 0);
    memset(board, 0, offsetof(struct board, violations));
    long top = group_number(TOP, "reclaim.current", "");
    make_tree(&tree, round);
    long empty_chain[DEEPEST_GROUP], empty_leaf[MOST_LEAVES];
    for (int i = 0; i < tree.depth; i++)
        empty_chain[i] = group_number(tree.chain[i], "reclaim.current", "");
    for (int i = 0; i < tree.leaves; i++)
        empty_leaf[i] = group_number(tree.leaf[i], "reclaim.current", "");
    make_links(once_in(2) ? 0 : any(MOST_LINKS + 1));
    start_checker();
    leaders = once_in(2) ? 1 : 1 + any(MOST_LEADERS);
    for (int i = 0; i < leaders; i++)
        choose_recipe(&recipes[i], &tree);
    pid_t pids[MOST_LEADERS];
    int started = 0;
    fflush(stdout);
    for (int i = 0; i < leaders; i++) {
        pids[i] = fork_into(tree.leaf[recipes[i].leaf]);
        if (pids[i] == 0) {
            seed_sequence(seed, round, i + 1);
            run(&recipes[i]);
            _exit(1);
        }
        // A small budget may refuse it.
        started += pids[i] > 0;
    }
    close_inside();
    await_workloads(started);
    if (once_in(8) && pids[0] > 0)
        move(pids[0], tree.leaf[any(tree.leaves)]);
    if (once_in(10)) {
        write_group(any_group(&tree), "cgroup.freeze", "1");
        sleep_micros(any(2000));
    }
    if (once_in(4))
        kill_group(any_group(&tree), &tree);
    kill_group(tree.chain[0], &tree);
    if (once_in(20))
        kill_group(tree.chain[0], &tree);
    finish_checker();
    while (waitpid(-1, NULL, 0) > 0)
        ;
    for (int i = 0; i < tree.leaves; i++)
        if (empty_leaf[i] >= 0)
            await_charge(tree.leaf[i], empty_leaf[i]);
    for (int i = tree.depth - 1; i >= 0; i--)
        if (empty_chain[i] >= 0)
            await_charge(tree.chain[i], empty_chain[i]);
    remove_tree(&tree);
    await_charge(TOP, top);
}

static int remove_below(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind;
    return place->level == 0 ? 0 : remove(path);
}

// What is free once what only waits to be given back is, and without what workloads have left lying about.
static long free_kib(void)
{
    if (nftw(OWN, remove_below, 8, FTW_DEPTH | FTW_PHYS) != 0)
        violation("a file of an ended workload cannot be removed: %s", strerror(errno));
    int file = open("/proc/sys/vm/drop_caches", O_WRONLY);
    if (file >= 0) {
        (void)!write(file, "3", 1);
        close(file);
    }
    sleep_micros(1000000);
    struct sysinfo info;
    must(sysinfo(&info), "sysinfo");
    return (long)(info.freeram * info.mem_unit >> 10);
}

static void make_watched_files(void)
{
    must(mkdir(WATCHED, 0755), "mkdir");
    for (int i = 0; i < MOST_WATCHED; i++) {
        char path[40];
        snprintf(path, sizeof path, WATCHED "/%d", i);
        must(mknod(path, S_IFREG | 0600, 0), "create a file");
    }
}

static void *stay(void *_)
{
    for (;;)
        pause();
    return _;
}

// The kernel keeps for good the records of as many threads as there were at once, to use them again, and some hundred names of /proc, also of what has ended: as many of both as it will
// ever have, so that what is lost later is lost.
static void fill_what_is_kept(void)
{
    pid_t child = fork();
    must(child, "fork");
    if (child == 0) {
        pthread_attr_t small;
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 4 * PAGE);
        for (int i = 0; i < THREADS_KEPT; i++) {
            pthread_t thread;
            if (pthread_create(&thread, &small, stay, NULL) != 0)
                fail("so many threads");
        }
        for (int i = 1; i <= NAMES_KEPT; i++) {
            char name[60];
            struct stat status;
            snprintf(name, sizeof name, "/proc/self/task/%d/stat", getpid() + i);
            must(stat(name, &status), "stat of a thread's file");
        }
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0), "wait");
    if (status != 0)
        fail("the process with many threads");
}

static void prepare(void)
{
    static const char page[PAGE];
    become_init();
    mkdir("/dev/pts", 0755);
    mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=666");
    mkdir("/tmp", 01777);
    int file = open("/tmp/page", O_CREAT | O_RDWR, 0644);
    must(file, "create a file");
    must(write(file, page, PAGE), "write a file");
    close(file);
    must(file = open(LOCKED_FILE, O_CREAT | O_RDWR, 0644), "create a file");
    close(file);
    make_watched_files();
    must(mkdir(OWN, 0755), "mkdir");
    mkdir(CGROUPS, 0755);
    must(mount("cgroup2", CGROUPS, "cgroup2", 0, NULL), "mount of cgroup2");
    must(write_group(CGROUPS, "cgroup.subtree_control", "+cpu +pids +memory +reclaim"), "controllers");
    must(mkdir(TOP, 0755), "mkdir of a group");
    must(write_group(TOP, "cgroup.subtree_control", "+cpu +pids +memory +reclaim"), "controllers");
    struct rlimit many = { 20000, 20000 };
    setrlimit(RLIMIT_NOFILE, &many);
    is_counted = sysconf(_SC_NPROCESSORS_ONLN) == 1;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        fail("the board");
    fill_what_is_kept();
}

// What outlives the processes that made it.
static void remove_objects(void)
{
    struct shmid_ds segment;
    struct semid_ds set;
    struct shm_info segments;
    struct seminfo sets;
    for (int place = shmctl(0, SHM_INFO, (void *)&segments); place >= 0; place--) {
        int id = shmctl(place, SHM_STAT, &segment);
        if (id >= 0)
            shmctl(id, IPC_RMID, NULL);
    }
    for (int place = semctl(0, 0, SEM_INFO, &sets); place >= 0; place--) {
        int id = semctl(place, 0, SEM_STAT, &set);
        if (id >= 0)
            semctl(id, 0, IPC_RMID);
    }
}

static void report(void)
{
    printf("kills: %ld kills, %ld took longer than was charged; until the group was empty that passed for %ld more\n", kills, longer, later);
    for (const struct class *class = classes; class->name[0]; class++)
        printf("kills: most charged for %-10s: %5ld kills, of the charge at most %.2f measured (round %ld), %.2f elapsed (round %ld)\n", class->name,
               class->kills, class->most, class->most_round, class->latest, class->latest_round);
    printf("kills: measured/charged:");
    for (int i = 0; i < BUCKETS; i++)
        if (i < BUCKETS - 1)
            printf(" up to %.2f: %ld,", bucket_ends[i], histogram[i]);
        else
            printf(" more: %ld\n", histogram[i]);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--nothing") == 0)
        return 0;
    if (argc > 1 && strcmp(argv[1], "--execute") == 0)
        execv("/init", argv);
    if (getpid() != 1) {
        fprintf(stderr, "kills: to be run in a guest, as process 1\n");
        return 2;
    }
    long rounds = argc > 1 ? atol(argv[1]) : 100;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    long first = argc > 3 ? atol(argv[3]) : 0;
    for (int i = 4; i < argc; i++)
        if (strcmp(argv[i], "each") == 0)
            is_verbose = 1;
        else
            only = kind_named(argv[i]);
    prepare();
    long start = free_kib(), warm = 0, now = start;
    signal(SIGPIPE, SIG_IGN);
    printf("kills: seed %llu, %ld KiB free\n", (unsigned long long)seed, start);
    for (long done = 1; done <= rounds; done++) {
        long began = now_micros();
        do_round(seed, first + done - 1);
        remove_objects();
        if (is_verbose)
            printf("kills: round %ld: %ld us\n", the_round, now_micros() - began);
        if (done % LOOK != 0 && done != rounds)
            continue;
        now = free_kib();
        if (warm == 0 || done <= WARM)
            warm = now;
        printf("kills: %ld rounds, %ld kills, %d violations, %ld KiB free\n", done, kills, board->violations, now);
        fflush(stdout);
    }
    if (warm - now > TOLERANCE + (sysconf(_SC_NPROCESSORS_ONLN) - 1) * CORE_CACHED)
        violation("%ld KiB are lost", warm - now);
    report();
    printf("kills: %ld rounds, seed %llu, done, %d failed\n", rounds, (unsigned long long)seed, board->violations);
    fflush(stdout);
    reboot(RB_POWER_OFF);
    return 0;
}
