// Mutual exclusion by futexes, between threads and between processes, some of which end with the lock.
#include "stress.h"

#include <limits.h>

#define TURNS 300

// After Drepper, "Futexes Are Tricky": 0 is free, 1 taken, 2 taken and perhaps waited for.
struct lock {
    atomic_int word;
    // 128 for threads of one process (FUTEX_PRIVATE_FLAG).
    int flags;
    // Only who has the lock changes these.
    volatile long count, check;
};

static void take(struct lock *lock)
{
    int expected = 0;
    if (atomic_compare_exchange_strong(&lock->word, &expected, 1))
        return;
    while (atomic_exchange(&lock->word, 2) != 0) {
        // Some waits end by themselves.
        struct timespec soon = { 0, 100000 };
        syscall(SYS_futex, &lock->word, 0 | lock->flags, 2, any(4) == 0 ? &soon : NULL);
    }
}

static void release(struct lock *lock)
{
    if (atomic_exchange(&lock->word, 0) == 2)
        syscall(SYS_futex, &lock->word, 1 | lock->flags, 1);
}

static struct lock *lock;

static void take_turns(int index)
{
    (void)index;
    for (int i = 0; i < TURNS; i++) {
        take(lock);
        lock->count++;
        if (any(64) == 0)
            sched_yield();
        lock->check++;
        HOLDS(lock->count == lock->check, "two are inside");
        release(lock);
    }
    count(TURNS);
}

static void locks_between(void (*run)(int, void (*)(int)), int number, int flags)
{
    lock = shared_memory(PAGE);
    lock->flags = flags;
    run(number, take_turns);
    HOLDS(lock->count == number * TURNS, "%ld of %d turns", lock->count, number * TURNS);
    HOLDS(lock->word == 0, "the lock is %d", lock->word);
    munmap(lock, PAGE);
}

static void thread_locks_round(void)
{
    locks_between(threads, 4, 128);
}

static void process_locks_round(void)
{
    locks_between(processes, 3, 0);
}

// A lock of which the owner ends goes to the next one, who is told.
static struct {
    pthread_mutex_t mutex;
    volatile long count, deaths, told;
} *robust;

static void take_and_die(int index)
{
    (void)index;
    for (int i = 0; i < TURNS / 10; i++) {
        int error = pthread_mutex_lock(&robust->mutex);
        if (error == EOWNERDEAD) {
            robust->told++;
            pthread_mutex_consistent(&robust->mutex);
        } else {
            MUST((errno = error) == 0);
        }
        robust->count++;
        if (any(20) == 0) {
            robust->deaths++;
            _exit(0);
        }
        pthread_mutex_unlock(&robust->mutex);
    }
}

static void robust_round(void)
{
    robust = shared_memory(PAGE);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust->mutex, &attributes);
    processes(4, take_and_die);
    if (pthread_mutex_trylock(&robust->mutex) == EOWNERDEAD)
        robust->told++;
    HOLDS(robust->told == robust->deaths, "%ld owners ended, %ld were told of", robust->deaths, robust->told);
    count(robust->count);
    munmap(robust, PAGE);
}

// A bounded queue with condition variables, whose waits the C library moves from word to word.
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    long values[4];
    int length, producers;
    long taken, sum;
} queue;

static void produce_or_consume(int index)
{
    if (index < 2) {
        for (long i = 1; i <= TURNS; i++) {
            pthread_mutex_lock(&queue.mutex);
            while (queue.length == 4)
                pthread_cond_wait(&queue.changed, &queue.mutex);
            queue.values[queue.length++] = i;
            pthread_cond_broadcast(&queue.changed);
            pthread_mutex_unlock(&queue.mutex);
        }
        pthread_mutex_lock(&queue.mutex);
        queue.producers--;
        pthread_cond_broadcast(&queue.changed);
        pthread_mutex_unlock(&queue.mutex);
        return;
    }
    pthread_mutex_lock(&queue.mutex);
    while (queue.length > 0 || queue.producers > 0) {
        if (queue.length > 0) {
            queue.sum += queue.values[--queue.length];
            queue.taken++;
            pthread_cond_signal(&queue.changed);
        } else if (any(4) == 0) {
            struct timespec soon;
            clock_gettime(CLOCK_REALTIME, &soon);
            soon.tv_nsec += 100000;
            if (soon.tv_nsec >= 1000000000)
                soon.tv_sec++, soon.tv_nsec -= 1000000000;
            pthread_cond_timedwait(&queue.changed, &queue.mutex, &soon);
        } else {
            pthread_cond_wait(&queue.changed, &queue.mutex);
        }
        // A signal may have gone to one who cannot use it.
        pthread_cond_broadcast(&queue.changed);
    }
    pthread_mutex_unlock(&queue.mutex);
}

static void queue_round(void)
{
    memset(&queue, 0, sizeof queue);
    pthread_mutex_init(&queue.mutex, NULL);
    pthread_cond_init(&queue.changed, NULL);
    queue.producers = 2;
    threads(4, produce_or_consume);
    HOLDS(queue.taken == 2 * TURNS, "%ld of %d values", queue.taken, 2 * TURNS);
    HOLDS(queue.sum == (long)TURNS * (TURNS + 1), "the values' sum is %ld", queue.sum);
    count(2 * TURNS);
}

const struct family lock_families[] = {
    { "futexes-of-threads", thread_locks_round },
    { "futexes-of-processes", process_locks_round },
    { "robust-locks", robust_round },
    { "condition-variables", queue_round },
    { NULL, NULL },
};
