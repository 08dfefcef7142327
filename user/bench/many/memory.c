// Many mappings.
#include "many.h"

#define PAGE 4096
static char *mappings;
static long pages;

// Pages with one protection and another in turn: each is a mapping.
static void make_mappings(long count)
{
    pages = count;
    mappings = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mappings == MAP_FAILED)
        fail("mmap");
    for (long i = 1; i < count; i += 2)
        must(mprotect(mappings + i * PAGE, PAGE, PROT_READ), "mprotect");
}

static void make_touched(long count)
{
    make_mappings(count);
    for (long i = 0; i < count; i += 2)
        ((volatile char *)mappings)[i * PAGE] = 1;
}

static uint64_t map_unmap(long count)
{
    REPEAT(call3(SYS_munmap, call6(SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PAGE, 0));
}

static uint64_t touch_middle(long count)
{
    char *middle = mappings + (pages / 2 & ~1L) * PAGE;
    REPEAT(*(volatile char *)middle = 1; call3(SYS_madvise, (long)middle, PAGE, MADV_DONTNEED));
}

// It joins its neighbours, then parts from them.
static uint64_t protect_middle(long count)
{
    char *middle = mappings + (pages / 2 & ~1L) * PAGE;
    REPEAT(call3(SYS_mprotect, (long)middle, PAGE, PROT_READ); call3(SYS_mprotect, (long)middle, PAGE, PROT_READ | PROT_WRITE));
}

static uint64_t read_maps(long count)
{
    static char buffer[PAGE];
    uint64_t start = ticks();
    for (long i = 0; i < count; i++) {
        int file = open("/proc/self/maps", O_RDONLY);
        must(file, "/proc/self/maps");
        while (call3(SYS_read, file, (long)buffer, sizeof buffer) > 0)
            ;
        close(file);
    }
    return ticks() - start;
}

static uint64_t end_mappings(long count) { return ending(make_touched, count); }

const struct row memory_rows[] = {
    { "mappings-map-unmap", make_mappings, map_unmap, 50 },
    { "mappings-fault", make_mappings, touch_middle, 50 },
    { "mappings-protect", make_mappings, protect_middle, 20 },
    { "mappings-maps", make_mappings, read_maps, 1 },
    { "mappings-fork", make_mappings, fork_exit_wait, 1 },
    { "mappings-end", NULL, end_mappings, 0 },
    { 0 },
};
