// sigaltstack: where a handler runs, and surviving a stack overflow.
#include "../check.h"
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

static char memory[65536];
static volatile int inside, flags_inside;
static sigjmp_buf back;

static int on_alternate(const void *address)
{
    return (const char *)address >= memory && (const char *)address < memory + sizeof memory;
}

static void note(int number)
{
    char local;
    stack_t now;
    inside = on_alternate(&local) + (number == 0);
    sigaltstack(NULL, &now);
    flags_inside = now.ss_flags;
}

static void escape(int number)
{
    char local;
    inside = on_alternate(&local);
    siglongjmp(back, number);
}

static int dive(int depth)
{
    volatile char room[4096];
    if (depth == 1 << 30)
        return 0;
    room[0] = (char)depth;
    return dive(depth + 1) + room[0];
}

int main(void)
{
    stack_t stack = { .ss_sp = memory, .ss_size = sizeof memory }, old;
    CHECK("none-at-first", sigaltstack(NULL, &old) == 0 ? old.ss_flags : -1);
    CHECK("set", sigaltstack(&stack, NULL));
    CHECK("read-back", sigaltstack(NULL, &old) == 0 && old.ss_sp == memory && old.ss_size == sizeof memory);
    CHECK("flags", old.ss_flags);
    struct sigaction action = { .sa_handler = note };
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    CHECK("without-flag", inside);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    CHECK("with-flag", inside);
    CHECK("says-on-stack", flags_inside);
    stack.ss_size = 100;
    CHECK("too-small", sigaltstack(&stack, NULL));
    stack.ss_size = sizeof memory;
    stack.ss_flags = 99;
    CHECK("bad-flags", sigaltstack(&stack, NULL));
    // Overflow of the main stack is survived on the alternate one.
    struct rlimit limit = { 256 * 1024, 256 * 1024 };
    CHECK_CHILD("overflow", setrlimit(RLIMIT_STACK, &limit); struct sigaction fault = { .sa_handler = escape, .sa_flags = SA_ONSTACK };
                sigaction(SIGSEGV, &fault, NULL); int number = sigsetjmp(back, 1); if (number) _exit(inside * 100 + number); dive(0));
    CHECK_CHILD("overflow-without-stack", stack_t off = { .ss_flags = SS_DISABLE }; setrlimit(RLIMIT_STACK, &limit);
                REQUIRE(sigaltstack(&off, NULL) == 0); struct sigaction fault = { .sa_handler = escape, .sa_flags = SA_ONSTACK };
                sigaction(SIGSEGV, &fault, NULL); dive(0));
    stack = (stack_t){ .ss_flags = SS_DISABLE };
    CHECK("disable", sigaltstack(&stack, NULL));
    CHECK("disabled", sigaltstack(NULL, &old) == 0 ? old.ss_flags : -1);
    raise(SIGUSR1);
    CHECK("back-on-main", inside);
    return 0;
}
