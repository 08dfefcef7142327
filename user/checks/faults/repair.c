// A handler that mends the mapping and lets the access go on, as garbage collectors do.
#include "../check.h"
#include <sys/mman.h>

static char *base;
static volatile int faults;

static void mend(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    faults++;
    char *page = (char *)((uintptr_t)info->si_addr & ~4095ul);
    if (page < base || page >= base + 64 * 4096 || mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0)
        _exit(50);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = mend, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &action, NULL);
    base = mmap(NULL, 64 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(base != MAP_FAILED);
    for (int i = 0; i < 64; i++)
        base[i * 4096 + i] = (char)i;
    CHECK("faults", faults);
    int right = 0;
    for (int i = 0; i < 64; i++)
        right += base[i * 4096 + i] == i;
    CHECK("values", right);
    CHECK("no-more-faults", faults);
    REQUIRE(mprotect(base, 64 * 4096, PROT_READ) == 0);
    for (int i = 0; i < 64; i += 2)
        base[i * 4096] = 'w';
    CHECK("write-barrier-faults", faults);
    // A kernel access to the protected page does not call the handler: it fails.
    REQUIRE(mprotect(base, 4096, PROT_NONE) == 0);
    int fd = open("/dev/zero", O_RDONLY);
    CHECK("kernel-access", read(fd, base, 10));
    CHECK("still", faults);
    CHECK_CHILD("fault-in-handler", action.sa_sigaction = (void (*)(int, siginfo_t *, void *))(uintptr_t)0x10;
                sigaction(SIGSEGV, &action, NULL); base[0] = 1);
    return 0;
}
