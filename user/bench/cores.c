// How far work gets on one core and on two: one static program that runs on Linux and on Ebb.
//
//     cores [--rounds N] [--milliseconds N] [ROW...]
//
// First come lines `cores<TAB>N`, the cores that the kernel has, then for each round and row `row<TAB>workers<TAB>rate`: how many
// operations a second one worker did on core 0, and how many two did together, at the same time, on the cores 0 and 1. Where there is one
// core, two workers are not measured. Rows of `independent` workers are processes that share nothing but the kernel; rows of `shared` state are threads of
// one process.
//
// As process 1 it mounts what it needs first, takes the two numbers from the file /settings, and powers the machine off at the end.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "bench.h"

#define PAGE 4096
#define PROGRAM_NAME "/tmp/cores-program"
#define WORKERS 2
// From linux/futex.h, for threads of one process.
#define WAIT_PRIVATE (0 | 128)
#define WAKE_PRIVATE (1 | 128)
// Pages that are touched between a mapping's beginning and its end.
#define FAULTS 256

struct worker {
    // Its core, and how many of them there are.
    int index, count;
    // What it works on: its own where workers are independent.
    struct state *state;
    // It cannot go on: the other end of its pipe is closed.
    int over;
};

struct state {
    char directory[32], path[48];
    int file, pipe[2];
    // Whose turn it is of two threads, or END.
    atomic_int ball;
    pthread_t partner;
};

enum { MINE, THEIRS, END };

// What workers tell the first process.
static struct board {
    atomic_int ready;
    struct {
        long operations, nanoseconds;
    } done[WORKERS];
} *board;

static long milliseconds = 500;
static double ticks_per_nanosecond;

static long nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static int pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

// Each of the following does some operations and gives how many.

#define TIMES(count, call)              \
    for (long i = 0; i < (count); i++) \
        call;                           \
    return count

static long compute(struct worker *worker)
{
    uint64_t value = worker->index;
    for (long i = 0; i < 10000; i++) {
        value = value * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(value));
    }
    return 10;
}

static char buffers[WORKERS][PAGE] __attribute__((aligned(PAGE)));

#define BUFFER ((long)buffers[worker->index])
#define FILE_OF_WORKER (worker->state->file)
// Where in a file a worker reads and writes: threads that share one do so in pages of their own.
#define PLACE ((long)worker->index * PAGE)

static long null_call(struct worker *worker) { (void)worker; TIMES(200, call3(SYS_getppid, 0, 0, 0)); }
static long read_1(struct worker *worker) { TIMES(100, call4(SYS_pread64, FILE_OF_WORKER, BUFFER, 1, PLACE)); }
static long read_4k(struct worker *worker) { TIMES(100, call4(SYS_pread64, FILE_OF_WORKER, BUFFER, PAGE, PLACE)); }
static long write_1(struct worker *worker) { TIMES(100, call4(SYS_pwrite64, FILE_OF_WORKER, BUFFER, 1, PLACE)); }
static long write_4k(struct worker *worker) { TIMES(100, call4(SYS_pwrite64, FILE_OF_WORKER, BUFFER, PAGE, PLACE)); }
static long stat_path(struct worker *worker) { TIMES(100, call3(SYS_stat, (long)worker->state->path, BUFFER, 0)); }
static long dup_close(struct worker *worker) { TIMES(100, call3(SYS_close, call3(SYS_dup, FILE_OF_WORKER, 0, 0), 0, 0)); }

static long open_close(struct worker *worker)
{
    TIMES(100, call3(SYS_close, call3(SYS_open, (long)worker->state->path, O_RDONLY, 0), 0, 0));
}

static long pipe_to_itself(struct worker *worker)
{
    int *ends = worker->state->pipe;
    TIMES(100, (call3(SYS_write, ends[1], BUFFER, 1), call3(SYS_read, ends[0], BUFFER, 1)));
}

// Alone, a worker writes and reads; of two, one writes and the other reads, which counts.
static long pipe_between(struct worker *worker)
{
    int *ends = worker->state->pipe;
    if (worker->count == 1)
        return pipe_to_itself(worker);
    for (int i = 0; i < 100; i++) {
        long moved = worker->index == 0 ? call3(SYS_write, ends[1], BUFFER, 1) : call3(SYS_read, ends[0], BUFFER, 1);
        if (moved != 1) {
            worker->over = 1;
            return worker->index == 0 ? 0 : i;
        }
    }
    return worker->index == 0 ? 0 : 100;
}

static long map_unmap(struct worker *worker)
{
    (void)worker;
    TIMES(50, call3(SYS_munmap, call6(SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PAGE, 0));
}

static long anonymous_fault(struct worker *worker)
{
    (void)worker;
    volatile char *memory = mmap(NULL, FAULTS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    for (long i = 0; i < FAULTS; i++)
        memory[i * PAGE] = 1;
    munmap((void *)memory, FAULTS * PAGE);
    return FAULTS;
}

static long fork_exec_wait(struct worker *worker)
{
    (void)worker;
    char *arguments[] = { PROGRAM_NAME, NULL };
    long pid = call3(SYS_fork, 0, 0, 0);
    if (pid == 0) {
        call3(SYS_execve, (long)PROGRAM_NAME, (long)arguments, 0);
        call3(SYS_exit_group, 1, 0, 0);
    }
    int status = -1;
    call4(SYS_wait4, pid, (long)&status, 0, 0);
    if (status != 0)
        fail("the program did not run");
    return 1;
}

static long create_unlink(struct worker *worker)
{
    char name[64];
    snprintf(name, sizeof name, "%s/new-%d", worker->state->directory, worker->index);
    for (int i = 0; i < 50; i++) {
        long fd = call3(SYS_open, (long)name, O_WRONLY | O_CREAT | O_EXCL, 0600);
        must(fd, "create a file");
        call3(SYS_close, fd, 0, 0);
        must(call3(SYS_unlink, (long)name, 0, 0), "unlink a file");
    }
    return 50;
}

static long futex_wake(struct worker *worker)
{
    TIMES(100, call6(SYS_futex, (long)&worker->state->ball, WAKE_PRIVATE, 1, 0, 0, 0));
}

static void give_turn(atomic_int *ball, int turn)
{
    atomic_store(ball, turn);
    call6(SYS_futex, (long)ball, WAKE_PRIVATE, 1, 0, 0, 0);
}

static void *return_ball(void *argument)
{
    atomic_int *ball = argument;
    for (int turn; (turn = atomic_load(ball)) != END;) {
        if (turn == MINE)
            call6(SYS_futex, (long)ball, WAIT_PRIVATE, MINE, 0, 0, 0);
        else
            give_turn(ball, MINE);
    }
    return NULL;
}

static long futex_round_trip(struct worker *worker)
{
    atomic_int *ball = &worker->state->ball;
    for (int i = 0; i < 20; i++) {
        give_turn(ball, THEIRS);
        while (atomic_load(ball) == THEIRS)
            call6(SYS_futex, (long)ball, WAIT_PRIVATE, THEIRS, 0, 0, 0);
    }
    return 20;
}

enum sharing { INDEPENDENT, SHARED };

static const struct row {
    const char *name;
    enum sharing sharing;
    long (*work)(struct worker *);
} rows[] = {
    { "compute", INDEPENDENT, compute },
    { "null", INDEPENDENT, null_call },
    { "read-1", INDEPENDENT, read_1 },
    { "read-4k", INDEPENDENT, read_4k },
    { "write-1", INDEPENDENT, write_1 },
    { "write-4k", INDEPENDENT, write_4k },
    { "pipe", INDEPENDENT, pipe_to_itself },
    { "open-close", INDEPENDENT, open_close },
    { "stat", INDEPENDENT, stat_path },
    { "anonymous-fault", INDEPENDENT, anonymous_fault },
    { "futex-round-trip", INDEPENDENT, futex_round_trip },
    { "fork-exec-wait", INDEPENDENT, fork_exec_wait },
    { "mmap-munmap", INDEPENDENT, map_unmap },
    { "shared-read-1", SHARED, read_1 },
    { "shared-read-4k", SHARED, read_4k },
    { "shared-write-1", SHARED, write_1 },
    { "shared-write-4k", SHARED, write_4k },
    { "shared-open-close", SHARED, open_close },
    { "shared-create-unlink", SHARED, create_unlink },
    { "shared-anonymous-fault", SHARED, anonymous_fault },
    { "shared-mmap-munmap", SHARED, map_unmap },
    { "shared-futex-wake", SHARED, futex_wake },
    { "shared-pipe", SHARED, pipe_between },
    { "shared-dup-close", SHARED, dup_close },
};

static void set_up(struct state *state, const struct row *row, int number)
{
    snprintf(state->directory, sizeof state->directory, "/tmp/cores-%d", number);
    snprintf(state->path, sizeof state->path, "%s/file", state->directory);
    mkdir(state->directory, 0700);
    must(state->file = open(state->path, O_RDWR | O_CREAT | O_TRUNC, 0600), "create a file");
    for (int i = 0; i < WORKERS; i++)
        if (write(state->file, buffers[i], PAGE) != PAGE)
            fail("write a file");
    must(pipe(state->pipe), "pipe");
    if (row->work == futex_round_trip && pthread_create(&state->partner, NULL, return_ball, &state->ball) != 0)
        fail("pthread_create");
}

static void tear_down(struct state *state, const struct row *row)
{
    if (row->work == futex_round_trip) {
        give_turn(&state->ball, END);
        pthread_join(state->partner, NULL);
    }
    unlink(state->path);
    rmdir(state->directory);
}

// Works for the time, once all workers are ready.
static void work(struct worker *worker, const struct row *row)
{
    // What is lazy is done before.
    row->work(worker);
    atomic_fetch_add(&board->ready, 1);
    while (atomic_load(&board->ready) < worker->count)
        ;
    long start = nanoseconds(), operations = 0;
    uint64_t end = ticks() + (uint64_t)((double)milliseconds * 1e6 * ticks_per_nanosecond);
    while (!worker->over && ticks() < end)
        operations += row->work(worker);
    board->done[worker->index].nanoseconds = nanoseconds() - start;
    board->done[worker->index].operations = operations;
    if (row->work == pipe_between && worker->count > 1)
        close(worker->state->pipe[worker->index == 0]);
}

struct thread {
    struct worker worker;
    const struct row *row;
    pthread_t id;
};

static void *run_thread(void *argument)
{
    struct thread *thread = argument;
    must(pin(thread->worker.index), "sched_setaffinity");
    work(&thread->worker, thread->row);
    return NULL;
}

// One process with a thread for each worker.
static void run_shared(const struct row *row, int count)
{
    struct state state = { 0 };
    set_up(&state, row, 0);
    struct thread threads[WORKERS];
    for (int i = 0; i < count; i++) {
        threads[i] = (struct thread){ { i, count, &state, 0 }, row, 0 };
        if (pthread_create(&threads[i].id, NULL, run_thread, &threads[i]) != 0)
            fail("pthread_create");
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i].id, NULL);
    tear_down(&state, row);
}

static void run_alone(const struct row *row, int index, int count)
{
    struct state state = { 0 };
    struct worker worker = { index, count, &state, 0 };
    must(pin(index), "sched_setaffinity");
    // A partner is on the same core.
    set_up(&state, row, index);
    work(&worker, row);
    tear_down(&state, row);
}

static void measure(const struct row *row, int count)
{
    memset(board, 0, sizeof *board);
    int processes = row->sharing == SHARED ? 1 : count;
    pid_t pids[WORKERS];
    for (int i = 0; i < processes; i++) {
        must(pids[i] = fork(), "fork");
        if (pids[i] == 0) {
            signal(SIGPIPE, SIG_IGN);
            if (row->sharing == SHARED)
                run_shared(row, count);
            else
                run_alone(row, i, count);
            _exit(0);
        }
    }
    for (int i = 0; i < processes; i++) {
        int status;
        must(waitpid(pids[i], &status, 0), "wait");
        if (status != 0)
            fail(row->name);
    }
    double rate = 0;
    for (int i = 0; i < count; i++)
        rate += (double)board->done[i].operations * 1e9 / (double)board->done[i].nanoseconds;
    printf("%s\t%d\t%.1f\n", row->name, count, rate);
    fflush(stdout);
}

// How quickly the time stamp counter counts: asking it costs less than asking the clock.
static void calibrate(void)
{
    long start = nanoseconds();
    uint64_t from = ticks();
    while (nanoseconds() - start < 50 * 1000000)
        ;
    ticks_per_nanosecond = (double)(ticks() - from) / (double)(nanoseconds() - start);
}

static int cores(void)
{
    cpu_set_t set;
    must(sched_getaffinity(0, sizeof set, &set), "sched_getaffinity");
    return CPU_COUNT(&set);
}

int main(int argc, char **argv)
{
    int rounds = 3;
    if (getpid() == 1) {
        become_init();
        FILE *settings = fopen("/settings", "r");
        if (settings && fscanf(settings, "%d %ld", &rounds, &milliseconds) != 2)
            fail("/settings");
    }
    for (; argc > 2 && strncmp(argv[1], "--", 2) == 0; argc -= 2, argv += 2) {
        if (strcmp(argv[1], "--rounds") == 0)
            rounds = atoi(argv[2]);
        if (strcmp(argv[1], "--milliseconds") == 0)
            milliseconds = atol(argv[2]);
    }
    choose(argc, argv);
    mkdir("/tmp", 01777);
    write_program(PROGRAM_NAME);
    board = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        fail("mmap");
    calibrate();
    int most = cores() < WORKERS ? cores() : WORKERS;
    printf("cores\t%d\n", cores());
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            for (int count = 1; chosen(rows[i].name) && count <= most; count++)
                measure(&rows[i], count);
    unlink(PROGRAM_NAME);
    done();
}
