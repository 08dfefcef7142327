/* DO_FINISH, ASYNC and CANCEL: blocks and tasks written in place. */
#ifndef AC_BLOCKS_H
#define AC_BLOCKS_H

#include "run.h"

/* DO_FINISH(code) runs the code, then waits until everything that was started in it has ended, at any depth. Also on the way out
 * through `return`, `break` and `goto`, but not through longjmp.
 *
 * DO_FINISH_(tag, code) names the block for CANCEL(tag). Into DO_FINISH_NX(code) no request for cancellation passes from outside. */
#define DO_FINISH(...) AC_FINISH_(0, , __VA_ARGS__)
#define DO_FINISH_(tag, ...) AC_FINISH_(0, AC_TAG_(tag), __VA_ARGS__)
#define DO_FINISH_NX(...) AC_FINISH_(AC_SHIELD_, , __VA_ARGS__)
#define DO_FINISH_NX_(tag, ...) AC_FINISH_(AC_SHIELD_, AC_TAG_(tag), __VA_ARGS__)

/* Asks what is in the block to end early, and runs the cancel items in it. Within the block's code, tasks included. */
#define CANCEL(tag) ac_cancel(_fb_info_##tag)

#define AC_TAG_(tag) ac_finish *const _fb_info_##tag __attribute__((unused)) = _fb_info;
#define AC_FINISH_(flags, tag, ...) \
    do { \
        AC_BLOCK_(_fb, flags); \
        ac_finish *const _fb_info __attribute__((unused)) = AC_BLOCK_ADDRESS_(_fb); \
        tag { __VA_ARGS__ } \
        AC_BLOCK_ENDS_(_fb) \
    } while (0)

/* ASYNC(code) starts a task in the DO_FINISH block around it, lazily: it runs at once; if it suspends, what comes after ASYNC goes on.
 * The code sees the variables around it, by reference, so a task in a loop copies the loop's variable before it first suspends.
 * `return` ends the task. ASYNC_EAGER(code) puts what comes after it at the head of the queue before the task starts.
 *
 * In C++ the code is a lambda; in C with GCC it is a nested function whose address is never taken, so stacks stay non-executable. With
 * other compilers, and in strict C, there is ac_async(_fb_info, function, argument). */
#if defined(__cplusplus)

#define AC_BLOCK_(name, flags) ::ac::block name(flags)
#define AC_BLOCK_ADDRESS_(name) name.address()
#define AC_BLOCK_ENDS_(name) name.end();
#define ASYNC(...) ::ac::async(_fb_info, [&]() -> void { __VA_ARGS__ })
#define ASYNC_EAGER(...) ::ac::async_eager(_fb_info, [&]() -> void { __VA_ARGS__ })
#define ASYNC_(code, tag) ASYNC(code)

#else

#define AC_BLOCK_(name, flags) \
    ac_finish name __attribute__((cleanup(ac_finish_end))); \
    ac_finish_begin(&name, flags)
#define AC_BLOCK_ADDRESS_(name) &name
#define AC_BLOCK_ENDS_(name)

#if !defined(__clang__)
#define ASYNC(...) AC_ASYNC_(ac_begin_lazy_, __COUNTER__, __VA_ARGS__)
#define ASYNC_EAGER(...) AC_ASYNC_(ac_begin_eager_, __COUNTER__, __VA_ARGS__)
#define ASYNC_(code, tag) AC_ASYNC_(ac_begin_lazy_, tag, code)

/* The code's symbol: it must differ from all others that are linked with -flto at once. Two files of the same name that are
 * compiled in different directories need different values of AC_UNIT then. */
#ifndef AC_UNIT
#define AC_UNIT __BASE_FILE__
#endif
#define AC_TEXT_(n) AC_TEXT_OF_(n)
#define AC_TEXT_OF_(n) #n
#define AC_BODY_(n) "\"ac_async:" AC_UNIT ":" AC_TEXT_(__LINE__) ":" AC_TEXT_(n) "\""

/* The code is called by name from the asm statement, on its own stack; that needs what GCC would put into r10 for the call, the static
 * chain: where the variables around it are. _ac_chain is called just to see it. The call of _ac_body is never reached but tells the
 * compiler who needs what: that the code exists, and that it may change the variables. */
#define AC_ASYNC_(begin, n, ...) \
    do { \
        ac_finish *const _ac_block = _fb_info; \
        auto void *_ac_chain(void); \
        auto void _ac_body(void) __asm__(AC_BODY_(n)); \
        __attribute__((noipa, used, section(".text.ac_async"))) void _ac_body(void) { __VA_ARGS__ } \
        __attribute__((noipa, const)) void *_ac_chain(void) \
        { \
            register void *_ac_link __asm__("r10"); \
            __asm__ volatile("" : "=r"(_ac_link) : "m"(_ac_block)); \
            return _ac_link; \
        } \
        void *const _ac_link = _ac_chain(); \
        ac_runtime *const _ac_rt = ac_runtime_(); \
        awe_t *_ac_me = _ac_rt->current; \
        awe_t *_ac_child = begin(_ac_rt, _ac_block); \
        if (__builtin_expect(!_ac_child, 0)) { \
            ac_no_stack_(); \
            _ac_body(); \
        } \
        { \
            uintptr_t _ac_outcome, _ac_top = _ac_child->stack_top; \
            register void *_ac_r10 __asm__("r10") = _ac_link; \
            __asm__ volatile(AC_CALL_ON_(AC_BODY_(n)) \
                             : "=&a"(_ac_outcome), "+b"(_ac_child), "+c"(_ac_me), "+d"(_ac_top), "+r"(_ac_r10) \
                             : \
                             : "rdi", "rsi", AC_CALL_CLOBBERS_); \
            if (_ac_outcome == 0) \
                ac_returned_(_ac_child); \
        } \
    } while (0)
#endif
#endif
#endif
