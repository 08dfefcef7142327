// brk: the program break grows, shrinks and gives zeros.
#include "../check.h"
#include <sys/mman.h>
#include <sys/resource.h>

static char *break_at(char *address)
{
    return (char *)syscall(SYS_brk, address);
}

int main(void)
{
    char *start = break_at(0);
    CHECK_TRUE("start", start != NULL);
    char *first = (char *)(((uintptr_t)start + 4095) & ~4095ul);
    CHECK_TRUE("grow", break_at(first + 8 * 4096) == first + 8 * 4096);
    int zeros = 0;
    for (int i = 0; i < 8 * 4096; i++)
        zeros += first[i] == 0;
    CHECK("zeros", zeros);
    memset(first, 5, 8 * 4096);
    CHECK_TRUE("shrink", break_at(first + 4096) == first + 4096);
    CHECK_CHILD("gone", first[4 * 4096] = 1);
    CHECK("kept", first[4095]);
    CHECK_TRUE("odd", break_at(first + 5000) == first + 5000);
    CHECK("zero-again", first[4096]);
    CHECK_TRUE("below-start-refused", break_at((char *)4096) == first + 5000);
    CHECK_TRUE("absurd-refused", break_at((char *)0x7fffffffffff) == first + 5000);
    // Not through another mapping.
    char *wall = mmap(first + 64 * 4096, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    REQUIRE(wall != MAP_FAILED);
    CHECK_TRUE("stops-at-mapping", break_at(first + 128 * 4096) == first + 5000);
    CHECK_TRUE("up-to-it-is-fine", break_at(first + 32 * 4096) == first + 32 * 4096);
    struct rlimit limit = { 4096, 4096 };
    CHECK_CHILD("data-limit", REQUIRE(setrlimit(RLIMIT_DATA, &limit) == 0); CHECK_TRUE("refused", break_at(first + 40 * 4096) == first + 32 * 4096));
    CHECK_CHILD("inherited", _exit(break_at(0) == first + 32 * 4096 ? 5 : 6));
    // malloc of much and little.
    char *blocks[100];
    for (int i = 0; i < 100; i++) {
        blocks[i] = malloc(100 + i * 1000);
        REQUIRE(blocks[i]);
        memset(blocks[i], i, 100 + i * 1000);
    }
    int right = 0;
    for (int i = 0; i < 100; i++) {
        right += blocks[i][99 + i * 1000] == i;
        free(blocks[i]);
    }
    CHECK("malloc", right);
    return 0;
}
