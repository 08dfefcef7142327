// Memory and registers of a tracee that stands.
#include "tracee.h"
#include <sys/mman.h>
#include <sys/prctl.h>

#define ARCH_SET_GS 0x1001
#define ARCH_GET_FS 0x1003

static volatile long word = 0x1122334455667788;
static const volatile long constant = 42;
static volatile int result;

__attribute__((noinline)) static int function(void)
{
    __asm__ volatile("");
    return 5;
}

static void words(void)
{
    pid_t pid;
    long value = 0;
    TRACED_CHILD(pid, _exit((word == 99) + 2 * (constant == 43) + 4 * (function() == 5)));
    CHECK("peek", trace(PTRACE_PEEKDATA, pid, (long)&word, (long)&value));
    CHECK_TRUE("word", value == 0x1122334455667788);
    CHECK("peek-unaligned", trace(PTRACE_PEEKDATA, pid, (long)&word + 3, (long)&value));
    CHECK("unaligned", value >> 56 == 0);
    CHECK("peek-text", trace(PTRACE_PEEKTEXT, pid, (long)function, (long)&value));
    CHECK("peek-nothing", trace(PTRACE_PEEKDATA, pid, 16, (long)&value));
    CHECK("peek-nowhere", trace(PTRACE_PEEKDATA, pid, (long)&word, 16));
    CHECK("poke", trace(PTRACE_POKEDATA, pid, (long)&word, 99));
    CHECK("poke-constant", trace(PTRACE_POKEDATA, pid, (long)&constant, 43));
    CHECK("poke-text", trace(PTRACE_POKETEXT, pid, (long)function, value));
    CHECK("poke-nothing", trace(PTRACE_POKEDATA, pid, 16, 1));
    CHECK_TRUE("own-is-as-it-was", word == 0x1122334455667788 && constant == 42);
    CHECK("goes-on", trace(PTRACE_CONT, pid, 0, 0));
    next_stop("what-it-saw", pid);
}

static void shared(void)
{
    pid_t pid;
    long value = 0;
    volatile long *both = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TRACED_CHILD(pid, mprotect((void *)both, 4096, PROT_READ); raise(SIGSTOP); _exit(0));
    CHECK("poke-shared", trace(PTRACE_POKEDATA, pid, (long)both, 7));
    CHECK("seen", *both);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("protected", pid);
    CHECK("poke-what-is-read-only-and-shared", trace(PTRACE_POKEDATA, pid, (long)both, 8));
    CHECK("peek-it", trace(PTRACE_PEEKDATA, pid, (long)both, (long)&value));
    CHECK("its-value", value);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("ended", pid);
}

static void by_file(void)
{
    pid_t pid;
    char path[64];
    long value = 0;
    TRACED_CHILD(pid, _exit(constant == 50 ? 1 : 2));
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDWR);
    CHECK_TRUE("open-mem", fd >= 0);
    CHECK("read-mem", pread(fd, &value, sizeof value, (off_t)&constant));
    CHECK("value", value);
    value = 50;
    CHECK("write-read-only-mem", pwrite(fd, &value, sizeof value, (off_t)&constant));
    close(fd);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("what-it-saw", pid);
}

static void general(void)
{
    pid_t pid;
    long value = 0;
    // The child's own result of raise(2) is 0; what the tracer writes into the register is what it sees instead.
    TRACED_CHILD(pid, pid_t own = getpid(); long seen; register long r12 __asm__("r12") = 1;
                 __asm__ volatile("syscall" : "=a"(seen), "+r"(r12) : "a"(SYS_kill), "D"(own), "S"(SIGSTOP) : "rcx", "r11", "memory");
                 _exit(r12 == 12 && seen == 5 ? 9 : 8));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("in-a-call", pid);
    struct user_regs_struct all = registers(pid);
    CHECK("r12", all.r12);
    CHECK("rax", all.rax);
    CHECK("cs", all.cs);
    CHECK("ss", all.ss);
    CHECK_TRUE("stack", all.rsp != 0 && all.rip != 0);
    CHECK("peek-user", trace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, r12), (long)&value));
    CHECK("is-r12", value);
    CHECK_TRUE("is-rip", trace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rip), (long)&value) == 0 && value == (long)all.rip);
    CHECK("peek-unaligned", trace(PTRACE_PEEKUSER, pid, 3, (long)&value));
    CHECK("peek-behind", trace(PTRACE_PEEKUSER, pid, sizeof(struct user), (long)&value));
    CHECK("peek-last", trace(PTRACE_PEEKUSER, pid, sizeof(struct user) - 8, (long)&value));
    CHECK("last", value);
    CHECK("poke-unaligned", trace(PTRACE_POKEUSER, pid, 3, 1));
    CHECK("poke-behind", trace(PTRACE_POKEUSER, pid, sizeof(struct user), 1));
    CHECK("poke-what-is-no-register", trace(PTRACE_POKEUSER, pid, offsetof(struct user, u_tsize), 1));
    CHECK("poke-user", trace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, r12), 12));
    all = registers(pid);
    CHECK("r12-now", all.r12);
    all.rax = 5;
    CHECK("set", trace(PTRACE_SETREGS, pid, 0, (long)&all));
    all.fs_base = 1ul << 63;
    CHECK("set-bad-base", trace(PTRACE_SETREGS, pid, 0, (long)&all));
    CHECK("set-from-nowhere", trace(PTRACE_SETREGS, pid, 0, 16));
    CHECK("get-to-nowhere", trace(PTRACE_GETREGS, pid, 0, 16));
    all = registers(pid);
    CHECK("rax-now", all.rax);
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("what-it-saw", pid);
}

static void sets(void)
{
    pid_t pid;
    static struct user_regs_struct all;
    static struct user_fpregs_struct floats;
    static char state[16384];
    struct iovec vector = { &all, sizeof all + 64 };
    TRACED_CHILD(pid, double kept = 1.5; double seen; __asm__ volatile("movsd %2, %%xmm7\nsyscall\nmovsd %%xmm7, %0"
                 : "=m"(seen), "+a"((long){SYS_kill}) : "m"(kept), "D"((long)getpid()), "S"((long)SIGSTOP) : "rcx", "r11", "xmm7", "memory");
                 _exit(seen == 2.5 ? 3 : seen == 1.5 ? 4 : 5));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("with-floats", pid);
    CHECK("get-general", trace(PTRACE_GETREGSET, pid, NT_PRSTATUS, (long)&vector));
    CHECK_TRUE("its-length", vector.iov_len == sizeof all);
    struct user_regs_struct same = registers(pid);
    CHECK_TRUE("the-same", memcmp(&same, &all, sizeof all) == 0);
    vector.iov_len = 16;
    CHECK("get-some", trace(PTRACE_GETREGSET, pid, NT_PRSTATUS, (long)&vector));
    CHECK("their-length", vector.iov_len);
    vector.iov_len = 13;
    CHECK("get-odd", trace(PTRACE_GETREGSET, pid, NT_PRSTATUS, (long)&vector));
    CHECK("get-what-is-none", trace(PTRACE_GETREGSET, pid, 77, (long)&vector));
    vector = (struct iovec){ &all, 16 };
    CHECK("set-some", trace(PTRACE_SETREGSET, pid, NT_PRSTATUS, (long)&vector));
    CHECK("get-floats", trace(PTRACE_GETFPREGS, pid, 0, (long)&floats));
    double seven;
    memcpy(&seven, (char *)floats.xmm_space + 7 * 16, sizeof seven);
    CHECK_TRUE("xmm7", seven == 1.5);
    CHECK("control-word", floats.cwd);
    vector = (struct iovec){ state, sizeof state };
    CHECK("get-extended", trace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, (long)&vector));
    CHECK_TRUE("has-xmm7", memcmp(state + 160 + 7 * 16, &seven, sizeof seven) == 0);
    CHECK_TRUE("says-what-there-is", (state[464] & 3) == 3 && vector.iov_len >= 576);
    CHECK("set-extended", trace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, (long)&vector));
    vector.iov_len = 64;
    CHECK_TRUE("set-a-part", trace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, (long)&vector) == -1);
    seven = 2.5;
    memcpy((char *)floats.xmm_space + 7 * 16, &seven, sizeof seven);
    CHECK("set-floats", trace(PTRACE_SETFPREGS, pid, 0, (long)&floats));
    floats.mxcsr = ~0u;
    CHECK("set-bad-floats", trace(PTRACE_SETFPREGS, pid, 0, (long)&floats));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("what-it-saw", pid);
}

static void segments(void)
{
    pid_t pid;
    unsigned long base = 0;
    TRACED_CHILD(pid, _exit(0));
    CHECK("get-fs", trace(PTRACE_ARCH_PRCTL, pid, (long)&base, ARCH_GET_FS));
    CHECK_TRUE("is-fs", base == registers(pid).fs_base && base != 0);
    CHECK("set-gs", trace(PTRACE_ARCH_PRCTL, pid, 0x1000, ARCH_SET_GS));
    CHECK("gs", registers(pid).gs_base);
    CHECK("bad", trace(PTRACE_ARCH_PRCTL, pid, 0, 0x77));
    trace(PTRACE_CONT, pid, 0, 0);
    next_stop("ended", pid);
}

int main(void)
{
    (void)result;
    words();
    shared();
    by_file();
    general();
    sets();
    segments();
}
