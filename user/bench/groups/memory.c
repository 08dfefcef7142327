// Memory.
#include "groups.h"

// Where nothing else is.
#define BASE 0x100000000000L
#define TABLE (PAGE * 512L)

static long memory;
static int file;

static long map(long address, long length, int protection, int flags, int descriptor)
{
    return call6(SYS_mmap, address, length, protection, flags | (address ? MAP_FIXED : 0), descriptor, 0);
}

// A result that is an address, or -errno.
static long place_for(long address)
{
    if (address < 0 && address > -4096)
        return address;
    memory = address;
    return 0;
}

static long nothing(long index)
{
    (void)index;
    return 0;
}

static long map_alternating(long index)
{
    long result = map(BASE + index * PAGE, PAGE, index % 2 ? PROT_READ | PROT_WRITE : PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    return result < 0 && result > -4096 ? result : 0;
}

static long map_sparse(long index)
{
    long result = map(BASE + index * TABLE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (result < 0 && result > -4096)
        return result;
    *(volatile char *)result = 1;
    return 0;
}

static long begin_pages(long count) { return place_for(map(0, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1)); }
static long begin_shared(long count) { return place_for(map(0, count * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1)); }

static long touch(long index)
{
    *(volatile char *)(memory + index * PAGE) = 1;
    return 0;
}

static long begin_memfd(long count)
{
    file = call3(SYS_memfd_create, (long)"pages", 0, 0);
    return file < 0 ? file : call3(SYS_ftruncate, file, count * PAGE, 0);
}

static long write_memfd(long index)
{
    long result = call4(SYS_pwrite64, file, (long)"", 1, index * PAGE);
    return result < 0 ? result : 0;
}

static void prepare_page(long count)
{
    static const char page[PAGE];
    (void)count;
    int descriptor = open("/tmp/page", O_CREAT | O_RDWR, 0644);
    must(descriptor, "create a file");
    must(write(descriptor, page, PAGE), "write a file");
    close(descriptor);
}

static long begin_file(long count)
{
    (void)count;
    return file = call3(SYS_open, (long)"/tmp/page", O_RDONLY, 0);
}

static long map_file(long index)
{
    long result = map(BASE + index * PAGE, PAGE, PROT_READ, MAP_PRIVATE, file);
    if (result < 0 && result > -4096)
        return result;
    (void)*(volatile char *)result;
    return 0;
}

const struct class memory_classes[] = {
    { "nothing", 0, NULL, NULL, nothing, NULL },
    { "vmas", 300, NULL, NULL, map_alternating, NULL },
    { "sparse", 8500, NULL, NULL, map_sparse, NULL },
    { "pages", 4200, NULL, begin_pages, touch, NULL },
    { "shared-pages", 4300, NULL, begin_shared, touch, NULL },
    { "memfd-pages", 4300, NULL, begin_memfd, write_memfd, NULL },
    { "file-mappings", 300, prepare_page, begin_file, map_file, NULL },
    { 0 },
};
