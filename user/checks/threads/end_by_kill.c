// What others see of the threads of a process that is killed: their words (CLONE_CHILD_CLEARTID), and how the process ended, however many they were.
#include "../check.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { MANY = 2200, STACK = 4096 };

// What all processes here see.
static struct {
    atomic_int word[2], ready, seen;
} *shared;
static atomic_int word;
static char *stacks;
static char watcher_stack[65536] __attribute__((aligned(16)));

// No C library in here: the threads have none of their own.
static int pause_for_ever(void *unused)
{
    (void)unused;
    for (;;)
        syscall(SYS_pause);
    return 0;
}

static void start_thread(int number, atomic_int *cleared)
{
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    if (cleared) {
        *cleared = 1;
        flags |= CLONE_CHILD_CLEARTID;
    }
    REQUIRE(clone(pause_for_ever, stacks + (number + 1) * STACK, flags, NULL, NULL, NULL, cleared) > 0);
}

// Runs in another process that shares the memory.
static int watch_word(void *unused)
{
    (void)unused;
    while (atomic_load(&word) != 0)
        syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 1, NULL, NULL, 0);
    atomic_store(&shared->seen, 1);
    return 0;
}

static void await(atomic_int *what)
{
    while (!atomic_load(what))
        check_sleep_ms(1);
}

static pid_t start(void (*prepare)(void))
{
    atomic_store(&shared->ready, 0);
    pid_t child = check_fork();
    if (child == 0) {
        prepare();
        atomic_store(&shared->ready, 1);
        for (;;)
            pause();
    }
    await(&shared->ready);
    return child;
}

static void be_watched(void)
{
    start_thread(0, &word);
    REQUIRE(clone(watch_word, watcher_stack + sizeof watcher_stack, CLONE_VM | SIGCHLD, NULL) > 0);
}

static void have_words_in_shared_memory(void)
{
    start_thread(0, &shared->word[0]);
    start_thread(1, &shared->word[1]);
}

static void have_many_threads(void)
{
    for (int i = 0; i < MANY; i++)
        start_thread(i, NULL);
}

static void exit_with_many_threads(void)
{
    have_many_threads();
    atomic_store(&shared->ready, 1);
    _exit(5);
}

// The signals that are pending for a process, as its status file has them.
static unsigned long long pending_of(pid_t process)
{
    char path[64], line[256];
    unsigned long long set = 0;
    snprintf(path, sizeof path, "/proc/%d/status", process);
    FILE *file = fopen(path, "r");
    REQUIRE(file);
    while (fgets(line, sizeof line, file))
        sscanf(line, "ShdPnd: %llx", &set);
    fclose(file);
    return set;
}

int main(void)
{
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    stacks = mmap(NULL, (MANY + 1) * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED && stacks != MAP_FAILED);

    pid_t child = start(be_watched);
    kill(child, SIGKILL);
    CHECK_STATUS("whose memory another process shares", check_wait(child));
    await(&shared->seen);
    CHECK("its thread's word is cleared", atomic_load(&shared->seen));

    child = start(have_words_in_shared_memory);
    kill(child, SIGKILL);
    siginfo_t info;
    REQUIRE(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0);
    CHECK_TRUE("SIGKILL is pending for a zombie", pending_of(child) == 1ull << (SIGKILL - 1));
    CHECK_STATUS("with words in shared memory", check_wait(child));
    // The last thread that leaves the memory has nobody to clear its word for.
    CHECK_TRUE("a word is cleared", !shared->word[0] || !shared->word[1]);

    child = start(have_many_threads);
    kill(child, SIGKILL);
    CHECK_STATUS("with very many threads", check_wait(child));
    child = start(exit_with_many_threads);
    CHECK_STATUS("very many threads, by itself", check_wait(child));
    return 0;
}
