// Where the parts of a program are is left to chance, unless personality(2) says that it is not to be.
#include "../check.h"
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/auxv.h>

enum { STACK, MAPPING, HEAP, STRINGS, PARTS };
static const char *const names[PARTS] = { "stack", "mapping", "heap", "strings" };

// What a program that was executed anew finds.
static void tell(char **argv)
{
    int here;
    uintptr_t parts[PARTS];
    parts[STACK] = (uintptr_t)&here;
    parts[MAPPING] = (uintptr_t)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    parts[HEAP] = (uintptr_t)syscall(SYS_brk, 0);
    parts[STRINGS] = (uintptr_t)argv[1];
    _exit(write(1, parts, sizeof parts) == sizeof parts ? 0 : 1);
}

static void ask(unsigned persona, uintptr_t parts[PARTS])
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t pid = check_fork();
    if (pid == 0) {
        REQUIRE(dup2(ends[1], 1) == 1 && personality(persona) != -1);
        execl("/proc/self/exe", "placement", "tell", NULL);
        _exit(99);
    }
    close(ends[1]);
    REQUIRE(read(ends[0], parts, PARTS * sizeof *parts) == PARTS * sizeof *parts);
    close(ends[0]);
    check_wait(pid);
}

#define TIMES 4

static void compare(const char *what, unsigned persona)
{
    uintptr_t parts[TIMES][PARTS];
    for (int time = 0; time < TIMES; time++)
        ask(persona, parts[time]);
    for (int part = 0; part < PARTS; part++) {
        int same = 1;
        for (int time = 1; time < TIMES; time++)
            same = same && parts[time][part] == parts[0][part];
        check_line("%s %s: %s\n", what, names[part], same ? "same" : "different");
    }
    int aligned = 1, ordered = 1;
    for (int time = 0; time < TIMES; time++) {
        aligned = aligned && parts[time][MAPPING] % 4096 == 0;
        ordered = ordered && parts[time][HEAP] < parts[time][MAPPING] && parts[time][MAPPING] < parts[time][STACK];
    }
    CHECK_TRUE("aligned", aligned);
    CHECK_TRUE("ordered", ordered);
}

// The stack still grows as far as its limit, wherever it begins.
static long deep(long left)
{
    volatile char page[4096];
    page[0] = (char)left;
    return left == 0 ? 0 : deep(left - 1) + page[0] * 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        tell(argv);
    compare("chance", 0);
    compare("fixed", ADDR_NO_RANDOMIZE);
    CHECK_CHILD("deep-stack", CHECK("pages", deep(1800)));
    CHECK_CHILD("personality-stays", REQUIRE(personality(ADDR_NO_RANDOMIZE) != -1); CHECK("asked", personality(0xffffffff)));
    return 0;
}
