// The stack grows on demand down to its limit, and is not executable.
#include "../check.h"
#include <sys/mman.h>
#include <sys/resource.h>

static int deep(int levels)
{
    volatile char room[4096];
    memset((void *)room, levels, sizeof room);
    return levels == 0 ? 0 : deep(levels - 1) + (room[17] == (char)levels);
}

static int endless(int levels)
{
    volatile char room[4096];
    if (levels == 1 << 30)
        return 0;
    room[5] = (char)levels;
    return endless(levels + 1) + room[5];
}

int main(void)
{
    CHECK("four-megabytes", deep(1000));
    struct rlimit limit = { 1 << 20, RLIM_INFINITY };
    CHECK_CHILD("overflow", REQUIRE(setrlimit(RLIMIT_STACK, &limit) == 0); endless(0));
    CHECK_CHILD("within-limit", REQUIRE(setrlimit(RLIMIT_STACK, &limit) == 0); _exit(deep(100) == 100 ? 5 : 6));
    // A large step in one go: the pages between are not touched, but below the stack pointer is the stack.
    CHECK_CHILD("large-frame", volatile char *room = __builtin_alloca(2 << 20); room[0] = 3; room[(2 << 20) - 1] = 4; _exit(room[0] + room[(2 << 20) - 1]));
    CHECK_CHILD("not-executable", static const unsigned char code[] = { 0xc3 }; unsigned char copy[16]; memcpy(copy, code, 1); ((void (*)(void))copy)());
    // A child has the same stack content.
    volatile int local = 11;
    CHECK_CHILD("child-stack", _exit(local));
    return 0;
}
