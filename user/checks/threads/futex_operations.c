// FUTEX_WAKE_OP: each operation and comparison, on every kind of old value; and which deadlines a wait takes.
#include "../check.h"

enum { WAIT = 0, WAKE = 1, WAKE_OP = 5, WAIT_BITSET = 9, PRIVATE = 128, REALTIME = 256 };

static long futex(int *at, int operation, int value, const void *timeout, int *second, int third)
{
    return syscall(SYS_futex, at, operation, value, timeout, second, third);
}

static int word, other;

int main(void)
{
    static const int old[] = { 0, 1, 5, -1, 0x7fffffff };
    for (int operation = 0; operation < 16; operation++) {
        for (unsigned i = 0; i < sizeof old / sizeof old[0]; i++) {
            char line[64];
            other = old[i];
            long result = futex(&word, WAKE_OP | PRIVATE, 1, (void *)1, &other, (int)((unsigned)operation << 28 | 3 << 12));
            snprintf(line, sizeof line, "operation-%d-on-%d: %s", operation, old[i], result < 0 ? check_errno_name(errno) : "ok");
            CHECK(line, other);
        }
    }
    for (int comparison = 0; comparison < 9; comparison++) {
        char line[64];
        other = 5;
        snprintf(line, sizeof line, "comparison-%d", comparison);
        CHECK(line, futex(&word, WAKE_OP | PRIVATE, 1, (void *)1, &other, (int)((unsigned)comparison << 24 | 5)));
        CHECK("  then", other);
    }
    // Operands are signed numbers of twelve bits; with the highest bit of the operation they are numbers of bits.
    other = 0;
    CHECK("negative-operand", futex(&word, WAKE_OP | PRIVATE, 1, (void *)1, &other, 1 << 28 | 0xfff << 12));
    CHECK("  then", other);
    other = 0;
    CHECK("bit", futex(&word, WAKE_OP | PRIVATE, 1, (void *)1, &other, (int)(10u << 28 | 31 << 12)));
    CHECK("  then", other);
    CHECK("unaligned-second", futex(&word, WAKE_OP | PRIVATE, 1, (void *)1, (int *)((char *)&other + 2), 0));
    const char *text = "read only";
    CHECK("read-only-second", futex(&word, WAKE_OP | PRIVATE, 1, (void *)1, (int *)((uintptr_t)(text + 3) & ~(uintptr_t)3), 0));
    struct timespec past = { 1, 0 }, negative = { -1, 0 }, bad = { 0, -1 };
    CHECK("monotonic-past", futex(&word, WAIT_BITSET | PRIVATE, 0, &past, NULL, -1));
    CHECK("real-past", futex(&word, WAIT_BITSET | PRIVATE | REALTIME, 0, &past, NULL, -1));
    CHECK("real-relative", futex(&word, WAIT | PRIVATE | REALTIME, 0, &negative, NULL, 0));
    CHECK("negative-deadline", futex(&word, WAIT_BITSET | PRIVATE, 0, &negative, NULL, -1));
    CHECK("bad-deadline", futex(&word, WAIT_BITSET | PRIVATE, 0, &bad, NULL, -1));
    CHECK("bad-deadline-pointer", futex(&word, WAIT_BITSET | PRIVATE, 0, BAD_POINTER, NULL, -1));
    CHECK("value-first", futex(&word, WAIT | PRIVATE, 1, &past, NULL, 0));
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 2000000;
    soon.tv_sec += soon.tv_nsec / 1000000000;
    soon.tv_nsec %= 1000000000;
    CHECK("real-soon", futex(&word, WAIT_BITSET | PRIVATE | REALTIME, 0, &soon, NULL, -1));
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    CHECK_TRUE("not-before", now.tv_sec > soon.tv_sec || (now.tv_sec == soon.tv_sec && now.tv_nsec >= soon.tv_nsec));
    CHECK("negative-count", futex(&word, WAKE | PRIVATE, -1, NULL, NULL, 0));
    return 0;
}
