// Who waits for a futex in a shared mapping that is unmapped meanwhile takes no wake-up that is meant for whoever waits in another one, wherever that has come to be.
#include "../check.h"
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define ROUNDS 200
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_REQUEUE 3

struct waiter {
    pthread_t thread;
    int *word;
    atomic_int is_back;
};

static void nothing(int number)
{
    (void)number;
}

static void *wait_there(void *argument)
{
    struct waiter *waiter = argument;
    syscall(SYS_futex, waiter->word, FUTEX_WAIT, 0, NULL, NULL, 0);
    waiter->is_back = 1;
    return NULL;
}

// Maps a word that others could share and has a thread wait there.
static void begin(struct waiter *waiter)
{
    waiter->word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(waiter->word != MAP_FAILED);
    waiter->is_back = 0;
    REQUIRE(pthread_create(&waiter->thread, NULL, wait_there, waiter) == 0);
    // To move it to where it waits already says only that there is somebody.
    while (syscall(SYS_futex, waiter->word, FUTEX_REQUEUE, 0, INT_MAX, waiter->word, 0) < 1)
        sched_yield();
}

int main(void)
{
    struct sigaction action = { .sa_handler = nothing };
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    static struct waiter left, meant;
    int woken = 0, right = 0;
    for (int i = 0; i < ROUNDS; i++) {
        begin(&left);
        REQUIRE(munmap(left.word, 4096) == 0);
        begin(&meant);
        woken += syscall(SYS_futex, meant.word, FUTEX_WAKE, 1, NULL, NULL, 0);
        while (!left.is_back && !meant.is_back)
            sched_yield();
        right += meant.is_back && !left.is_back;
        while (!left.is_back) {
            pthread_kill(left.thread, SIGUSR1);
            sched_yield();
        }
        syscall(SYS_futex, meant.word, FUTEX_WAKE, 1, NULL, NULL, 0);
        pthread_join(left.thread, NULL);
        pthread_join(meant.thread, NULL);
        munmap(meant.word, 4096);
    }
    CHECK("woken", woken);
    CHECK("meant", right);
    return 0;
}
