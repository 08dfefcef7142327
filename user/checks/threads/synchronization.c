// Mutexes, conditions, barriers, read-write locks, semaphores, once, keys, cancellation.
#include "../check.h"
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static int turn, passed, leaders, destroyed;

static void *take_turns(void *argument)
{
    int me = (int)(long)argument;
    for (int round = 0; round < 100; round++) {
        pthread_mutex_lock(&mutex);
        while (turn % 3 != me)
            pthread_cond_wait(&condition, &mutex);
        turn++;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *meet(void *argument)
{
    (void)argument;
    for (int i = 0; i < 50; i++)
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            __atomic_fetch_add(&leaders, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void *wait_semaphore(void *argument)
{
    (void)argument;
    sem_wait(&semaphore);
    __atomic_fetch_add(&passed, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void *read_lock(void *argument)
{
    (void)argument;
    int got = pthread_rwlock_tryrdlock(&lock);
    if (got == 0)
        pthread_rwlock_unlock(&lock);
    return (void *)(long)got;
}

static void *write_lock(void *argument)
{
    (void)argument;
    return (void *)(long)pthread_rwlock_trywrlock(&lock);
}

static void destroy(void *value)
{
    destroyed += (int)(long)value;
}

static pthread_key_t key;

static void *use_key(void *argument)
{
    pthread_setspecific(key, argument);
    return NULL;
}

static void *sleep_long(void *argument)
{
    (void)argument;
    sleep(100);
    return NULL;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void first(void)
{
    passed += 100;
}

static long run(void *(*function)(void *))
{
    pthread_t thread;
    void *result;
    REQUIRE(pthread_create(&thread, NULL, function, (void *)7) == 0 && pthread_join(thread, &result) == 0);
    return (long)result;
}

int main(void)
{
    pthread_t threads[4];
    void *result;
    for (long i = 0; i < 3; i++)
        REQUIRE(pthread_create(&threads[i], NULL, take_turns, (void *)i) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK("turns", turn);
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_create(&threads[i], NULL, meet, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK("barrier-leaders", leaders);
    sem_init(&semaphore, 0, 0);
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_create(&threads[i], NULL, wait_semaphore, NULL) == 0);
    sem_post(&semaphore);
    sem_post(&semaphore);
    for (int i = 0; i < 2000 && __atomic_load_n(&passed, __ATOMIC_SEQ_CST) < 2; i++)
        check_sleep_ms(1);
    check_sleep_ms(10);
    CHECK("semaphore-two", __atomic_load_n(&passed, __ATOMIC_SEQ_CST));
    sem_post(&semaphore);
    sem_post(&semaphore);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK("semaphore-all", passed);
    CHECK("semaphore-try", sem_trywait(&semaphore));
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    CHECK("semaphore-timeout", sem_timedwait(&semaphore, &until));
    pthread_mutex_lock(&mutex);
    CHECK("condition-timeout", pthread_cond_timedwait(&condition, &mutex, &until) == ETIMEDOUT);
    CHECK("trylock-held", pthread_mutex_trylock(&mutex) == EBUSY);
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_rdlock(&lock);
    CHECK("read-while-read", run(read_lock));
    CHECK("write-while-read", run(write_lock) == EBUSY);
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_wrlock(&lock);
    CHECK("read-while-write", run(read_lock) == EBUSY);
    pthread_rwlock_unlock(&lock);
    pthread_key_create(&key, destroy);
    run(use_key);
    CHECK("key-destructor", destroyed);
    pthread_once(&once, first);
    pthread_once(&once, first);
    CHECK("once", passed);
    REQUIRE(pthread_create(&threads[0], NULL, sleep_long, NULL) == 0);
    CHECK("cancel", pthread_cancel(threads[0]));
    pthread_join(threads[0], &result);
    CHECK("cancelled", result == PTHREAD_CANCELED);
    pthread_mutexattr_t attribute;
    pthread_mutex_t special;
    pthread_mutexattr_init(&attribute);
    pthread_mutexattr_settype(&attribute, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&special, &attribute);
    pthread_mutex_lock(&special);
    CHECK("deadlock-noticed", pthread_mutex_lock(&special) == EDEADLK);
    return 0;
}
