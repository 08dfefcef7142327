// Anonymous mappings: zeroes, placement, splitting, limits.
#include "../check.h"
#include <sys/mman.h>
#include <sys/resource.h>

#define PAGE 4096

int main(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS, rw = PROT_READ | PROT_WRITE;
    char *p = mmap(NULL, 16 * PAGE, rw, flags, -1, 0);
    REQUIRE(p != MAP_FAILED);
    int zeros = 0;
    for (int i = 0; i < 16 * PAGE; i++)
        zeros += p[i] == 0;
    CHECK("zeros", zeros);
    CHECK("aligned", (uintptr_t)p % PAGE);
    memset(p, 7, 16 * PAGE);
    CHECK("unmap-middle", munmap(p + 4 * PAGE, 4 * PAGE));
    CHECK("left-part", p[4 * PAGE - 1]);
    CHECK("right-part", p[8 * PAGE]);
    CHECK_CHILD("hole", p[5 * PAGE] = 1);
    CHECK("unmap-hole-again", munmap(p + 4 * PAGE, 4 * PAGE));
    CHECK_TRUE("fixed-into-hole", mmap(p + 4 * PAGE, PAGE, rw, flags | MAP_FIXED, -1, 0) == p + 4 * PAGE);
    CHECK("fresh-zero", p[4 * PAGE]);
    CHECK_TRUE("fixed-over-old", mmap(p, PAGE, rw, flags | MAP_FIXED, -1, 0) == p);
    CHECK("replaced", p[0]);
    CHECK_MAP("noreplace-occupied", mmap(p, PAGE, rw, flags | 0x100000, -1, 0));
    CHECK_TRUE("noreplace-free", mmap(p + 5 * PAGE, PAGE, rw, flags | 0x100000, -1, 0) == p + 5 * PAGE);
    CHECK_TRUE("hint-free", mmap(p + 6 * PAGE, PAGE, rw, flags, -1, 0) == p + 6 * PAGE);
    CHECK_TRUE("hint-occupied", mmap(p, PAGE, rw, flags, -1, 0) != p);
    CHECK("unmap-unaligned", munmap(p + 1, PAGE));
    CHECK("unmap-zero", munmap(p, 0));
    CHECK("unmap-odd-length", munmap(p, 1));
    CHECK_CHILD("whole-page-gone", p[PAGE - 1] = 1);
    CHECK_MAP("length-zero", mmap(NULL, 0, rw, flags, -1, 0));
    CHECK_MAP("no-type", mmap(NULL, PAGE, rw, MAP_ANONYMOUS, -1, 0));
    CHECK_MAP("fixed-unaligned", mmap(p + 1, PAGE, rw, flags | MAP_FIXED, -1, 0));
    CHECK_MAP("huge", mmap(NULL, (size_t)1 << 47, rw, flags, -1, 0));
    CHECK_MAP("overflow", mmap(NULL, SIZE_MAX, rw, flags, -1, 0));
    CHECK_MAP("kernel-half", mmap((void *)0xffff800000000000ul, PAGE, rw, flags | MAP_FIXED, -1, 0));
    CHECK("unmap-kernel-half", munmap((void *)0xffff800000000000ul, PAGE));
    // A large reservation costs nothing until it is used.
    char *large = mmap(NULL, (size_t)1 << 33, PROT_NONE, flags | MAP_NORESERVE, -1, 0);
    CHECK_TRUE("reserve-8-gib", large != MAP_FAILED);
    CHECK("open-a-window", mprotect(large + ((size_t)5 << 30), PAGE, rw));
    large[((size_t)5 << 30) + 5] = 9;
    CHECK("window", large[((size_t)5 << 30) + 5]);
    CHECK("release", munmap(large, (size_t)1 << 33));
    // The address-space limit.
    struct rlimit limit = { 64 << 20, 64 << 20 };
    CHECK_CHILD("limit", REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0); CHECK_MAP("above-limit", mmap(NULL, 128 << 20, rw, flags, -1, 0));
                CHECK_MAP("below-limit", mmap(NULL, 8 << 20, rw, flags, -1, 0)));
    return 0;
}
