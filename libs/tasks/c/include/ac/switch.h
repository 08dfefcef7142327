/* Switching between tasks, in the caller's own code: a `ret` in a frame that was entered on another stack is mispredicted, which
 * costs several times the switch. See `libs/tasks/src/arch/x86_64/context.rs`, which this agrees with.
 *
 * Where a task goes on is four words in its awe_t, so nothing is written below the caller's stack pointer, where a leaf function may
 * have its variables (the red zone). All registers but those four are given up. mxcsr and the x87 control word are not switched.
 * Five bytes before each resume address stands what a task does that is to end by force: C cannot unwind, so it does nothing
 * there, goes on, and finds that THCShouldStop() is true. */
#ifndef AC_SWITCH_H
#define AC_SWITCH_H

#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AC_INLINE_ static inline __attribute__((always_inline, unused))

#ifdef __AVX512F__
#define AC_CLOBBER_512_ \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", \
        "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define AC_CLOBBER_512_
#endif
#define AC_CLOBBER_VECTORS_ \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
        "xmm14", "xmm15" AC_CLOBBER_512_

/* Where a task goes on: with indirect-branch tracking it must begin with this. */
#if defined(__CET__) && (__CET__ & 1)
#define AC_LAND_ "endbr64\n\t"
#else
#define AC_LAND_
#endif

#ifdef __GCC_HAVE_DWARF2_CFI_ASM
/* A debugger that comes from the other stack must not go on with this frame, which is not where it believes. */
#define AC_CALL_BEGINS_ ".cfi_remember_state\n\t.cfi_undefined rip\n\t"
#define AC_CALL_ENDS_ ".cfi_restore_state\n\t"
#else
#define AC_CALL_BEGINS_
#define AC_CALL_ENDS_
#endif

#if defined(__SANITIZE_ADDRESS__)
#define AC_ASAN_
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AC_ASAN_
#endif
#endif

/* The running task ends without leaving its frames. AddressSanitizer, which guards them, would go on to do so whoever has the stack next. */
AC_INLINE_ void ac_forget_frames_(void)
{
#ifdef AC_ASAN_
    extern void __asan_unpoison_memory_region(void const volatile *start, size_t length);
    char *lowest = (char *)__builtin_frame_address(0);
    char *top = (char *)ac_runtime_()->current->stack_top;
    /* The first task of a thread has the thread's stack. */
    if (top)
        __asan_unpoison_memory_region(lowest, (size_t)(top - lowest));
#endif
}

/* Never returns: the running task, which is detached, has ended. */
void ac_end_detached_(void);

/* Leaves the stack of `from`, which goes on here when somebody switches to it, and goes on at `to`. Both may be the same. */
AC_INLINE_ void ac_exchange_(awe_t *from, awe_t *to)
{
    __asm__ volatile("leaq 2f(%%rip), %%rax\n\t"
                     "movq %%rax, 8(%%rdi)\n\t"
                     "movq %%rsp, (%%rdi)\n\t"
                     "movq %%rbx, 16(%%rdi)\n\t"
                     "movq %%rbp, 24(%%rdi)\n\t"
                     "movq (%%rsi), %%rsp\n\t"
                     "movq 16(%%rsi), %%rbx\n\t"
                     "movq 24(%%rsi), %%rbp\n\t"
                     "jmpq *8(%%rsi)\n\t"
                     ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
                     "2:\n\t" AC_LAND_
                     : "+D"(from), "+S"(to)
                     :
                     : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", AC_CLOBBER_VECTORS_, "cc",
                       "memory");
}

/* A call on the stack of a new task. In: rcx = the caller, rbx = the task, rdx = its stack's top; and what the callee wants in rdi and
 * r10. Out: rax = 0 if the call returned; rbx = the task. A task that has been detached meanwhile does not return but ends. */
#define AC_CALL_ON_(target) \
    "leaq 2f(%%rip), %%rax\n\t" \
    "movq %%rax, 8(%%rcx)\n\t" \
    "movq %%rsp, (%%rcx)\n\t" \
    "movq %%rbx, 16(%%rcx)\n\t" \
    "movq %%rbp, 24(%%rcx)\n\t" \
    "movq %%rsp, %%r15\n\t" \
    "movq %%rdx, %%rsp\n\t" AC_CALL_BEGINS_ "call " target "\n\t" \
    "cmpq $0, 32(%%rbx)\n\t" \
    "je 3f\n\t" AC_CALL_ENDS_ "movq %%r15, %%rsp\n\t" \
    "xorl %%eax, %%eax\n\t" \
    "jmp 2f\n" \
    "3:\n\t" \
    "call ac_end_detached_@PLT\n\t" \
    ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n" \
    "2:\n\t" AC_LAND_
#define AC_CALL_CLOBBERS_ \
    "r8", "r9", "r11", "r12", "r13", "r14", "r15", AC_CLOBBER_VECTORS_, "cc", "memory"

/* Calls function(argument) on the stack of `child`; says whether it returned. */
AC_INLINE_ int ac_call_on_(awe_t *me, awe_t *child, void (*function)(void *), void *argument)
{
    uintptr_t outcome;
    uintptr_t top = child->stack_top;
    __asm__ volatile(AC_CALL_ON_("*%%rsi")
                     : "=&a"(outcome), "+b"(child), "+c"(me), "+d"(top), "+D"(argument), "+S"(function)
                     :
                     : "r10", AC_CALL_CLOBBERS_);
    return outcome == 0;
}

#ifdef __cplusplus
}
#endif
#endif
