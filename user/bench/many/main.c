// What operations cost where there are many of something: one static program that runs on Linux and on Ebb.
//
//     many [ROW...]
//
// prints a line `row/N<TAB>median<TAB>minimum` for each row and N = 1, 100, 10,000, in time stamp counter ticks per operation. As process 1 it
// mounts what it needs first and powers the machine off at the end. 10,000 processes need 2 GiB of memory on Linux.
#include "many.h"
#include <sys/prctl.h>
#include <sys/resource.h>

long many;
int stage_pipe[2];

static const struct row *const tables[] = {
    descriptor_rows, thread_rows, futex_rows, process_rows, memory_rows, epoll_rows, file_rows, timer_rows,
};

uint64_t fork_exit_wait(long count)
{
    uint64_t start = ticks();
    for (long i = 0; i < count; i++) {
        long pid = call3(SYS_fork, 0, 0, 0);
        if (pid == 0)
            call3(SYS_exit_group, 0, 0, 0);
        must(call4(SYS_wait4, pid, 0, 0, 0), "wait");
    }
    return ticks() - start;
}

uint64_t ending(void (*fill)(long many), long count)
{
    volatile uint64_t *began = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (began == MAP_FAILED)
        fail("mmap");
    long pid = call3(SYS_fork, 0, 0, 0);
    must(pid, "fork");
    if (pid == 0) {
        fill(count);
        *began = ticks();
        call3(SYS_exit_group, 0, 0, 0);
    }
    int status = -1;
    must(call4(SYS_wait4, pid, (long)&status, 0, 0), "wait");
    uint64_t took = ticks() - *began;
    if (status != 0)
        fail("what was to end failed before");
    munmap((void *)began, 4096);
    return took;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define STRETCHES "/proc/ebb/stretch"

// Of an Ebb that measures how long it keeps interrupts off: `stretch:row/N<TAB>ticks<TAB>what began it`, the longest since the last row.
static void print_stretch(const struct row *row)
{
    char line[256], cause[200] = "";
    long longest = 0;
    FILE *file = fopen(STRETCHES, "r");
    if (!file)
        return;
    if (fgets(line, sizeof line, file) && sscanf(line, "longest %ld %199[^\n]", &longest, cause) >= 1)
        printf("stretch:%s/%ld\t%ld\t%s\n", row->name, many, longest, cause);
    fclose(file);
    fflush(stdout);
}

static void forget_stretches(void)
{
    int file = open(STRETCHES, O_WRONLY);
    if (file >= 0 && write(file, "0", 1) == 1)
        close(file);
}

static void measure(const struct row *row)
{
    enum { BATCHES = 5 };
    double values[BATCHES];
    // The first time warms up what is lazy. Totals of many are measured fewer times.
    int batches = row->count == 0 && many > 1000 ? 1 : BATCHES;
    long argument = row->count == 0 ? many : row->count;
    if (batches > 1)
        row->run(argument);
    for (int i = 0; i < batches; i++)
        values[i] = (double)row->run(argument) / (double)(row->count == 0 ? 1 : row->count);
    qsort(values, batches, sizeof values[0], compare);
    printf("%s/%ld\t%.0f\t%.0f\n", row->name, many, values[batches / 2], values[0]);
    fflush(stdout);
}

// Measures those rows of a table that share a stage with the first one; gives the first row of the next stage.
static const struct row *run_stage(const struct row *first)
{
    const struct row *end = first + 1;
    while (first->make && end->name && end->make == first->make)
        end++;
    int wanted = 0;
    for (const struct row *row = first; row < end; row++)
        wanted |= chosen(row->name);
    if (!wanted)
        return end;
    must(pipe(stage_pipe), "pipe");
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        forget_stretches();
        if (first->make)
            first->make(many);
        for (const struct row *row = first; row < end; row++)
            if (chosen(row->name)) {
                measure(row);
                print_stretch(row);
                forget_stretches();
            }
        exit(0);
    }
    close(stage_pipe[0]);
    close(stage_pipe[1]);
    int status = -1;
    must(waitpid(pid, &status, 0), "wait for the stage");
    // What the kernel refuses has no figure; the stage has said why.
    while (waitpid(-1, NULL, 0) > 0)
        ;
    return end;
}

int main(int argc, char **argv)
{
    if (getpid() == 1)
        become_init();
    choose(argc, argv);
    must(prctl(PR_SET_CHILD_SUBREAPER, 1), "prctl");
    struct rlimit descriptors = { 65536, 65536 };
    must(setrlimit(RLIMIT_NOFILE, &descriptors), "setrlimit");
    mkdir("/tmp", 01777);
    for (many = 1; many <= 10000; many *= 100)
        for (size_t table = 0; table < sizeof tables / sizeof tables[0]; table++)
            for (const struct row *row = tables[table]; row->name;)
                row = run_stage(row);
    done();
}
