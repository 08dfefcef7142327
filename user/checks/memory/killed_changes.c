// Calls that change much memory at once, and whose process is killed meanwhile.
#include "../check.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#define PAGE 4096L
#define PAGES 6000L
#define ROUNDS 24

static char *map(void)
{
    char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    for (long page = 0; page < PAGES; page++)
        memory[page * PAGE] = 1;
    return memory;
}

// Many VMAs, each of which shows a file.
static char *map_file(void)
{
    static char *area;
    int file = open("shown", O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0 && ftruncate(file, PAGES * PAGE) == 0);
    area = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(area != MAP_FAILED);
    for (long page = 0; page < PAGES; page += 2)
        REQUIRE(mmap(area + page * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, file, page * PAGE) != MAP_FAILED);
    close(file);
    return area;
}

static void unmap(void) { munmap(map(), PAGES * PAGE); }
static void unmap_files(void) { munmap(map_file(), PAGES * PAGE); }
static void protect(void) { mprotect(map(), PAGES * PAGE, PROT_READ); }
static void drop(void) { madvise(map(), PAGES * PAGE, MADV_DONTNEED); }

static void move(void)
{
    char *place = mmap(NULL, 2 * PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)!mremap(map(), PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    munmap(place, 2 * PAGES * PAGE);
}

static void copy(void)
{
    map();
    if (fork() == 0)
        _exit(0);
}

// The time that the call takes here, in microseconds, so that the kills come while it is under way.
static long time_of(void (*work)(void))
{
    pid_t child = check_fork();
    if (child == 0) {
        for (int i = 0; i < 3; i++)
            work();
        _exit(0);
    }
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    check_wait(child);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000) / 3 + 1;
}

static void sleep_for(long microseconds)
{
    struct timespec time = { microseconds / 1000000, microseconds % 1000000 * 1000 };
    nanosleep(&time, NULL);
}

static void check_killed(const char *name, void (*work)(void))
{
    long period = time_of(work);
    int killed = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pid_t child = check_fork();
        if (child == 0)
            for (;;)
                work();
        sleep_for(period + period * round / ROUNDS);
        kill(child, SIGKILL);
        int status = check_wait(child);
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    }
    char text[64];
    snprintf(text, sizeof text, "%s: all are killed", name);
    CHECK(text, killed);
}

// A process that has its maker's memory is killed while it unmaps some of that: the rest of the call is done, since the maker sees it.
static char *shared;
static char stack[65536];
static volatile int begun;

static int unmap_shared(void *unused)
{
    (void)unused;
    begun = 1;
    munmap(shared, PAGES * PAGE);
    for (;;)
        pause();
    return 0;
}

static void check_lent(void)
{
    int whole = 0;
    for (int round = 0; round < ROUNDS; round++) {
        shared = map();
        begun = 0;
        pid_t child = clone(unmap_shared, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
        REQUIRE(child > 0);
        while (!begun)
            sched_yield();
        sleep_for(round * 40);
        kill(child, SIGKILL);
        check_wait(child);
        // All of it is there, or nothing: the maker can map and unmap as before.
        unsigned char there;
        int first = mincore(shared, PAGE, &there), last = mincore(shared + (PAGES - 1) * PAGE, PAGE, &there);
        whole += first == last;
        munmap(shared, PAGES * PAGE);
    }
    CHECK("memory that two have: changed as a whole", whole);
}

int main(void)
{
    check_killed("munmap", unmap);
    check_killed("munmap of files", unmap_files);
    check_killed("mprotect", protect);
    check_killed("madvise", drop);
    check_killed("mremap", move);
    check_killed("fork", copy);
    check_lent();
    char *again = map();
    CHECK("and memory can be had", munmap(again, PAGES * PAGE));
    return 0;
}
