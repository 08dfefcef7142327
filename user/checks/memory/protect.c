// mprotect: splitting, joining, executing, errors.
#include "../check.h"
#include <sys/mman.h>

#define PAGE 4096

// Without the rounding that the C library does.
static long protect(void *start, size_t length, int protection)
{
    return syscall(SYS_mprotect, start, length, protection);
}

int main(void)
{
    char *p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(p != MAP_FAILED);
    memset(p, 1, 8 * PAGE);
    CHECK("read-only", protect(p + 2 * PAGE, 2 * PAGE, PROT_READ));
    CHECK("read", p[2 * PAGE]);
    CHECK_CHILD("write", p[2 * PAGE] = 2);
    CHECK_CHILD("write-before", p[2 * PAGE - 1] = 2);
    CHECK_CHILD("write-after", p[4 * PAGE] = 2);
    CHECK("none", protect(p + 3 * PAGE, PAGE, PROT_NONE));
    CHECK_CHILD("read-none", _exit(p[3 * PAGE]));
    CHECK("all-back", protect(p, 8 * PAGE, PROT_READ | PROT_WRITE));
    p[3 * PAGE] = 3;
    CHECK("content-kept", p[2 * PAGE] + p[3 * PAGE]);
    CHECK("unaligned", protect(p + 1, PAGE, PROT_READ));
    CHECK("bad-protection", protect(p, PAGE, 0x100));
    CHECK("zero-length", protect(p, 0, PROT_READ));
    CHECK("unmapped", (munmap(p + 6 * PAGE, PAGE), protect(p + 6 * PAGE, PAGE, PROT_READ)));
    // Up to the hole the change is made, then the call fails.
    CHECK("into-hole", protect(p + 5 * PAGE, 2 * PAGE, PROT_READ));
    CHECK_CHILD("changed-before-hole", p[5 * PAGE] = 1);
    // Code can be written, made executable and run; without the right it cannot.
    static const unsigned char code[] = { 0xb8, 42, 0, 0, 0, 0xc3 };
    memcpy(p, code, sizeof code);
    CHECK_CHILD("not-executable", ((int (*)(void))p)());
    CHECK("executable", protect(p, PAGE, PROT_READ | PROT_EXEC));
    CHECK("runs", ((int (*)(void))p)());
    CHECK_CHILD("not-writable", p[0] = 0);
    return 0;
}
