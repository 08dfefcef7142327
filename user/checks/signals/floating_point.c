// The floating-point state in a handler's frame: what is in it, and what becomes of what the handler leaves there.
#include "../check.h"
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

static enum { LOOK, CHANGE, LEGACY, NONE, BAD_CONTROL, NOT_THERE } wish;

// What Linux calls struct _fpx_sw_bytes, at 464.
struct software {
    uint32_t magic, extended_size;
    uint64_t features;
    uint32_t size;
};

static volatile unsigned magic1, magic2, behind, legacy_features, aligned;

static void handler(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    ucontext_t *machine = context;
    char *state = (char *)machine->uc_mcontext.fpregs;
    struct software *software = (struct software *)(state + 464);
    uint32_t end;
    // XMM0 is 160 bytes behind the start, MXCSR 24.
    switch (wish) {
    case LOOK:
        magic1 = software->magic;
        behind = software->extended_size - software->size;
        legacy_features = software->features & 3;
        aligned = (uintptr_t)state % 64 == 0;
        memcpy(&end, state + software->size, sizeof end);
        magic2 = end;
        break;
    case CHANGE:
        memset(state + 160, 0x77, 16);
        break;
    case LEGACY:
        memset(state + 160, 0x55, 16);
        memset(software, 0, sizeof *software);
        break;
    case NONE:
        machine->uc_mcontext.fpregs = NULL;
        break;
    case BAD_CONTROL:
        memset(state + 24, 0xff, 4);
        break;
    case NOT_THERE:
        machine->uc_mcontext.fpregs = (fpregset_t)(uintptr_t)0x1000;
        break;
    }
}

// XMM0 and XMM9 are all 0x11 and 0x99 before the signal; what they are after it.
static void interrupted(unsigned char after[32])
{
    unsigned char before[32];
    memset(before, 0x11, 16);
    memset(before + 16, 0x99, 16);
    long pid = getpid();
    __asm__ volatile("movups (%1), %%xmm0; movups 16(%1), %%xmm9\n"
                     "mov $62, %%eax; syscall\n"
                     "movups %%xmm0, (%0); movups %%xmm9, 16(%0)\n"
                     :
                     : "r"(after), "r"(before), "D"(pid), "S"((long)SIGUSR1)
                     : "rax", "rcx", "r11", "xmm0", "xmm9", "memory");
}

static int ended_by(int what)
{
    pid_t child = fork();
    if (child == 0) {
        unsigned char after[32];
        wish = what;
        interrupted(after);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    sigaction(SIGUSR1, &action, NULL);
    unsigned char after[32];
    wish = LOOK;
    interrupted(after);
    CHECK("unchanged", after[0] == 0x11 && after[15] == 0x11 && after[16] == 0x99 && after[31] == 0x99);
    CHECK("magic-1", magic1);
    CHECK("magic-2", magic2);
    CHECK("bytes-behind", behind);
    CHECK("legacy-features", legacy_features);
    CHECK("aligned", aligned);
    wish = CHANGE;
    interrupted(after);
    CHECK("changed", after[0] == 0x77 && after[15] == 0x77 && after[16] == 0x99);
    wish = LEGACY;
    interrupted(after);
    CHECK("legacy-changed", after[0] == 0x55 && after[15] == 0x55 && after[16] == 0x99);
    // No state at all: as in a new program.
    unsigned control = 0x1f80 | 0x6000;
    wish = NONE;
    __asm__ volatile("ldmxcsr %0" ::"m"(control));
    interrupted(after);
    __asm__ volatile("stmxcsr %0" : "=m"(control));
    CHECK("reset-control", control);
    CHECK("reset-vectors", after[0] == 0 && after[31] == 0);
    CHECK("bad-control-word", ended_by(BAD_CONTROL));
    CHECK("not-there", ended_by(NOT_THERE));
    // The frame goes to memory that was never touched, and comes from there.
    stack_t stack = { .ss_size = 1 << 16 };
    stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&stack, NULL);
    action.sa_flags |= SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    wish = CHANGE;
    interrupted(after);
    CHECK("new-stack", after[0] == 0x77 && after[16] == 0x99);
    return 0;
}
