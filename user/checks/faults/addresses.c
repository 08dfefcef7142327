// Memory faults: signal, code and address.
#include "../check.h"
#include <setjmp.h>
#include <sys/mman.h>

static sigjmp_buf back;
static siginfo_t last;

static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    last = *info;
    siglongjmp(back, number);
}

// Prints which signal an access raises, its code and where its address lies relative to `base`.
#define FAULT(name, base, access)                                                                     \
    do {                                                                                              \
        if (sigsetjmp(back, 1) == 0) {                                                                \
            access;                                                                                   \
            check_line("%s: no fault\n", name);                                                       \
        } else                                                                                        \
            check_line("%s: %s code %d at %+ld\n", name, check_signal_name(last.si_signo), last.si_code, \
                       (long)((char *)last.si_addr - (char *)(base)));                                \
    } while (0)

int main(void)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    volatile char *null = (char *)8;
    __asm__("" : "+r"(null));
    FAULT("read-null", 0, (void)*null);
    FAULT("write-null", 0, *null = 1);
    volatile char *page = mmap(NULL, 4 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED);
    FAULT("read-allowed", page, (void)page[100]);
    FAULT("write-read-only", page, page[100] = 1);
    FAULT("execute-not-allowed", page, ((void (*)(void))page)());
    REQUIRE(mprotect((void *)page, 4096, PROT_NONE) == 0);
    FAULT("read-no-access", page, (void)page[5]);
    REQUIRE(munmap((void *)(page + 4096), 4096) == 0);
    FAULT("read-unmapped", page, (void)page[4097]);
    FAULT("after-hole-allowed", page, (void)page[8192]);
    FAULT("kernel-address", 0xffffffff80000000ul, (void)*(volatile char *)0xffffffff80000000ul);
    FAULT("non-canonical", 0, (void)*(volatile char *)0x1000000000000000ul);
    FAULT("jump-to-null", 0, ((void (*)(void))(uintptr_t)0x20)());
    check_write_file("f", "short");
    int fd = open("f", O_RDWR);
    volatile char *file = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(file != MAP_FAILED);
    FAULT("file-within", file, (void)file[0]);
    FAULT("file-rest-of-page", file, (void)file[4000]);
    FAULT("file-beyond-end", file, (void)file[4096]);
    FAULT("file-write-beyond-end", file, file[8192] = 1);
    REQUIRE(ftruncate(fd, 8192) == 0);
    FAULT("file-grown", file, (void)file[4096]);
    REQUIRE(ftruncate(fd, 0) == 0);
    FAULT("file-cut", file, (void)file[0]);
    volatile char *private = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    FAULT("private-beyond-end", private, (void)private[0]);
    // An unaligned access over the edge reports the first byte of the missing page.
    volatile char *edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(munmap((void *)(edge + 4096), 4096) == 0);
    FAULT("over-the-edge", edge, (void)*(volatile uint64_t *)(edge + 4092));
    CHECK_CHILD("default-segv", signal(SIGSEGV, SIG_DFL); *null = 1);
    CHECK_CHILD("ignored-segv-still-kills", signal(SIGSEGV, SIG_IGN); *null = 1);
    CHECK_CHILD("blocked-segv-still-kills", sigset_t all; sigfillset(&all); sigprocmask(SIG_SETMASK, &all, NULL); *null = 1);
    CHECK_CHILD("sent-segv-can-be-ignored", signal(SIGSEGV, SIG_IGN); raise(SIGSEGV); _exit(2));
    CHECK_CHILD("default-bus", signal(SIGBUS, SIG_DFL); (void)file[4096]);
    return 0;
}
