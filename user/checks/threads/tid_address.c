// set_tid_address: the word that is cleared, and whose waiter is woken, when a thread ends.
#include "../check.h"

#include <sched.h>
#include <sys/mman.h>

static char stack[65536] __attribute__((aligned(16)));
#define FUTEX_WAIT 0
static volatile int *word;

static int set_and_end(void *argument)
{
    long got = syscall(SYS_set_tid_address, argument);
    _exit(got == getpid() ? 0 : 1);
}

// Runs a process that shares the memory and sets the address, and gives how it ended.
static int run(void *argument)
{
    pid_t pid = clone(set_and_end, stack + sizeof stack, CLONE_VM | SIGCHLD, argument);
    REQUIRE(pid > 0);
    return check_wait(pid);
}

int main(void)
{
    word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(word != MAP_FAILED);
    CHECK_TRUE("gives-number", syscall(SYS_set_tid_address, NULL) == getpid());
    CHECK_TRUE("takes-anything", syscall(SYS_set_tid_address, (void *)0xffff800000000000) == getpid());
    REQUIRE(syscall(SYS_set_tid_address, NULL) == getpid());
    // Whose memory nobody else shares: nothing is cleared.
    *word = 7;
    CHECK_CHILD("alone", syscall(SYS_set_tid_address, word));
    CHECK("alone-word", *word);
    CHECK_STATUS("sharing", run((void *)word));
    CHECK("sharing-word", *word);
    *word = 7;
    pid_t pid = clone(set_and_end, stack + sizeof stack, CLONE_VM | SIGCHLD, (void *)word);
    REQUIRE(pid > 0);
    while (*word == 7)
        syscall(SYS_futex, word, FUTEX_WAIT, 7, NULL, NULL, 0);
    CHECK("woken", *word);
    CHECK_STATUS("waited-for", check_wait(pid));
    *word = 7;
    CHECK_STATUS("unmapped", run(BAD_POINTER));
    CHECK_STATUS("kernel", run((void *)0xffff800000000000));
    CHECK_STATUS("non-canonical", run((void *)0x8000000000000000));
    CHECK_STATUS("unaligned", run((char *)word + 1));
    CHECK("unaligned-word", *word);
    return 0;
}
