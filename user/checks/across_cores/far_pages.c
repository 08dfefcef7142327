// Pages far from each other, of which each has a page table of its own: other cores are asked to forget them many at a time, and who faults meanwhile gets its turn.
#include "../check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { TABLES = 2000, LOOKS = 20 };
#define APART (2L << 20)
#define SIZE (TABLES * APART)

static atomic_int over;
static atomic_long moves, writes;
static char *places[2];

// The other core has to forget pages while this runs on it.
static void *compute(void *unused)
{
    while (!over)
        writes++;
    return unused;
}

static void *move(void *unused)
{
    for (int to = 1; !over; to = !to) {
        if (mremap(places[!to], SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, places[to]) != places[to])
            break;
        moves++;
    }
    return unused;
}

// How often all cores together were asked.
static long asked(void)
{
    char line[4096];
    long sum = 0;
    FILE *file = fopen("/proc/interrupts", "r");
    REQUIRE(file);
    while (fgets(line, sizeof line, file)) {
        char *at = strstr(line, "TLB:"), *end;
        if (!at)
            continue;
        for (at += 4;; at = end) {
            long number = strtol(at, &end, 10);
            if (end == at)
                break;
            sum += number;
        }
    }
    fclose(file);
    return sum;
}

static char *reserve(void)
{
    char *place = mmap(NULL, SIZE + APART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(place != MAP_FAILED);
    return (char *)(((long)place + APART - 1) & ~(APART - 1));
}

static void fill(char *place)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    REQUIRE(mmap(place, SIZE, PROT_READ | PROT_WRITE, flags, -1, 0) == place);
    for (long table = 0; table < TABLES; table++)
        place[table * APART] = 1 + table % 100;
}

static long wrong(char *place, int zeros)
{
    long count = 0;
    for (long table = 0; table < TABLES; table++)
        count += place[table * APART] != (zeros ? 0 : 1 + table % 100);
    return count;
}

int main(void)
{
    pthread_t thread;
    places[0] = reserve();
    places[1] = reserve();
    fill(places[0]);
    REQUIRE(pthread_create(&thread, NULL, compute, NULL) == 0);
    while (writes == 0)
        sched_yield();
    long before = asked();
    CHECK("dropped", madvise(places[0], SIZE, MADV_DONTNEED));
    CHECK("asked-for-each-table-dropped", asked() - before > TABLES / 8);
    CHECK("wrong-after-drop", wrong(places[0], 1));
    fill(places[0]);
    before = asked();
    CHECK("unmapped", munmap(places[0], SIZE));
    CHECK("asked-for-each-table-unmapped", asked() - before > TABLES / 8);
    over = 1;
    pthread_join(thread, NULL);

    // A thread that moves them again and again keeps neither a fault where nothing is mapped waiting, nor another mapping.
    fill(places[0]);
    over = 0;
    int zero = open("/dev/zero", O_RDONLY);
    REQUIRE(pthread_create(&thread, NULL, move, NULL) == 0);
    while (moves < 2)
        sched_yield();
    long longest = 0, faults = 0, mapped = 0;
    for (int look = 0; look < LOOKS; look++) {
        long begun = moves;
        faults += read(zero, (void *)8, 1) == -1 && errno == EFAULT;
        mapped += mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
        long waited = moves - begun;
        longest = waited > longest ? waited : longest;
    }
    over = 1;
    pthread_join(thread, NULL);
    CHECK("faults", faults);
    CHECK("mapped", mapped);
    CHECK("waited-for-very-many-moves", longest > 1000);
    CHECK("wrong-after-moves", wrong(places[moves % 2], 0));
    return 0;
}
