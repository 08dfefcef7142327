// futex(2) itself: wait, wake, requeue, bit sets, time-outs, errors.
#include "../check.h"
#include <pthread.h>
#include <sys/mman.h>

enum { WAIT = 0, WAKE = 1, REQUEUE = 3, CMP_REQUEUE = 4, WAKE_OP = 5, WAIT_BITSET = 9, WAKE_BITSET = 10, PRIVATE = 128 };

static int a, b, woken, ended;

static long futex(int *word, int operation, int value, const void *timeout, int *second, int third)
{
    return syscall(SYS_futex, word, operation, value, timeout, second, third);
}

static void *waiter(void *argument)
{
    long result = futex(&a, WAIT | PRIVATE, 0, NULL, NULL, 0);
    (void)argument;
    __atomic_fetch_add(&woken, result == 0, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&ended, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void *bit_waiter(void *argument)
{
    futex(&a, WAIT_BITSET | PRIVATE, 0, NULL, NULL, (int)(long)argument);
    __atomic_fetch_or(&woken, (int)(long)argument, __ATOMIC_SEQ_CST);
    return NULL;
}

// Wakes waiters one call at a time until `count` have been woken; they may not all be asleep yet.
static int wake_all(int *word, int operation, int count, int bits)
{
    int total = 0;
    while (total < count) {
        long got = futex(word, operation, count - total, NULL, NULL, bits);
        REQUIRE(got >= 0);
        total += (int)got;
        if (total < count)
            check_sleep_ms(1);
    }
    return total;
}

int main(void)
{
    pthread_t threads[4];
    struct timespec brief = { 0, 30000000 }, bad = { 0, 1000000000 };
    CHECK("value-differs", futex(&a, WAIT, 1, NULL, NULL, 0));
    CHECK("wake-nobody", futex(&a, WAKE, 10, NULL, NULL, 0));
    long before = check_now_ms();
    CHECK("timeout", futex(&a, WAIT, 0, &brief, NULL, 0));
    CHECK_TRUE("waited", check_now_ms() - before >= 29);
    CHECK("bad-time", futex(&a, WAIT, 0, &bad, NULL, 0));
    CHECK("unaligned", futex((int *)((char *)&a + 1), WAIT, 0, NULL, NULL, 0));
    CHECK("bad-operation", futex(&a, 99, 0, NULL, NULL, 0));
    CHECK("bad-address", futex(BAD_POINTER, WAIT | PRIVATE, 0, NULL, NULL, 0));
    CHECK("zero-bits", futex(&a, WAIT_BITSET, 0, NULL, NULL, 0));
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_create(&threads[i], NULL, waiter, NULL) == 0);
    CHECK("wake-one", wake_all(&a, WAKE | PRIVATE, 1, 0));
    while (__atomic_load_n(&ended, __ATOMIC_SEQ_CST) < 1)
        check_sleep_ms(1);
    check_sleep_ms(10);
    CHECK("one-woken", __atomic_load_n(&woken, __ATOMIC_SEQ_CST));
    // The other three are moved to b as they fall asleep, then one is woken there and one moved back.
    int moved = 0;
    while (moved < 3) {
        moved += (int)futex(&a, CMP_REQUEUE | PRIVATE, 0, (void *)10, &b, 0);
        check_sleep_ms(1);
    }
    CHECK("moved", moved);
    CHECK("requeue", futex(&b, CMP_REQUEUE | PRIVATE, 1, (void *)1, &a, 0));
    CHECK("requeue-without-value", futex(&b, REQUEUE | PRIVATE, 0, (void *)10, &a, 0));
    CHECK("requeue-back", futex(&a, REQUEUE | PRIVATE, 0, (void *)1, &b, 0));
    CHECK("requeue-value-differs", futex(&a, CMP_REQUEUE | PRIVATE, 1, (void *)1, &b, 7));
    CHECK("one-moved-back", futex(&a, WAKE | PRIVATE, 10, NULL, NULL, 0));
    CHECK("one-left-there", futex(&b, WAKE | PRIVATE, 10, NULL, NULL, 0));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK("all-woken", woken);
    woken = 0;
    for (long i = 0; i < 3; i++)
        REQUIRE(pthread_create(&threads[i], NULL, bit_waiter, (void *)(1l << i)) == 0);
    CHECK("wake-bit", wake_all(&a, WAKE_BITSET | PRIVATE, 1, 2));
    pthread_join(threads[1], NULL);
    CHECK("right-one", woken);
    CHECK("wake-rest", wake_all(&a, WAKE_BITSET | PRIVATE, 2, 5));
    pthread_join(threads[0], NULL);
    pthread_join(threads[2], NULL);
    // An absolute time-out in the past.
    struct timespec past = { 1, 0 };
    CHECK("absolute-past", futex(&a, WAIT_BITSET | PRIVATE, 0, &past, NULL, -1));
    // b is 0: set it to 5 and wake there only if it was 0.
    CHECK("wake-op", futex(&a, WAKE_OP | PRIVATE, 1, (void *)1, &b, 0 << 28 | 0 << 24 | 5 << 12 | 0));
    CHECK("wake-op-set", b);
    // Between processes, through shared memory.
    int *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = check_fork();
    if (child == 0) {
        while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == 0)
            futex(word, WAIT, 0, NULL, NULL, 0);
        _exit(*word);
    }
    CHECK("shared-wake", wake_all(word, WAKE, 1, 0));
    *word = 9;
    futex(word, WAKE, 1, NULL, NULL, 0);
    CHECK_STATUS("shared", check_wait(child));
    // A signal interrupts.
    signal(SIGALRM, (void (*)(int))strsignal);
    struct sigaction action = { .sa_handler = (void (*)(int))strsignal };
    sigaction(SIGALRM, &action, NULL);
    ualarm(20000, 20000);
    CHECK("interrupted", futex(&a, WAIT, 0, NULL, NULL, 0));
    ualarm(0, 0);
    return 0;
}
