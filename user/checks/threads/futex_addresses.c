// Which words can be futexes: what every operation says of an address where nothing is, that may not be read, or behind a file's end; and who
// meets whom through private and shared words of one page.
#include "../check.h"
#include <pthread.h>
#include <sys/mman.h>

enum { WAIT = 0, WAKE = 1, REQUEUE = 3, CMP_REQUEUE = 4, WAKE_OP = 5, WAIT_BITSET = 9, WAKE_BITSET = 10, PRIVATE = 128 };

static int word;

static long futex(int *at, int operation, int value, const void *timeout, int *second, int third)
{
    return syscall(SYS_futex, at, operation, value, timeout, second, third);
}

static void each(const char *what, int *at)
{
    struct timespec none = { 0, 0 };
    static const struct {
        const char *name;
        int scope;
    } scopes[] = { { "shared", 0 }, { "private", PRIVATE } };
    for (int i = 0; i < 2; i++) {
        int scope = scopes[i].scope;
        char name[100];
        snprintf(name, sizeof name, "%s-%s-wait", what, scopes[i].name);
        CHECK(name, futex(at, WAIT | scope, 0, &none, NULL, 0));
        snprintf(name, sizeof name, "%s-%s-wake", what, scopes[i].name);
        CHECK(name, futex(at, WAKE | scope, 1, NULL, NULL, 0));
        snprintf(name, sizeof name, "%s-%s-wake-bits", what, scopes[i].name);
        CHECK(name, futex(at, WAKE_BITSET | scope, 1, NULL, NULL, 1));
        snprintf(name, sizeof name, "%s-%s-requeue-from", what, scopes[i].name);
        CHECK(name, futex(at, REQUEUE | scope, 1, (void *)1, &word, 0));
        snprintf(name, sizeof name, "%s-%s-requeue-to", what, scopes[i].name);
        CHECK(name, futex(&word, REQUEUE | scope, 1, (void *)1, at, 0));
        snprintf(name, sizeof name, "%s-%s-compare", what, scopes[i].name);
        CHECK(name, futex(at, CMP_REQUEUE | scope, 1, (void *)1, &word, 0));
        snprintf(name, sizeof name, "%s-%s-operation", what, scopes[i].name);
        CHECK(name, futex(&word, WAKE_OP | scope, 1, (void *)1, at, 0));
    }
}

static int scope_of_waiter, *word_of_waiter;

static void *waiter(void *nothing)
{
    (void)nothing;
    REQUIRE(futex(word_of_waiter, WAIT | scope_of_waiter, 0, NULL, NULL, 0) == 0);
    return NULL;
}

// Whether a waiter of one scope is woken by a call of the other.
static void meets(const char *name, int *at, int wait_scope, int wake_scope)
{
    pthread_t thread;
    word_of_waiter = at;
    scope_of_waiter = wait_scope;
    REQUIRE(pthread_create(&thread, NULL, waiter, NULL) == 0);
    // It is asleep once the other word's requeue of nobody to itself finds it.
    while (futex(at, CMP_REQUEUE | wait_scope, 0, (void *)1, at, 0) == 0)
        check_sleep_ms(1);
    CHECK(name, futex(at, WAKE | wake_scope, 1, NULL, NULL, 0));
    futex(at, WAKE | wait_scope, 1, NULL, NULL, 0);
    pthread_join(thread, NULL);
}

int main(void)
{
    long page = sysconf(_SC_PAGESIZE);
    int *gone = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(gone != MAP_FAILED && munmap(gone, page) == 0);
    each("unmapped", gone);
    int *closed = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(closed != MAP_FAILED);
    each("no-access", closed);
    int *closed_shared = mmap(NULL, page, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(closed_shared != MAP_FAILED);
    each("no-access-shared", closed_shared);
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    REQUIRE(fd >= 0 && ftruncate(fd, 2 * page) == 0);
    char *shared = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *private = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    REQUIRE(shared != MAP_FAILED && private != MAP_FAILED);
    CHECK("untouched-wake", futex((int *)shared, WAKE, 1, NULL, NULL, 0));
    REQUIRE(ftruncate(fd, page) == 0);
    each("behind-the-end", (int *)(shared + page));
    each("behind-the-end-of-private", (int *)(private + page));
    shared[0] = 0;
    meets("shared-word", (int *)shared, 0, 0);
    meets("private-word", &word, PRIVATE, PRIVATE);
    meets("private-memory", &word, 0, 0);
    meets("private-memory-private-waiter-shared-call", &word, PRIVATE, 0);
    meets("private-memory-shared-waiter-private-call", &word, 0, PRIVATE);
    meets("private-waiter-shared-call", (int *)shared, PRIVATE, 0);
    meets("shared-waiter-private-call", (int *)shared, 0, PRIVATE);
    return 0;
}
