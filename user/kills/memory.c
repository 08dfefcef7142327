// Memory.
#include "kills.h"
#include <sys/sem.h>
#include <sys/shm.h>

#define TABLE (PAGE * 512L)

static char *map(size_t length, int flags, int file)
{
    char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, file, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void touch_some(char *memory, int pages)
{
    for (int i = 0; memory && i < pages; i += 1 + any(2))
        ((volatile char *)memory)[(long)i * PAGE] = 1;
}

static void anonymous(int amount) { touch_some(map((size_t)amount * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1), amount); }
static void shared(int amount) { touch_some(map((size_t)amount * PAGE, MAP_SHARED | MAP_ANONYMOUS, -1), amount); }

// A page table for each page.
static void sparse(int amount)
{
    char *memory = map(amount * TABLE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    for (int i = 0; memory && i < amount; i++)
        ((volatile char *)memory)[i * TABLE] = 1;
}

static void areas(int amount)
{
    for (int i = 0; i < amount; i++) {
        int protection = i % 2 ? PROT_READ | PROT_WRITE : PROT_READ;
        if (mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            return;
    }
}

static void shared_areas(int amount)
{
    for (int i = 0; i < amount; i++)
        touch_some(map(PAGE * (1 + any(3)), MAP_SHARED | MAP_ANONYMOUS, -1), 1);
}

static void file_mappings(int amount)
{
    int file = open("/tmp/page", O_RDWR);
    for (int i = 0; i < amount; i++)
        touch_some(map(PAGE, i % 2 ? MAP_SHARED : MAP_PRIVATE, file), 1);
    close(file);
}

// Each mapping is split into pieces by protections.
static void split_mappings(int amount)
{
    int file = open("/tmp/page", O_RDWR);
    char *memory = map((size_t)amount * PAGE, MAP_SHARED, file);
    close(file);
    for (int i = 0; memory && i < amount; i += 2)
        if (mprotect(memory + (long)i * PAGE, PAGE, PROT_READ) < 0)
            return;
}

static void memfds(int amount)
{
    for (int i = 0; i < amount; i++) {
        int file = memfd_create("kills", 0), pages = 1 + any(8);
        if (file < 0 || ftruncate(file, (long)pages * PAGE) < 0)
            return;
        touch_some(map((size_t)pages * PAGE, MAP_SHARED, file), pages);
        if (any(2))
            close(file);
    }
}

static void large_memfd(int amount)
{
    int file = memfd_create("large", 0);
    for (int i = 0; file >= 0 && i < amount; i++)
        if (pwrite(file, "", 1, (long)i * (1 + any(600)) * PAGE) < 0)
            return;
}

// Some go with the kill, the others are removed behind the round.
static void segments(int amount)
{
    for (int i = 0; i < amount; i++) {
        int pages = 1 + any(8), segment = shmget(IPC_PRIVATE, (long)pages * PAGE, 0600);
        if (segment < 0)
            return;
        char *memory = shmat(segment, NULL, any(8) ? 0 : SHM_RDONLY);
        if (any(8))
            shmctl(segment, IPC_RMID, NULL);
        if (memory == (char *)-1)
            return;
        for (int j = 0; j < pages; j++)
            any(2) ? (void)((volatile char *)memory)[(long)j * PAGE] : (void)0;
    }
}

// Each is to get something back; of some workloads, all semaphores of each set.
static void semaphores(int amount)
{
    enum { AT_ONCE = 500 };
    int all = once_in(3);
    for (int i = 0; i < amount; i++) {
        int many = any(4) ? 1 + any(10) : 1 + any(2000), set = semget(IPC_PRIVATE, many, 0600);
        int first = all ? 0 : any(many), end = all ? many : first + 1;
        if (set < 0)
            return;
        while (first < end) {
            struct sembuf up[AT_ONCE];
            int count = 0;
            for (; count < AT_ONCE && first < end; first++)
                up[count++] = (struct sembuf){ first, 1 + any(3), SEM_UNDO };
            if (semop(set, up, count) < 0)
                return;
        }
    }
}

// What its end gives back lets on who waits outside.
static void given_to_outside(int amount)
{
    struct sembuf back[] = { { 0, 1, 0 }, { 0, -1, SEM_UNDO } };
    for (int i = 0; i < amount; i++)
        if (semop(board->waited_for, back, 2) < 0)
            return;
}

static void locked(int amount)
{
    char *memory = map((size_t)amount * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (memory)
        mlock(memory, (size_t)amount * PAGE);
}

const struct kind memory_kinds[] = {
    { "anonymous", 8000, anonymous },
    { "shared", 4000, shared },
    { "sparse", 2000, sparse },
    { "areas", 4000, areas },
    { "shared-areas", 2000, shared_areas },
    { "file-mappings", 4000, file_mappings },
    { "split-mappings", 3000, split_mappings },
    { "memfds", 800, memfds },
    { "large-memfd", 3000, large_memfd },
    { "segments", 800, segments },
    { "semaphores", 400, semaphores },
    { "given-to-outside", 200, given_to_outside },
    { "locked", 1000, locked },
    { 0 },
};
