// All kinds of work on all cores against each other, for a given time; what is checked does not depend on how it is scheduled. Runs on Linux and on Ebb.
//
//     stress [--seconds N] [--seed N] [--memory] [FAMILY...]
//
// Each family of work (files, pipes, signals, ...) is a process that does one round after the other; all families run at the same time, first
// for so many seconds to warm up, then for as many again. A line for each says what it did, `stress: NAME: N rounds, N operations, N violations`,
// and the last line is `stress: N families, seed N, done, N failed`. With --memory the free memory must be the same after
// both times, but for 1 %: for machines that do nothing else.
//
// As process 1 it takes its arguments from the kernel's command line, with --memory, and powers the machine off at the end.
#include "stress.h"

#include <dirent.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>

// How long a family may take to end its last round: there to end what hangs.
#define PATIENCE_SECONDS 180
// How much memory the kernel may keep, in per cent of all: caches of what is used again.
#define KEPT_PER_CENT 1

#define MOST 64

static const struct family *const all[] = {
    memory_families, lock_families, process_families, signal_families, file_families,
    name_families,   channel_families, event_families, core_families, overlay_families,
    mount_families,
};

struct board {
    atomic_long rounds, operations, violations;
};

static struct board *boards, *board;
static const struct family *family;
static uint64_t seed = 1;
cpu_set_t allowed_cores;

static _Thread_local uint64_t random_state;

void violation(const char *format, ...)
{
    char text[512];
    int length = snprintf(text, sizeof text, "stress: %s: VIOLATION: ", family ? family->name : "main");
    va_list arguments;
    va_start(arguments, format);
    length += vsnprintf(text + length, sizeof text - length, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof text - 2)
        length = sizeof text - 2;
    text[length++] = '\n';
    // The first ones say enough.
    if (!board || atomic_fetch_add(&board->violations, 1) < 5)
        (void)!write(1, text, length);
}

void count(long operations)
{
    atomic_fetch_add(&board->operations, operations);
}

static void seed_sequence(uint64_t a, uint64_t b)
{
    random_state = (seed * 0x9e3779b97f4a7c15u ^ a * 0xbf58476d1ce4e5b9u ^ b * 0x94d049bb133111ebu) | 1;
}

uint32_t any(uint32_t below)
{
    // xorshift64* of Marsaglia and Vigna.
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)((random_state * 0x2545f4914f6cdd1du) >> 33) % below;
}

long milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void nap(void)
{
    nanosleep(&(struct timespec){ 0, 200000 }, NULL);
}

void settle(void)
{
    cpu_set_t set = allowed_cores;
    if (any(2)) {
        int number = (int)any(CPU_COUNT(&allowed_cores)), core = 0;
        while (!CPU_ISSET(core, &allowed_cores) || number-- > 0)
            core++;
        CPU_ZERO(&set);
        CPU_SET(core, &set);
    }
    MUST(sched_setaffinity(0, sizeof set, &set) == 0);
}

void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(memory != MAP_FAILED);
    return memory;
}

struct thread {
    pthread_t id;
    void (*work)(int);
    uint64_t sequence;
    int index;
};

static void *run_thread(void *argument)
{
    struct thread *thread = argument;
    random_state = thread->sequence | 1;
    settle();
    thread->work(thread->index);
    return NULL;
}

static uint64_t new_sequence(void)
{
    any(2);
    return random_state * 0x9e3779b97f4a7c15u;
}

void threads(int number, void (*work)(int))
{
    struct thread thread[MOST];
    for (int i = 0; i < number; i++) {
        thread[i] = (struct thread){ .work = work, .sequence = new_sequence(), .index = i };
        MUST((errno = pthread_create(&thread[i].id, NULL, run_thread, &thread[i])) == 0);
    }
    for (int i = 0; i < number; i++)
        pthread_join(thread[i].id, NULL);
}

int status_of(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) != pid)
        MUST(errno == EINTR);
    return status;
}

void processes(int number, void (*work)(int))
{
    pid_t pids[MOST];
    for (int i = 0; i < number; i++) {
        uint64_t sequence = new_sequence();
        MUST((pids[i] = fork()) >= 0);
        if (pids[i] == 0) {
            random_state = sequence | 1;
            settle();
            work(i);
            _exit(0);
        }
    }
    for (int i = 0; i < number; i++) {
        int status = status_of(pids[i]);
        HOLDS(status == 0, "worker %d ended with status %#x", i, status);
    }
}

static void remove_all_here(void)
{
    DIR *directory = opendir(".");
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && unlink(entry->d_name) != 0)
            rmdir(entry->d_name);
    if (directory)
        closedir(directory);
}

// The life of a family's process.
static void run_family(int index, int time, long end)
{
    char directory[64];
    snprintf(directory, sizeof directory, "stress-%s", family->name);
    MUST(setpgid(0, 0) == 0 && (mkdir(directory, 0700) == 0 || errno == EEXIST) && chdir(directory) == 0);
    signal(SIGPIPE, SIG_IGN);
    for (long round = 0; milliseconds() < end; round++) {
        seed_sequence(index * 2 + time, round);
        settle();
        family->round();
        atomic_fetch_add(&board->rounds, 1);
    }
    remove_all_here();
    MUST(chdir("..") == 0 && rmdir(directory) == 0);
    _exit(0);
}

// The first line of a file, into a static buffer.
static const char *first_line(const char *name)
{
    static char line[512];
    int fd = open(name, O_RDONLY);
    ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (length < 0)
        snprintf(line, sizeof line, "(%s)", strerror(errno));
    else
        line[length] = '\0';
    if (fd >= 0)
        close(fd);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

// The process group of a process; -1 if there is none of that number.
static pid_t group_of(const char *pid)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/%s/stat", pid);
    // The name, in parentheses, may have any letters; the state and the parent follow.
    const char *rest = strrchr(first_line(name), ')');
    int group = -1;
    return rest && sscanf(rest, ") %*c %*d %d", &group) == 1 ? group : -1;
}

// Tells where each thread of a group of processes is: the group did not end.
static void tell_where_they_are(pid_t group)
{
    static const char *const files[] = { "stat", "syscall" };
    DIR *processes = opendir("/proc");
    for (struct dirent *process; processes && (process = readdir(processes));) {
        char name[320];
        if (atoi(process->d_name) <= 0 || group_of(process->d_name) != group)
            continue;
        snprintf(name, sizeof name, "/proc/%.32s/task", process->d_name);
        DIR *all = opendir(name);
        for (struct dirent *thread; all && (thread = readdir(all));) {
            if (thread->d_name[0] == '.')
                continue;
            for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
                snprintf(name, sizeof name, "/proc/%.32s/task/%.32s/%s", process->d_name, thread->d_name, files[i]);
                printf("stress: %s: VIOLATION: %s: %s\n", family->name, name, first_line(name));
            }
        }
        if (all)
            closedir(all);
    }
    if (processes)
        closedir(processes);
}

static const struct family *chosen[MOST];
static int families;
// Whether anything was wrong, to warm up or later.
static int has_failed[MOST];

// Runs all families for some seconds.
static void run_all(int time, long seconds)
{
    pid_t pids[MOST];
    memset(boards, 0, MOST * sizeof *boards);
    fflush(stdout);
    long end = milliseconds() + seconds * 1000;
    for (int i = 0; i < families; i++) {
        family = chosen[i];
        board = &boards[i];
        MUST((pids[i] = fork()) >= 0);
        if (pids[i] == 0)
            run_family(i, time, end);
    }
    for (int i = 0; i < families; i++) {
        int status = 0;
        pid_t got;
        while ((got = waitpid(pids[i], &status, WNOHANG)) == 0 && milliseconds() < end + PATIENCE_SECONDS * 1000)
            nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
        family = chosen[i];
        board = &boards[i];
        HOLDS(got == pids[i], "it does not end");
        if (got != pids[i])
            tell_where_they_are(pids[i]);
        // What a failed round left.
        kill(-pids[i], SIGKILL);
        if (got != pids[i])
            status_of(pids[i]);
        HOLDS(got != pids[i] || status == 0, "it ended with status %#x", status);
        printf("stress: %s: %ld rounds, %ld operations, %ld violations\n", family->name, boards[i].rounds, boards[i].operations,
               boards[i].violations);
        has_failed[i] |= boards[i].violations > 0;
    }
    // Orphans that process 1 got.
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    family = NULL;
    board = NULL;
}

static long meminfo(const char *name)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    long kib = -1;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = atol(line + strlen(name));
    if (file)
        fclose(file);
    MUST(kib >= 0);
    return kib;
}

// What is free once what only waits to be given back is.
static long free_kib(void)
{
    sync();
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
    if (fd >= 0) {
        (void)!write(fd, "3", 1);
        close(fd);
    }
    sleep(1);
    return meminfo("MemFree:");
}

static void become_init(void)
{
    mkdir("/dev", 0755);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    mkdir("/dev/pts", 0755);
    mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=666");
    mkdir("/proc", 0755);
    mount("proc", "/proc", "proc", 0, NULL);
    mkdir("/tmp", 01777);
    MUST(chdir("/tmp") == 0);
    int console = open("/dev/console", O_RDWR);
    for (int fd = 0; console >= 0 && fd < 3; fd++)
        dup2(console, fd);
}

static int is_wanted(const char *name, int count, char **names)
{
    int any_named = 0;
    for (int i = 0; i < count; i++) {
        any_named = 1;
        if (strcmp(names[i], name) == 0)
            return 1;
    }
    return !any_named;
}

int main(int argc, char **argv)
{
    // What the processes families execute.
    if (argc == 3 && strcmp(argv[1], "--exit") == 0)
        return atoi(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--pending") == 0)
        return take_pending(atoi(argv[2]));
    long seconds = 10;
    int unknown = 0;
    int check_memory = getpid() == 1;
    if (getpid() == 1)
        become_init();
    for (; argc > 1 && strncmp(argv[1], "--", 2) == 0; argc--, argv++) {
        if (strcmp(argv[1], "--memory") == 0) {
            check_memory = 1;
            continue;
        }
        if (argc > 2 && strcmp(argv[1], "--seconds") == 0)
            seconds = atol(argv[2]);
        else if (argc > 2 && strcmp(argv[1], "--seed") == 0)
            seed = strtoull(argv[2], NULL, 0);
        else {
            fprintf(stderr, "usage: stress [--seconds N] [--seed N] [--memory] [FAMILY...]\n");
            return 2;
        }
        argc--, argv++;
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (const struct family *each = all[i]; each->name; each++)
            if (is_wanted(each->name, argc - 1, argv + 1))
                chosen[families++] = each;
    for (int i = 1; i < argc; i++) {
        int is_known = 0;
        for (int j = 0; j < families; j++)
            is_known |= strcmp(chosen[j]->name, argv[i]) == 0;
        HOLDS(is_known, "there is no family %s", argv[i]);
        unknown += !is_known;
    }
    // Many signals are pending at once, and many descriptors open.
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    seed_sequence(0, 0);
    MUST(sched_getaffinity(0, sizeof allowed_cores, &allowed_cores) == 0);
    boards = shared_memory(MOST * sizeof *boards);
    printf("stress: seed %llu, %d cores, %ld s to warm up and %ld s more\n", (unsigned long long)seed, CPU_COUNT(&allowed_cores), seconds, seconds);

    run_all(0, seconds);
    long before = check_memory ? free_kib() : 0;
    printf("stress: warm\n");
    run_all(1, seconds);
    int failed = unknown;
    for (int i = 0; i < families; i++)
        failed += has_failed[i];
    if (check_memory) {
        long after = free_kib(), allowed = meminfo("MemTotal:") * KEPT_PER_CENT / 100;
        int is_lost = before - after > allowed;
        printf("stress: memory: %ld KiB free before, %ld KiB after%s\n", before, after, is_lost ? ": VIOLATION" : "");
        failed += is_lost;
    }
    printf("stress: %d families, seed %llu, done, %d failed\n", families, (unsigned long long)seed, failed);
    fflush(stdout);
    if (getpid() == 1) {
        sync();
        reboot(RB_POWER_OFF);
    }
    return failed > 0;
}
