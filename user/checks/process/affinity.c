// On which cores a thread may run, and on which one it is. No fact depends on how many cores there are: where there is one, a set of it is the only one.
#include "../check.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

static cpu_set_t all;
static int first, last;

static cpu_set_t only(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return set;
}

static int is_set_to(pid_t thread, const cpu_set_t *set)
{
    cpu_set_t told;
    CPU_ZERO(&told);
    return sched_getaffinity(thread, sizeof told, &told) == 0 && CPU_EQUAL(&told, set);
}

static int here(void)
{
    unsigned core = 99999, node = 99999;
    REQUIRE(syscall(SYS_getcpu, &core, &node, NULL) == 0);
    return (int)core;
}

// Whether the calling thread stays on a core, however often it gives way, sleeps or computes.
static int stays_on(int core)
{
    for (int i = 0; i < 50; i++) {
        if (here() != core || sched_getcpu() != core)
            return 0;
        if (i % 3 == 0)
            sched_yield();
        if (i % 10 == 0)
            check_sleep_ms(1);
        for (volatile int spin = 0; spin < 10000; spin++)
            ;
    }
    return 1;
}

static void the_callers_own(void)
{
    cpu_set_t one = only(last);
    CHECK("set", sched_setaffinity(0, sizeof one, &one));
    CHECK_TRUE("told", is_set_to(0, &one));
    CHECK_TRUE("told-by-number", is_set_to(getpid(), &one));
    CHECK_TRUE("there-at-once", here() == last);
    CHECK_TRUE("stays", stays_on(last));
    one = only(first);
    CHECK("set-again", sched_setaffinity(getpid(), sizeof one, &one));
    CHECK_TRUE("moves-at-once", here() == first);
    CHECK_TRUE("stays-again", stays_on(first));
    CHECK_CHILD("child-inherits", _exit(is_set_to(0, &one) && here() == first ? 0 : 1));
    CHECK("back", sched_setaffinity(0, sizeof all, &all));
    CHECK_TRUE("all", is_set_to(0, &all));
}

static void over_exec(char **argv)
{
    cpu_set_t one = only(last);
    char core[16];
    snprintf(core, sizeof core, "%d", last);
    CHECK_CHILD("exec-keeps-it", sched_setaffinity(0, sizeof one, &one); execl("/proc/self/exe", argv[0], core, NULL); _exit(2));
}

// Masks shorter and longer than the kernel's, and bits of cores that are not there.
static void masks(void)
{
    unsigned char mask[1024];
    memset(mask, 0xff, sizeof mask);
    CHECK("more-cores-than-there-are", syscall(SYS_sched_setaffinity, 0, sizeof mask, mask));
    CHECK_TRUE("those-that-are-there", is_set_to(0, &all));
    memset(mask, 0, sizeof mask);
    mask[first / 8] = (unsigned char)(1 << first % 8);
    CHECK("a-short-mask", syscall(SYS_sched_setaffinity, 0, (long)first / 8 + 1, mask));
    cpu_set_t one = only(first);
    CHECK_TRUE("is-filled-with-zeros", is_set_to(0, &one));
    CHECK("no-core", syscall(SYS_sched_setaffinity, 0, 8, memset(mask, 0, sizeof mask)));
    CHECK("no-mask", syscall(SYS_sched_setaffinity, 0, 0, mask));
    mask[1000] = 1;
    CHECK("only-one-that-is-not-there", syscall(SYS_sched_setaffinity, 0, sizeof mask, mask));
    CHECK("bad-pointer", syscall(SYS_sched_setaffinity, 0, 8, BAD_POINTER));
    CHECK("nobody", syscall(SYS_sched_setaffinity, 0x3fffffff, sizeof all, &all));
    CHECK_TRUE("still-the-same", is_set_to(0, &one));
    CHECK("all-again", sched_setaffinity(0, sizeof all, &all));

    CHECK("get-too-short", syscall(SYS_sched_getaffinity, 0, 0, mask));
    CHECK("get-no-multiple", syscall(SYS_sched_getaffinity, 0, 12, mask));
    CHECK("get-bad-pointer", syscall(SYS_sched_getaffinity, 0, 128, BAD_POINTER));
    memset(mask, 0xff, sizeof mask);
    long got = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    CHECK_TRUE("get-gives-words", got >= 8 && got % 8 == 0);
    CHECK_TRUE("that-are-needed", got * 8 > last);
    CHECK_TRUE("the-rest-is-left-alone", mask[got] == 0xff);
}

// Each thread has a set of its own.
static struct {
    pid_t id;
    int moved;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} other = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void *run_other(void *argument)
{
    cpu_set_t inherited = only(first);
    CHECK_TRUE("thread-inherits", is_set_to(0, &inherited));
    pthread_mutex_lock(&other.mutex);
    other.id = (pid_t)syscall(SYS_gettid);
    pthread_cond_broadcast(&other.changed);
    while (!other.moved)
        pthread_cond_wait(&other.changed, &other.mutex);
    pthread_mutex_unlock(&other.mutex);
    CHECK_TRUE("moved-by-another", here() == last && stays_on(last));
    return argument;
}

static void of_threads(void)
{
    cpu_set_t one = only(first), another = only(last);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, run_other, NULL) == 0);
    pthread_mutex_lock(&other.mutex);
    while (!other.id)
        pthread_cond_wait(&other.changed, &other.mutex);
    pthread_mutex_unlock(&other.mutex);
    CHECK("another-thread", sched_setaffinity(other.id, sizeof another, &another));
    CHECK_TRUE("has-its-own", is_set_to(other.id, &another));
    CHECK_TRUE("the-first-its-own", is_set_to(0, &one) && is_set_to(getpid(), &one));
    pthread_mutex_lock(&other.mutex);
    other.moved = 1;
    pthread_cond_broadcast(&other.changed);
    pthread_mutex_unlock(&other.mutex);
    pthread_join(thread, NULL);
    REQUIRE(sched_setaffinity(0, sizeof all, &all) == 0);
}

// A process that computes is moved while it does.
static void of_processes(void)
{
    volatile int *core = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(core != MAP_FAILED);
    pid_t pid = check_fork();
    if (pid == 0)
        for (;;)
            *core = here() + 1;
    while (*core == 0)
        check_sleep_ms(1);
    for (int i = 0; i < 4; i++) {
        int target = i % 2 ? first : last;
        cpu_set_t one = only(target);
        REQUIRE(sched_setaffinity(pid, sizeof one, &one) == 0);
        *core = 0;
        while (*core == 0)
            check_sleep_ms(1);
        // It may have asked before it was moved, once.
        *core = 0;
        while (*core == 0)
            check_sleep_ms(1);
        CHECK_TRUE("child-moved", *core == target + 1);
    }
    kill(pid, SIGKILL);
    CHECK_STATUS("child", check_wait(pid));
    CHECK("child-gone", sched_getaffinity(pid, sizeof all, &(cpu_set_t){ 0 }));
}

// What is refused to those who are not root, and may do with their own.
static void rights(void)
{
    CHECK_CHILD("unprivileged", {
        pid_t parent = getppid();
        REQUIRE(setuid(1234) == 0);
        cpu_set_t one = only(first);
        CHECK("own", sched_setaffinity(0, sizeof one, &one));
        CHECK("others", sched_setaffinity(parent, sizeof one, &one));
        CHECK("ask-others", sched_getaffinity(parent, sizeof one, &one) == 0);
    });
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        cpu_set_t one = only(atoi(argv[1]));
        return is_set_to(0, &one) && here() == atoi(argv[1]) ? 0 : 1;
    }
    // Whatever the processes around allow, this one may run on all cores that it can be given.
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    memset(&all, 0, sizeof all);
    REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
    for (first = 0; !CPU_ISSET(first, &all); first++)
        ;
    for (last = CPU_SETSIZE - 1; !CPU_ISSET(last, &all); last--)
        ;
    over_exec(argv);
    the_callers_own();
    masks();
    of_threads();
    of_processes();
    rights();
    return 0;
}
