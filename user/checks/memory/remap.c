// mremap: growing, shrinking, moving.
#include "../check.h"
#include <sys/mman.h>

#define PAGE 4096

int main(void)
{
    const int rw = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *p = mmap(NULL, 32 * PAGE, rw, flags, -1, 0);
    REQUIRE(p != MAP_FAILED && munmap(p + 4 * PAGE, 28 * PAGE) == 0);
    for (int i = 0; i < 4; i++)
        p[i * PAGE] = (char)(i + 1);
    CHECK_TRUE("shrink", mremap(p, 4 * PAGE, 3 * PAGE, 0) == p);
    CHECK_CHILD("shrunk", p[3 * PAGE] = 1);
    CHECK_TRUE("grow-in-place", mremap(p, 3 * PAGE, 6 * PAGE, 0) == p);
    CHECK("grown-zero", p[5 * PAGE]);
    CHECK("content", p[2 * PAGE]);
    REQUIRE(mmap(p + 6 * PAGE, PAGE, rw, flags | MAP_FIXED_NOREPLACE, -1, 0) == p + 6 * PAGE);
    REQUIRE(mprotect(p + 6 * PAGE, PAGE, PROT_READ) == 0);
    CHECK_MAP("grow-blocked", mremap(p, 6 * PAGE, 10 * PAGE, 0));
    char *moved = mremap(p, 6 * PAGE, 10 * PAGE, MREMAP_MAYMOVE);
    CHECK_TRUE("moved", moved != MAP_FAILED && moved != p);
    CHECK("moved-content", moved[0] * 100 + moved[PAGE] * 10 + moved[2 * PAGE]);
    CHECK_CHILD("old-gone", p[0] = 1);
    char *target = mmap(NULL, 10 * PAGE, rw, flags, -1, 0);
    target[9 * PAGE] = 77;
    CHECK_TRUE("fixed", mremap(moved, 10 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target) == target);
    CHECK("fixed-content", target[PAGE]);
    CHECK("rest-of-target-stays", target[9 * PAGE]);
    CHECK_MAP("unmapped", mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    CHECK_MAP("unaligned", mremap(target + 1, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    CHECK_MAP("zero-new", mremap(target, PAGE, 0, MREMAP_MAYMOVE));
    CHECK_MAP("fixed-without-maymove", mremap(target, PAGE, PAGE, MREMAP_FIXED, p));
    CHECK_MAP("fixed-overlap", mremap(target, 2 * PAGE, 2 * PAGE, MREMAP_FIXED | MREMAP_MAYMOVE, target + PAGE));
    CHECK_MAP("bad-flags", mremap(target, PAGE, PAGE, 0x100));
    // A shared file mapping keeps its file and offset.
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    REQUIRE(ftruncate(fd, 8 * PAGE) == 0);
    char *file = mmap(NULL, 2 * PAGE, rw, MAP_SHARED, fd, PAGE);
    file = mremap(file, 2 * PAGE, 6 * PAGE, MREMAP_MAYMOVE);
    REQUIRE(file != MAP_FAILED);
    file[5 * PAGE] = 'z';
    char c = 0;
    CHECK("file-offset", pread(fd, &c, 1, 6 * PAGE) == 1 && c == 'z');
    // Size zero duplicates a shared mapping.
    char *shared = mmap(NULL, PAGE, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *twin = mremap(shared, 0, PAGE, MREMAP_MAYMOVE);
    REQUIRE(twin != MAP_FAILED);
    shared[3] = 33;
    CHECK("twin", twin[3]);
    return 0;
}
