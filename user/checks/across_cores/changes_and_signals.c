// Calls that change memory wait for each other, and no signal ends that wait.
#include "../check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>

#define SIZE (64L << 20)
#define TURNS 150

static atomic_int over;
static atomic_long signals;

static void count(int signal)
{
    (void)signal;
    signals++;
}

static void *change(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (!over) {
        char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        REQUIRE(mprotect(memory, SIZE, PROT_READ) == 0);
        REQUIRE(munmap(memory, SIZE) == 0);
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    long refused[4] = { 0 };
    struct sigaction action = { .sa_handler = count };
    REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
    REQUIRE(setitimer(ITIMER_REAL, &often, NULL) == 0);
    REQUIRE(pthread_create(&thread, NULL, change, NULL) == 0);
    for (int turn = 0; turn < TURNS; turn++) {
        char *memory = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        refused[0] += memory == MAP_FAILED;
        refused[1] += mprotect(memory, 8 << 20, PROT_READ) != 0;
        refused[2] += munmap(memory, 8 << 20) != 0;
        pid_t child = fork();
        refused[3] += child < 0;
        if (child == 0)
            _exit(0);
        while (child > 0 && waitpid(child, NULL, 0) != child)
            ;
    }
    over = 1;
    pthread_join(thread, NULL);
    CHECK("mmap", refused[0]);
    CHECK("mprotect", refused[1]);
    CHECK("munmap", refused[2]);
    CHECK("fork", refused[3]);
    CHECK_TRUE("signals", signals > 0);
    return 0;
}
