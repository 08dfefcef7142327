// What system calls and faults cost: one static program that runs on Linux and on Ebb.
//
//     bench [--scale FACTOR] [ROW...]
//
// prints a line `row<TAB>median<TAB>minimum` for each row, in time stamp counter ticks per operation, times FACTOR
// (default 1). Under QEMU's `-icount shift=0` a tick is one guest instruction. An operation is repeated in several
// batches; median and minimum are over batches, and the cost of an empty loop is taken off.
//
// As process 1 it mounts what it needs first and powers the machine off at the end; where there is a file /in-group it measures in a cgroup.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "sockets.h"
#include "vdso.h"

#define PAGE 4096
#define FILE_NAME "/tmp/bench-file"
#define PROGRAM_NAME "/tmp/bench-program"
#define OTHER_FILE_NAME "/tmp/bench-other-file"
#define FILE_PAGES 1024
#define MEGABYTE (1L << 20)

static char page[PAGE] __attribute__((aligned(PAGE)));
static int file, other_file, zero, null, pipe_there[2], pipe_back[2];
static struct pollfd hundred[100];

// Each of the following does `count` operations and gives the ticks they took.

#define LOOP(call)                          \
    uint64_t start = ticks();               \
    for (long i = 0; i < count; i++) {      \
        __asm__ volatile("" : "+r"(i));     \
        call;                               \
    }                                       \
    return ticks() - start

static uint64_t empty(long count) { LOOP((void)0); }
static uint64_t null_call(long count) { LOOP(call3(SYS_getppid, 0, 0, 0)); }
static uint64_t get_pid(long count) { LOOP(call3(SYS_getpid, 0, 0, 0)); }
static uint64_t read_1(long count) { LOOP(call4(SYS_pread64, file, (long)page, 1, 0)); }
static uint64_t read_4k(long count) { LOOP(call4(SYS_pread64, file, (long)page, PAGE, 0)); }
static uint64_t write_1(long count) { LOOP(call4(SYS_pwrite64, file, (long)page, 1, 0)); }
static uint64_t write_4k(long count) { LOOP(call4(SYS_pwrite64, file, (long)page, PAGE, 0)); }
static uint64_t zero_1(long count) { LOOP(call3(SYS_read, zero, (long)page, 1)); }
static uint64_t null_write_1(long count) { LOOP(call3(SYS_write, null, (long)page, 1)); }
static uint64_t stat_path(long count) { LOOP(call3(SYS_stat, (long)FILE_NAME, (long)page, 0)); }
static uint64_t stat_descriptor(long count) { LOOP(call3(SYS_fstat, file, (long)page, 0)); }
static uint64_t open_close(long count) { LOOP(call3(SYS_close, call3(SYS_open, (long)FILE_NAME, O_RDONLY, 0), 0, 0)); }
static uint64_t send_to_null(long count) { LOOP(call4(SYS_sendfile, null, file, (long)&(long){ 0 }, MEGABYTE)); }
static uint64_t poll_hundred(long count) { LOOP(call3(SYS_poll, (long)hundred, 100, 0)); }

static uint64_t monotonic(long count) { LOOP(vdso_clock_gettime(CLOCK_MONOTONIC, &(struct timespec){ 0 })); }
static uint64_t realtime(long count) { LOOP(vdso_clock_gettime(CLOCK_REALTIME, &(struct timespec){ 0 })); }
static uint64_t time_of_day(long count) { LOOP(vdso_gettimeofday(&(struct timeval){ 0 }, NULL)); }
static uint64_t seconds(long count) { LOOP(vdso_time(NULL)); }
static uint64_t core_number(long count) { LOOP(vdso_getcpu(&(unsigned){ 0 }, &(unsigned){ 0 }, NULL)); }

static uint64_t map_unmap(long count)
{
    LOOP(call3(SYS_munmap, call6(SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PAGE, 0));
}

// From the first megabyte of a file to the first of another.
static uint64_t send_to_file(long count)
{
    LOOP(call3(SYS_lseek, other_file, 0, SEEK_SET); call4(SYS_sendfile, other_file, file, (long)&(long){ 0 }, MEGABYTE));
}

// One byte to a child and one back.
static uint64_t pipe_round_trip(long count)
{
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        char byte;
        for (long i = 0; i < count + 1; i++)
            if (read(pipe_there[0], &byte, 1) != 1 || write(pipe_back[1], &byte, 1) != 1)
                _exit(1);
        _exit(0);
    }
    uint64_t start = 0;
    for (long i = 0; i < count + 1; i++) {
        if (i == 1)
            start = ticks();
        call3(SYS_write, pipe_there[1], (long)page, 1);
        call3(SYS_read, pipe_back[0], (long)page, 1);
    }
    uint64_t took = ticks() - start;
    must(waitpid(pid, NULL, 0), "wait");
    return took;
}

// Two processes that yield to each other; what is counted is how often the processor really changed hands.
struct turns {
    volatile long last, switches, stop, ready;
};

static uint64_t context_switch(long count)
{
    struct turns *turns = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (turns == MAP_FAILED)
        fail("mmap");
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        turns->ready = 1;
        while (!turns->stop) {
            turns->last = 1;
            call3(SYS_sched_yield, 0, 0, 0);
        }
        _exit(0);
    }
    while (!turns->ready)
        call3(SYS_sched_yield, 0, 0, 0);
    uint64_t start = ticks();
    // Each time the child is found to have run, the processor was handed over and back.
    for (long seen = 0; seen < count;) {
        turns->last = 0;
        call3(SYS_sched_yield, 0, 0, 0);
        seen += turns->last * 2;
    }
    uint64_t took = ticks() - start;
    turns->stop = 1;
    must(waitpid(pid, NULL, 0), "wait");
    munmap(turns, PAGE);
    return took;
}

static uint64_t fork_exit_wait(long count)
{
    uint64_t start = ticks();
    for (long i = 0; i < count; i++) {
        long pid = call3(SYS_fork, 0, 0, 0);
        if (pid == 0)
            call3(SYS_exit_group, 0, 0, 0);
        call4(SYS_wait4, pid, 0, 0, 0);
    }
    return ticks() - start;
}

static uint64_t fork_exec_exit(long count)
{
    char *arguments[] = { PROGRAM_NAME, NULL };
    uint64_t start = ticks();
    for (long i = 0; i < count; i++) {
        long pid = call3(SYS_fork, 0, 0, 0);
        if (pid == 0) {
            call3(SYS_execve, (long)PROGRAM_NAME, (long)arguments, 0);
            call3(SYS_exit_group, 1, 0, 0);
        }
        int status = -1;
        call4(SYS_wait4, pid, (long)&status, 0, 0);
        if (status != 0)
            fail("the program did not run");
    }
    return ticks() - start;
}

static uint64_t touch(long count, long stride, int protection, int flags, int fd)
{
    volatile char *memory = mmap(NULL, count * stride, protection, flags, fd, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    int writes = protection & PROT_WRITE;
    uint64_t start = ticks();
    for (long i = 0; i < count; i++)
        if (writes)
            memory[i * stride] = 1;
        else
            (void)memory[i * stride];
    uint64_t took = ticks() - start;
    munmap((void *)memory, count * stride);
    return took;
}

static uint64_t anonymous_fault(long count)
{
    return touch(count, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

// Faults that are 64 KiB apart, so that each is a fault of its own where neighbours are mapped along with it.
static uint64_t file_fault(long count)
{
    return touch(count, 16 * PAGE, PROT_READ, MAP_SHARED, file);
}

// The same per page when all pages are read one after the other.
static uint64_t file_page(long count)
{
    return touch(count, PAGE, PROT_READ, MAP_SHARED, file);
}

static volatile long signals;

static void handler(int number)
{
    signals += number == SIGUSR1;
}

static uint64_t signal_delivery(long count)
{
    signal(SIGUSR1, handler);
    long self = getpid();
    // As process 1 a signal from within is delivered too, because a handler is installed.
    uint64_t start = ticks();
    for (long i = 0; i < count; i++)
        call3(SYS_kill, self, SIGUSR1, 0);
    uint64_t took = ticks() - start;
    if (signals == 0)
        fail("no signal came");
    return took;
}

static volatile int ball;

static void hand_over(int from, int to)
{
    ball = to;
    call6(SYS_futex, (long)&ball, 1 | 128, 1, 0, 0, 0);
    while (ball != from)
        call6(SYS_futex, (long)&ball, 0 | 128, to, 0, 0, 0);
}

static void *partner(void *argument)
{
    long count = (long)argument;
    while (ball != 1)
        call6(SYS_futex, (long)&ball, 0 | 128, 0, 0, 0, 0);
    for (long i = 0; i < count; i++)
        hand_over(1, 0);
    ball = 0;
    call6(SYS_futex, (long)&ball, 1 | 128, 1, 0, 0, 0);
    return NULL;
}

static uint64_t futex_round_trip(long count)
{
    pthread_t thread;
    ball = 0;
    if (pthread_create(&thread, NULL, partner, (void *)count) != 0)
        fail("pthread_create");
    hand_over(0, 1);
    uint64_t start = ticks();
    for (long i = 0; i < count; i++)
        hand_over(0, 1);
    uint64_t took = ticks() - start;
    pthread_join(thread, NULL);
    return took;
}

static uint64_t unix_round_trip(long count)
{
    int ends[2];
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    return socket_round_trip(count, ends);
}

static const struct row {
    const char *name;
    uint64_t (*run)(long count);
    long count;
    int batches;
    // Whether an empty loop's cost is to be taken off.
    int loop;
} rows[] = {
    { "null", null_call, 1000, 11, 1 },
    { "getpid", get_pid, 1000, 11, 1 },
    { "monotonic", monotonic, 1000, 11, 1 },
    { "realtime", realtime, 1000, 11, 1 },
    { "gettimeofday", time_of_day, 1000, 11, 1 },
    { "time", seconds, 1000, 11, 1 },
    { "getcpu", core_number, 1000, 11, 1 },
    { "read-1", read_1, 500, 11, 1 },
    { "read-4k", read_4k, 200, 11, 1 },
    { "write-1", write_1, 500, 11, 1 },
    { "write-4k", write_4k, 200, 11, 1 },
    { "read-zero-1", zero_1, 500, 11, 1 },
    { "write-null-1", null_write_1, 500, 11, 1 },
    { "sendfile-null", send_to_null, 4, 11, 1 },
    { "sendfile-file", send_to_file, 4, 11, 1 },
    { "stat", stat_path, 500, 11, 1 },
    { "fstat", stat_descriptor, 500, 11, 1 },
    { "open-close", open_close, 500, 11, 1 },
    { "pipe-round-trip", pipe_round_trip, 300, 11, 0 },
    { "context-switch", context_switch, 400, 11, 0 },
    { "fork-exit-wait", fork_exit_wait, 20, 11, 0 },
    { "fork-exec-exit", fork_exec_exit, 20, 11, 0 },
    { "anonymous-fault", anonymous_fault, 256, 11, 0 },
    { "file-fault", file_fault, FILE_PAGES / 16, 11, 0 },
    { "file-page", file_page, FILE_PAGES, 11, 0 },
    { "mmap-munmap", map_unmap, 500, 11, 1 },
    { "signal", signal_delivery, 500, 11, 0 },
    { "futex-round-trip", futex_round_trip, 300, 11, 0 },
    { "unix-round-trip", unix_round_trip, 300, 11, 0 },
    { "tcp-round-trip", tcp_round_trip, 300, 11, 0 },
    { "udp-round-trip", udp_round_trip, 300, 11, 0 },
    { "tcp-connect", tcp_connect, 100, 11, 0 },
    { "poll-100", poll_hundred, 50, 11, 1 },
};

static void prepare(void)
{
    bring_loopback_up();
    find_vdso();
    mkdir("/tmp", 01777);
    file = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0644);
    must(file, "create a file");
    for (int i = 0; i < FILE_PAGES; i++)
        if (write(file, page, PAGE) != PAGE)
            fail("write a file");
    must(other_file = open(OTHER_FILE_NAME, O_WRONLY | O_CREAT | O_TRUNC, 0644), "create another file");
    must(zero = open("/dev/zero", O_RDONLY), "/dev/zero");
    must(null = open("/dev/null", O_WRONLY), "/dev/null");
    must(pipe(pipe_there), "pipe");
    must(pipe(pipe_back), "pipe");
    for (int i = 0; i < 100; i++) {
        int fds[2];
        if (i % 2 == 0)
            must(pipe(fds), "pipe");
        hundred[i] = (struct pollfd){ i % 2 == 0 ? fds[0] : hundred[i - 1].fd, POLLIN, 0 };
    }
    write_program(PROGRAM_NAME);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double scale = 1;

static void measure(const struct row *row)
{
    double values[32];
    // The first two batches warm up what is lazy.
    row->run(row->count);
    row->run(row->count);
    for (int i = 0; i < row->batches; i++) {
        uint64_t took = row->run(row->count);
        uint64_t overhead = row->loop ? empty(row->count) : 0;
        values[i] = (double)(took > overhead ? took - overhead : 0) / (double)row->count * scale;
    }
    qsort(values, row->batches, sizeof values[0], compare);
    printf("%s\t%.0f\t%.0f\n", row->name, values[row->batches / 2], values[0]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (getpid() == 1) {
        become_init();
        if (access("/in-group", F_OK) == 0)
            enter_group();
    } else if (argc > 2 && strcmp(argv[1], "--scale") == 0) {
        scale = strtod(argv[2], NULL);
        argc -= 2;
        argv += 2;
    }
    choose(argc, argv);
    prepare();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (chosen(rows[i].name))
            measure(&rows[i]);
    unlink(FILE_NAME);
    unlink(OTHER_FILE_NAME);
    unlink(PROGRAM_NAME);
    done();
}
