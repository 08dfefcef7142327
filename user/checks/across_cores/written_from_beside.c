// What process_vm_writev(2) has written stays written, although the process forks and writes to the same page at that moment.
#include "together.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define PARTS 16
#define PART 256

static char *page;
static char from[PART], last[PARTS];
static int refused, lost, rounds;
static atomic_int has_written;
static pid_t child;

static void before(void)
{
    has_written = 0;
}

// One part after the other, all but the first, as long as the other does not say that it is done.
static void write_parts(void)
{
    for (int part = 1; !has_written; part = part % (PARTS - 1) + 1) {
        memset(from, ++last[part], PART);
        struct iovec here = { from, PART }, there = { page + part * PART, PART };
        refused += syscall(SYS_process_vm_writev, getpid(), &here, 1, &there, 1, 0) != PART;
    }
}

static void fork_and_write(void)
{
    child = fork();
    if (child == 0)
        _exit(0);
    REQUIRE(child > 0);
    page[0]++;
    has_written = 1;
}

static void see(void)
{
    for (int part = 1; part < PARTS; part++)
        for (int i = 0; i < PART; i++)
            if (page[part * PART + i] != last[part]) {
                lost++;
                memset(page + part * PART, last[part], PART);
            }
    REQUIRE(check_wait(child) == 0);
    rounds++;
}

int main(void)
{
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED);
    together(600, before, fork_and_write, write_parts, see);
    CHECK("rounds", rounds);
    CHECK("refused", refused);
    CHECK("lost", lost);
    return 0;
}
