// All threads of a process stop, and all go on, however many they are: those that run, those that wait, and those that are made while it begins to stop.
#include "../check.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

enum { RUNNING = 80, WAITING = 120, ROUNDS = 4 };

struct shared {
    volatile long ran[RUNNING];
    volatile long made;
    volatile int ready;
};
static struct shared *shared;
static int never[2];

static void *run(void *number)
{
    for (;;) {
        shared->ran[(long)number]++;
        sched_yield();
    }
    return number;
}

static void *wait_for_ever(void *unused)
{
    char byte;
    (void)!read(never[0], &byte, 1);
    return unused;
}

static void *end_at_once(void *unused)
{
    return unused;
}

static void *make_threads(void *unused)
{
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, end_at_once, NULL) == 0 && pthread_join(thread, NULL) == 0)
            shared->made++;
    }
    return unused;
}

static void start(void *(*body)(void *), long number)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    if (pthread_create(&thread, &attributes, body, (void *)number) != 0)
        _exit(1);
}

static void wait_until_all_have_run(void)
{
    struct shared before = *shared;
    for (int i = 0; i < RUNNING; i++)
        while (shared->ran[i] == before.ran[i])
            sched_yield();
    while (shared->made == before.made)
        sched_yield();
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pipe(never) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        for (long i = 0; i < WAITING; i++)
            start(wait_for_ever, i);
        for (long i = 0; i < RUNNING; i++)
            start(run, i);
        start(make_threads, 0);
        shared->ready = 1;
        for (;;)
            pause();
    }
    while (!shared->ready)
        sched_yield();
    for (int round = 0; round < ROUNDS; round++) {
        int status = 0;
        wait_until_all_have_run();
        kill(child, SIGSTOP);
        printf("stopped: %d\n", waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
        struct shared then = *shared;
        for (int i = 0; i < 1000; i++)
            sched_yield();
        printf("nobody runs: %d\n", memcmp(&then, shared, sizeof then) == 0);
        kill(child, SIGCONT);
        printf("continued: %d\n", waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
    }
    wait_until_all_have_run();
    printf("all go on\n");
    for (int i = 0; i < 200; i++) {
        kill(child, i % 2 ? SIGCONT : SIGSTOP);
        if (i % 7 == 0)
            sched_yield();
    }
    wait_until_all_have_run();
    printf("all go on, however often they were to stop\n");
    kill(child, SIGSTOP);
    int status = 0;
    // Stops and continuations that no wait has told yet may come first.
    while (waitpid(child, &status, WUNTRACED) == child && !WIFSTOPPED(status))
        ;
    kill(child, SIGKILL);
    printf("killed: %d\n", waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    return 0;
}
