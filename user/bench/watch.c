// For how long another process does not run while one ends that has very many of something: one static program that runs on Linux and on Ebb.
//
//     watch [ROW...]
//
// prints a line `row<TAB>longest` for each row: between two readings of the time stamp counter by a process that does nothing else there were at
// most so many ticks, from before the end began until 0.2 s after it was reported. That includes the time slices of the process that
// ends and of whom it leaves behind.
#include "gap.h"
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int never[2];

static void nothing(long count) { (void)count; }

static void make_eventfds(long count)
{
    for (long i = 0; i < count; i++)
        must(eventfd(0, 0), "eventfd");
}

static void make_socket_pairs(long count)
{
    int pair[2];
    for (long i = 0; i < count; i++)
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
}

static void open_unlinked(long count)
{
    for (long i = 0; i < count; i++) {
        must(open("unlinked", O_CREAT | O_RDWR, 0644), "open");
        must(unlink("unlinked"), "unlink");
    }
}

static void make_children(long count)
{
    must(setpgid(0, 0), "setpgid");
    for (long i = 0; i < count; i++) {
        pid_t pid = fork();
        must(pid, "fork");
        if (pid == 0) {
            char byte;
            call3(SYS_read, never[0], (long)&byte, 1);
            _exit(0);
        }
    }
}

static void *wait_for_ever(void *argument)
{
    char byte;
    call3(SYS_read, never[0], (long)&byte, 1);
    return argument;
}

static void make_threads(long count)
{
    enum { STACK = 16384 };
    char *stacks = mmap(NULL, count * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stacks == MAP_FAILED)
        fail("mmap");
    for (long i = 0; i < count; i++) {
        pthread_attr_t attributes;
        pthread_t thread;
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, stacks + i * STACK, STACK);
        errno = pthread_create(&thread, &attributes, wait_for_ever, NULL);
        must(-errno, "pthread_create");
    }
    // Until all wait.
    usleep(100000);
}

static const struct row {
    const char *name;
    void (*fill)(long count);
    long count;
} rows[] = {
    { "watch-nothing", nothing, 0 },
    { "watch-eventfds", make_eventfds, 60000 },
    { "watch-socket-pairs", make_socket_pairs, 30000 },
    { "watch-unlinked-files", open_unlinked, 60000 },
    { "watch-children", make_children, 2000 },
    { "watch-threads", make_threads, 10000 },
};

static struct gap *shared;

static void measure(const struct row *row)
{
    int ready[2], go[2];
    char byte = 0;
    must(pipe(never) | pipe(ready) | pipe(go), "pipe");
    shared->is_over = 0;
    pid_t ends = fork();
    must(ends, "fork");
    if (ends == 0) {
        close(never[1]);
        row->fill(row->count);
        must(write(ready[1], &byte, 1), "write");
        must(read(go[0], &byte, 1), "read");
        _exit(0);
    }
    must(read(ready[0], &byte, 1), "read");
    pid_t watcher = fork();
    must(watcher, "fork");
    if (watcher == 0) {
        watch(shared);
        _exit(0);
    }
    usleep(100000);
    must(write(go[1], &byte, 1), "write");
    int status = -1;
    must(waitpid(ends, &status, 0), "wait");
    if (status != 0)
        fail("what was to end failed before");
    usleep(200000);
    shared->is_over = 1;
    must(waitpid(watcher, &status, 0), "wait");
    printf("%s\t%llu\n", row->name, (unsigned long long)shared->longest);
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        close(never[i]);
        close(ready[i]);
        close(go[i]);
    }
    // The children that were left read the end of their pipe.
    while (waitpid(-1, NULL, 0) > 0)
        ;
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
    must(chdir("/tmp"), "/tmp");
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fail("mmap");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (chosen(rows[i].name))
            measure(&rows[i]);
    done();
}
