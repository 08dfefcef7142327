// Threads without the C library's: a stack of a page, no thread-local memory. What they run must not touch `errno`. For programs with `_GNU_SOURCE`.
#pragma once
#include "bench.h"
#include <sched.h>

// Starts a thread on the page below `stack` + 4096; 0 is written to `*tid`, and a futex woken there, when it has ended. Gives -errno where the kernel
// refuses it.
static inline long spawn(void (*run)(void), char *stack, int *tid)
{
    long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    void **top = (void **)(stack + 4096) - 2;
    *top = (void *)run;
    long result;
    register long child_tid __asm__("r10") = (long)tid;
    __asm__ volatile("syscall\n"
                     "test %%rax, %%rax\n"
                     "jnz 1f\n"
                     "pop %%rax\n"
                     "call *%%rax\n"
                     "xor %%edi, %%edi\n"
                     "mov $60, %%eax\n"
                     "syscall\n"
                     "1:"
                     : "=a"(result)
                     : "a"(SYS_clone), "D"(flags), "S"(top), "d"(tid), "r"(child_tid)
                     : "rcx", "r11", "memory");
    return result;
}
