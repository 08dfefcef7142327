// The processor's state that belongs to a process: segment bases, vector registers across switches, the vDSO.
#include "../check.h"
#include <sys/auxv.h>
#include <sys/time.h>

#define SET_GS 0x1001
#define SET_FS 0x1002
#define GET_FS 0x1003
#define GET_GS 0x1004

int main(void)
{
    unsigned long fs = 0, gs = 1, value = 0x1234567;
    CHECK("get-fs", syscall(SYS_arch_prctl, GET_FS, &fs) == 0 && fs != 0);
    CHECK("get-gs", syscall(SYS_arch_prctl, GET_GS, &gs) == 0 ? (long)gs : -1);
    CHECK("set-gs", syscall(SYS_arch_prctl, SET_GS, &value));
    unsigned long through;
    __asm__ volatile("mov %%gs:0, %0" : "=r"(through));
    CHECK("through-gs", through == value);
    CHECK_CHILD("gs-in-child", __asm__ volatile("mov %%gs:0, %0" : "=r"(through)); _exit(through == value ? 4 : 5));
    check_sleep_ms(5);
    __asm__ volatile("mov %%gs:0, %0" : "=r"(through));
    CHECK("gs-after-switch", through == value);
    CHECK("set-fs-non-canonical", syscall(SYS_arch_prctl, SET_FS, 0x8000000000000000ul));
    CHECK("unknown", syscall(SYS_arch_prctl, 0x9999, 0));
    // Two processes keep different vector registers while they share the processor.
    pid_t child = check_fork();
    uint64_t mine[2] = { child ? 0x1111 : 0x2222, child ? 0x3333 : 0x4444 }, now[2];
    __asm__ volatile("movups %0, %%xmm11" ::"m"(mine) : "xmm11");
    int wrong = 0;
    for (int i = 0; i < 200; i++) {
        __asm__ volatile("movups %1, %%xmm11\n mov $24, %%eax\n syscall\n movups %%xmm11, %0" : "=m"(now) : "m"(mine) : "rax", "rcx", "r11", "memory", "xmm11");
        wrong += memcmp(mine, now, 16) != 0;
    }
    if (child == 0)
        _exit(wrong);
    CHECK_STATUS("vectors-of-child", check_wait(child));
    CHECK("vectors-of-parent", wrong);
    // The x87 state is per process too.
    double half = 0.5, back = 0;
    __asm__ volatile("fldl %0" ::"m"(half));
    CHECK_CHILD("x87-in-child", double other = 0; __asm__ volatile("fstpl %0" : "=m"(other)); _exit(other == 0.5 ? 4 : 5));
    __asm__ volatile("fstpl %0" : "=m"(back));
    CHECK("x87-in-parent", back == 0.5);
    // System calls keep every register but rax, rcx and r11.
    long kept;
    __asm__ volatile("mov $11, %%rdi; mov $12, %%rsi; mov $13, %%rdx; mov $14, %%r10; mov $15, %%r8; mov $16, %%r9\n"
                     "mov $17, %%rbx; mov $18, %%r12; mov $19, %%r13; mov $20, %%r14; mov $21, %%r15; mov $39, %%eax; syscall\n"
                     "lea (%%rdi, %%rsi), %%rax; add %%rdx, %%rax; add %%r10, %%rax; add %%r8, %%rax; add %%r9, %%rax; add %%rbx, %%rax\n"
                     "add %%r12, %%rax; add %%r13, %%rax; add %%r14, %%rax; add %%r15, %%rax"
                     : "=a"(kept)
                     :
                     : "rdi", "rsi", "rdx", "r10", "r8", "r9", "rbx", "rcx", "r11", "r12", "r13", "r14", "r15", "memory");
    CHECK("registers-kept", kept);
    // A preempted computation is not disturbed.
    struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
    signal(SIGALRM, SIG_IGN);
    setitimer(ITIMER_REAL, &timer, NULL);
    double sum = 0;
    for (int i = 1; i <= 3000000; i++)
        sum += 1.0 / i;
    check_line("harmonic: %.9f\n", sum);
    timer = (struct itimerval){ 0 };
    setitimer(ITIMER_REAL, &timer, NULL);
    return 0;
}
