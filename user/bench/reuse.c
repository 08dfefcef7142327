// How soon the memory of what was destroyed can be had again while another core is busy: one static program that runs on Linux and on Ebb.
//
//     reuse [--trials N]
//
// First comes a line `cores<TAB>N`; then for each kind of object and each thing that the other core does a line `reuse:KIND/OTHER<TAB>median<TAB>longest`:
// nanoseconds from the return of the call that destroys the object until the system has said that three quarters of its memory are free again
// (sysinfo(2), which takes its own time; the rest is for what caches of the kernel keep and what counters round). This program is on core 0. On core 1 another process computes, makes
// system calls or is not there; or a thread of this process computes. Where there is one core the others are not measured.
//
// As process 1 it takes the number of trials from the file /settings and powers the machine off at the end.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>

#include "bench.h"

#define OBJECT_BYTES (4L << 20)
#define PIPE_BYTES (1L << 20)
#define PIPES 4
#define FILE_NAME "/tmp/reuse-file"
#define MOST_TRIALS 1000
// What takes longer is not waited for.
#define LIMIT_NANOSECONDS 1000000000L

static long nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static long free_bytes(void)
{
    struct sysinfo info;
    must(sysinfo(&info), "sysinfo");
    return (long)info.freeram * info.mem_unit;
}

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    must(sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
}

// Each of the following makes an object, says how much is free, and destroys it; it gives the time after that and in `held` how much came or will come back.

static long from_free, held;

static void made(long bytes)
{
    from_free = free_bytes();
    held = bytes;
}

static long destroy_mapping(void)
{
    char *memory = mmap(NULL, OBJECT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    memset(memory, 1, OBJECT_BYTES);
    made(OBJECT_BYTES);
    munmap(memory, OBJECT_BYTES);
    return nanoseconds();
}

static long destroy_file(void)
{
    static char block[64 << 10];
    int fd = open(FILE_NAME, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(fd, "create a file");
    for (long at = 0; at < OBJECT_BYTES; at += sizeof block)
        if (write(fd, block, sizeof block) != sizeof block)
            fail("write a file");
    unlink(FILE_NAME);
    made(OBJECT_BYTES);
    close(fd);
    return nanoseconds();
}

static long destroy_pipes(void)
{
    static char block[4096];
    int ends[PIPES][2];
    for (int i = 0; i < PIPES; i++) {
        must(pipe(ends[i]), "pipe");
        must(fcntl(ends[i][1], F_SETPIPE_SZ, PIPE_BYTES), "F_SETPIPE_SZ");
        for (long at = 0; at < PIPE_BYTES; at += sizeof block)
            if (write(ends[i][1], block, sizeof block) != sizeof block)
                fail("write a pipe");
    }
    made(PIPES * PIPE_BYTES);
    for (int i = 0; i < PIPES; i++) {
        close(ends[i][0]);
        close(ends[i][1]);
    }
    return nanoseconds();
}

static long destroy_process(void)
{
    int ready[2];
    char byte;
    must(pipe(ready), "pipe");
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        char *memory = mmap(NULL, OBJECT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (memory == MAP_FAILED)
            _exit(1);
        memset(memory, 1, OBJECT_BYTES);
        (void)!write(ready[1], "r", 1);
        for (;;)
            pause();
    }
    if (read(ready[0], &byte, 1) != 1)
        fail("a child does not begin");
    close(ready[0]);
    close(ready[1]);
    made(OBJECT_BYTES);
    kill(pid, SIGKILL);
    must(waitpid(pid, NULL, 0), "wait");
    return nanoseconds();
}

static const struct {
    const char *name;
    long (*destroy)(void);
} kinds[] = {
    { "mapping", destroy_mapping },
    { "file", destroy_file },
    { "pipes", destroy_pipes },
    { "process", destroy_process },
};

// What the other core does.
enum other { IDLE, COMPUTES, CALLS, THREAD };

static const char *const other_names[] = { "idle", "computes", "calls", "thread" };

static atomic_int thread_over;

static void *compute(void *unused)
{
    pin(1);
    while (!atomic_load_explicit(&thread_over, memory_order_relaxed))
        ;
    return unused;
}

static pid_t start_process(enum other other)
{
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        pin(1);
        for (;;)
            if (other == CALLS)
                call3(SYS_getppid, 0, 0, 0);
            else
                __asm__ volatile("" ::: "memory");
    }
    return pid;
}

static int compare(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static void measure(int kind, enum other other, int trials)
{
    static long times[MOST_TRIALS];
    pid_t pid = 0;
    pthread_t thread;
    if (other == COMPUTES || other == CALLS)
        pid = start_process(other);
    if (other == THREAD) {
        thread_over = 0;
        if (pthread_create(&thread, NULL, compute, NULL) != 0)
            fail("pthread_create");
    }
    // The first ones warm up what is lazy.
    for (int i = -3; i < trials; i++) {
        long destroyed = kinds[kind].destroy(), took;
        int is_back;
        do {
            is_back = free_bytes() >= from_free + held / 4 * 3;
            took = nanoseconds() - destroyed;
        } while (!is_back && took < LIMIT_NANOSECONDS);
        if (i >= 0)
            times[i] = took;
    }
    qsort(times, trials, sizeof times[0], compare);
    printf("reuse:%s/%s\t%ld\t%ld\n", kinds[kind].name, other_names[other], times[trials / 2], times[trials - 1]);
    fflush(stdout);
    if (pid > 0) {
        kill(pid, SIGKILL);
        must(waitpid(pid, NULL, 0), "wait");
    }
    if (other == THREAD) {
        thread_over = 1;
        pthread_join(thread, NULL);
    }
}

int main(int argc, char **argv)
{
    int trials = 100;
    if (getpid() == 1) {
        become_init();
        FILE *settings = fopen("/settings", "r");
        if (settings && fscanf(settings, "%d", &trials) != 1)
            fail("/settings");
    }
    if (argc > 2 && strcmp(argv[1], "--trials") == 0)
        trials = atoi(argv[2]);
    if (trials < 1 || trials > MOST_TRIALS)
        fail("trials");
    mkdir("/tmp", 01777);
    cpu_set_t set;
    must(sched_getaffinity(0, sizeof set, &set), "sched_getaffinity");
    int cores = CPU_COUNT(&set);
    printf("cores\t%d\n", cores);
    pin(0);
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (enum other other = IDLE; other <= (cores > 1 ? THREAD : IDLE); other++)
            measure((int)kind, other, trials);
    done();
}
