// nanosleep, clock_nanosleep, usleep: at least as long as asked, and their errors.
#include "../check.h"

// Whether three sleepers wake in the order of their times; on a busy machine all of them can be late.
static int wakes_in_order(void)
{
    static long spacing_ms = 50;
    static const int order[] = { 3, 1, 2 };
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    for (int i = 0; i < 3; i++)
        if (check_fork() == 0) {
            check_sleep_ms(order[i] * spacing_ms);
            char c = (char)('0' + order[i]);
            REQUIRE(write(fds[1], &c, 1) == 1);
            _exit(0);
        }
    char text[4] = { 0 };
    for (int i = 0; i < 3; i++) {
        REQUIRE(read(fds[0], text + i, 1) == 1);
        wait(NULL);
    }
    close(fds[0]);
    close(fds[1]);
    spacing_ms += spacing_ms / 4;
    return strcmp(text, "123") == 0;
}

int main(void)
{
    struct timespec t = { 0, 20000000 }, left = { 7, 7 };
    long before = check_now_ms();
    CHECK("nanosleep", nanosleep(&t, &left));
    long took = check_now_ms() - before;
    CHECK_TRUE("long-enough", took >= 19);
    CHECK("rest-untouched", left.tv_sec * 10 + left.tv_nsec);
    t = (struct timespec){ 0, 0 };
    CHECK("zero", nanosleep(&t, NULL));
    t = (struct timespec){ 0, 1000000000 };
    CHECK("too-many-nanoseconds", nanosleep(&t, NULL));
    t = (struct timespec){ -1, 0 };
    CHECK("negative", nanosleep(&t, NULL));
    t = (struct timespec){ 0, -1 };
    CHECK("negative-nanoseconds", nanosleep(&t, NULL));
    REQUIRE(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
    t.tv_nsec += 20000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    CHECK("absolute", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL));
    struct timespec now;
    REQUIRE(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    CHECK_TRUE("reached", now.tv_sec > t.tv_sec || (now.tv_sec == t.tv_sec && now.tv_nsec >= t.tv_nsec));
    CHECK("absolute-past", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL));
    CHECK("realtime", clock_nanosleep(CLOCK_REALTIME, 0, &(struct timespec){ 0, 1000000 }, NULL));
    CHECK("thread-clock", clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &(struct timespec){ 0, 1000 }, NULL));
    CHECK("unknown-clock", syscall(SYS_clock_nanosleep, 99, 0, &(struct timespec){ 0, 1000 }, NULL));
    CHECK_SOON("order", wakes_in_order());
    return 0;
}
