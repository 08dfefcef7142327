// A wake-up reaches somebody who waits: one who looks at the same futex at the same time and finds another value takes none.
#include "../check.h"

#include <pthread.h>
#include <sched.h>

#define ROUNDS 2000
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

static int word = 7;
static volatile int entered, left, ends, wrong;

static void *wait_for_another_value(void *argument)
{
    (void)argument;
    while (!ends)
        if (syscall(SYS_futex, &word, FUTEX_WAIT, 8, NULL, NULL, 0) != -1)
            wrong++;
    return NULL;
}

static void *wait_rightly(void *argument)
{
    (void)argument;
    for (int i = 1; i <= ROUNDS; i++) {
        entered = i;
        // For ever, where the wake-up went to the other thread.
        REQUIRE(syscall(SYS_futex, &word, FUTEX_WAIT, 7, NULL, NULL, 0) == 0);
        left = i;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    REQUIRE(pthread_create(&threads[0], NULL, wait_for_another_value, NULL) == 0);
    REQUIRE(pthread_create(&threads[1], NULL, wait_for_another_value, NULL) == 0);
    REQUIRE(pthread_create(&threads[2], NULL, wait_rightly, NULL) == 0);
    for (int i = 1; i <= ROUNDS; i++) {
        while (entered != i)
            ;
        while (syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) != 1)
            ;
        while (left != i)
            sched_yield();
    }
    ends = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK("woken", left);
    CHECK("woken-for-nothing", wrong);
    return 0;
}
