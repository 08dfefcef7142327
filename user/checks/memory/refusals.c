// What mmap and madvise refuse, and what is left of the mappings that were there.
#include "../check.h"
#include <sys/mman.h>
#include <sys/resource.h>

#define PAGE 4096
#ifndef MAP_SHARED_VALIDATE
#define MAP_SHARED_VALIDATE 3
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif

static void *map(void *at, size_t size, int protection, int flags, int fd)
{
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, 0);
}

// A limit is looked at before what is in the way goes.
static void fixed_mappings(void)
{
    // Far from everything else.
    char *p = map((void *)(1ul << 44), 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
    REQUIRE(p != MAP_FAILED);
    p[0] = 7;
    struct rlimit limit, old;
    getrlimit(RLIMIT_AS, &old);
    limit = (struct rlimit){ 1 << 20, old.rlim_max };
    setrlimit(RLIMIT_AS, &limit);
    CHECK_MAP("fixed-above-limit",
              map(p, 256 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1));
    setrlimit(RLIMIT_AS, &old);
    CHECK_CHILD("still-there", _exit(p[0]));
    getrlimit(RLIMIT_DATA, &old);
    limit = (struct rlimit){ 4 << 20, old.rlim_max };
    setrlimit(RLIMIT_DATA, &limit);
    CHECK_MAP("fixed-above-data",
              map(p, 256 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1));
    setrlimit(RLIMIT_DATA, &old);
    CHECK_CHILD("still-there-again", _exit(p[0]));
    munmap(p, 2 * PAGE);
}

static void seals(void)
{
    int fd = memfd_create("sealed", MFD_ALLOW_SEALING);
    REQUIRE(fd >= 0 && ftruncate(fd, 2 * PAGE) == 0);
    CHECK("seal", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    CHECK_MAP("sealed-shared-write", map(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd));
    CHECK_MAP("sealed-private-write", map(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd));
    close(fd);
    fd = memfd_create("later", MFD_ALLOW_SEALING);
    REQUIRE(fd >= 0 && ftruncate(fd, 2 * PAGE) == 0);
    char *before = map(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    REQUIRE(before != MAP_FAILED);
    CHECK("future-seal", fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
    before[0] = 5;
    CHECK_MAP("future-shared-write", map(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd));
    char *after = map(NULL, PAGE, PROT_READ, MAP_SHARED, fd);
    CHECK_MAP("future-shared-read", after);
    CHECK("future-protect", mprotect(after, PAGE, PROT_READ | PROT_WRITE));
    CHECK("seen", after[0]);
    close(fd);
}

static void read_only_zeros(void)
{
    int fd = open("/dev/zero", O_RDONLY);
    char *p = map(NULL, PAGE, PROT_READ, MAP_SHARED, fd);
    CHECK_MAP("zero-shared", p);
    CHECK("zero-protect", mprotect(p, PAGE, PROT_READ | PROT_WRITE));
    CHECK_MAP("zero-shared-write", map(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd));
    p = map(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd);
    CHECK("zero-private-protect", mprotect(p, PAGE, PROT_READ | PROT_WRITE));
    close(fd);
}

static void flags(void)
{
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    REQUIRE(fd >= 0 && ftruncate(fd, PAGE) == 0);
    CHECK_MAP("closed-and-no-length", map(NULL, 0, PROT_READ, MAP_SHARED, 99));
    CHECK_MAP("closed-and-no-type", map(NULL, PAGE, PROT_READ, 0, 99));
    CHECK_MAP("no-type", map(NULL, PAGE, PROT_READ, 0, fd));
    CHECK_MAP("validate", map(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE, fd));
    CHECK_MAP("validate-unknown", map(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE | (1 << 7), fd));
    CHECK_MAP("validate-newer", map(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE | 0x200000, fd));
    CHECK_MAP("validate-sync", map(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE | 0x80000, fd));
    CHECK_MAP("shared-unknown", map(NULL, PAGE, PROT_READ, MAP_SHARED | (1 << 7), fd));
    CHECK_MAP("validate-anonymous", map(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1));
    close(fd);
}

static void removed_pages(void)
{
    int fd = open("holes", O_RDWR | O_CREAT, 0600);
    REQUIRE(fd >= 0 && ftruncate(fd, 4 * PAGE) == 0);
    char *p = map(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    REQUIRE(p != MAP_FAILED);
    memset(p, 1, 4 * PAGE);
    char *view = map(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, fd);
    CHECK("remove", madvise(p + PAGE, 2 * PAGE, MADV_REMOVE));
    CHECK("kept", p[PAGE - 1] + p[3 * PAGE]);
    CHECK("gone", p[PAGE] + p[3 * PAGE - 1] + view[2 * PAGE]);
    CHECK("remove-locked", (mlock(p, PAGE), madvise(p, PAGE, MADV_REMOVE)));
    munlock(p, PAGE);
    char *private = map(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
    CHECK("remove-private", madvise(private, PAGE, MADV_REMOVE));
    char *anonymous = map(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    CHECK("remove-anonymous", madvise(anonymous, PAGE, MADV_REMOVE));
    char *shared = map(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    memset(shared, 3, 2 * PAGE);
    CHECK("remove-shared", madvise(shared, PAGE, MADV_REMOVE));
    CHECK("shared", shared[0] * 10 + shared[PAGE]);
    int reader = open("holes", O_RDONLY);
    char *read_only = map(NULL, PAGE, PROT_READ, MAP_SHARED, reader);
    CHECK("remove-read-only", madvise(read_only, PAGE, MADV_REMOVE));
    // Where a part is not mapped the rest is advised.
    munmap(anonymous, PAGE);
    char *parts = map(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    memset(parts, 2, 3 * PAGE);
    munmap(parts + PAGE, PAGE);
    CHECK("drop-over-hole", madvise(parts, 3 * PAGE, MADV_DONTNEED));
    CHECK("dropped", parts[0] + parts[2 * PAGE]);
}

int main(void)
{
    fixed_mappings();
    seals();
    read_only_zeros();
    flags();
    removed_pages();
    return 0;
}
