// madvise and mincore.
#include "../check.h"
#include <sys/mman.h>

#define PAGE 4096

int main(void)
{
    char *p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(p != MAP_FAILED);
    memset(p, 9, 8 * PAGE);
    CHECK("dontneed", madvise(p + PAGE, 2 * PAGE, MADV_DONTNEED));
    CHECK("before", p[PAGE - 1]);
    CHECK("zero-first", p[PAGE]);
    CHECK("zero-last", p[3 * PAGE - 1]);
    CHECK("after", p[3 * PAGE]);
    check_write_file("f", "file text");
    int fd = open("f", O_RDWR);
    char *private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    private[0] = 'F';
    CHECK("dontneed-private-file", madvise(private, PAGE, MADV_DONTNEED));
    CHECK_STR("file-again", private);
    char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    shared[0] = 'S';
    CHECK("dontneed-shared", madvise(shared, PAGE, MADV_DONTNEED));
    CHECK_STR("shared-keeps", shared);
    CHECK("willneed", madvise(p, 8 * PAGE, MADV_WILLNEED));
    CHECK("sequential", madvise(shared, PAGE, MADV_SEQUENTIAL));
    CHECK("normal", madvise(p, 8 * PAGE, MADV_NORMAL));
    CHECK("unaligned", madvise(p + 1, PAGE, MADV_NORMAL));
    CHECK("unknown", madvise(p, PAGE, 9999));
    CHECK("zero-length", madvise(p, 0, MADV_DONTNEED));
    CHECK("unmapped", (munmap(p + 7 * PAGE, PAGE), madvise(p + 7 * PAGE, PAGE, MADV_DONTNEED)));
    CHECK("free", madvise(p, PAGE, MADV_FREE));
    p[0] = 3;
    CHECK("free-then-written", p[0]);
    CHECK("dontfork", madvise(p + 4 * PAGE, PAGE, MADV_DONTFORK));
    CHECK_CHILD("not-in-child", _exit(p[4 * PAGE]));
    CHECK("wipeonfork", madvise(p + 5 * PAGE, PAGE, MADV_WIPEONFORK));
    CHECK_CHILD("wiped-in-child", _exit(p[5 * PAGE] + 30));
    CHECK("parent-keeps", p[5 * PAGE]);
    unsigned char resident[8];
    char *fresh = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(madvise(fresh, 4 * PAGE, MADV_NOHUGEPAGE) == 0 || errno == EINVAL);
    fresh[PAGE] = 1;
    CHECK("mincore", mincore(fresh, 4 * PAGE, resident));
    CHECK("resident", (resident[0] & 1) * 1000 + (resident[1] & 1) * 100 + (resident[2] & 1) * 10 + (resident[3] & 1));
    CHECK("mincore-unmapped", mincore(p + 7 * PAGE, PAGE, resident));
    CHECK("mincore-unaligned", mincore(p + 1, PAGE, resident));
    CHECK("mincore-bad-pointer", mincore(fresh, PAGE, BAD_POINTER));
    CHECK("mlock", mlock(fresh, PAGE));
    CHECK("munlock", munlock(fresh, PAGE));
    CHECK("mlock-unmapped", mlock(p + 7 * PAGE, PAGE));
    return 0;
}
