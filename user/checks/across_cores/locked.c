// What is mapped while mlockall(2) or munlockall(2) runs is locked, or not, as what is mapped before and after it: nothing slips through in between.
#include "together.h"

#include <errno.h>
#include <sys/mman.h>

#define PAGES 8

static char *pages[PAGES];
static int locked, free_again, locks;

static void before(void)
{
    REQUIRE((locks ? munlockall() : mlockall(MCL_CURRENT | MCL_FUTURE)) == 0);
}

static void change(void)
{
    REQUIRE((locks ? mlockall(MCL_CURRENT | MCL_FUTURE) : munlockall()) == 0);
}

static void map(void)
{
    for (int i = 0; i < PAGES; i++)
        pages[i] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void see(void)
{
    for (int i = 0; i < PAGES; i++) {
        REQUIRE(pages[i] != MAP_FAILED);
        // What is locked cannot be given away.
        int is_locked = madvise(pages[i], 4096, MADV_DONTNEED) != 0 && errno == EINVAL;
        locked += locks && is_locked;
        free_again += !locks && !is_locked;
        munmap(pages[i], 4096);
    }
}

int main(void)
{
    for (locks = 0; locks < 2; locks++)
        together(500, before, change, map, see);
    CHECK("locked", locked);
    CHECK("free-again", free_again);
    return 0;
}
