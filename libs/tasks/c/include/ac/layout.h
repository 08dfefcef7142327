/* What tasks, blocks and run-times look like in memory: the mirror of `libs/tasks/src/rt/layout.rs`, whose assertions are the same.
 *
 * Nothing here is for use by programs; the functions of ac.h inline accesses to it. All fields but those that are said to be atomic
 * belong to the thread of the run-time. */
#ifndef AC_LAYOUT_H
#define AC_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#if !defined(__x86_64__) || !defined(__GNUC__)
#error "ac.h: x86-64 with GCC or clang only"
#endif

#ifdef __cplusplus
extern "C" {
#define AC_ASSERT_(condition) static_assert(condition, #condition)
#else
#define AC_ASSERT_(condition) _Static_assert(condition, #condition)
#endif

typedef struct ac_awe awe_t;
typedef struct ac_finish ac_finish;
typedef struct ac_runtime ac_runtime;

/* The three lowest bits of awe_t.life: the task runs, calls a task or is queued; or it has suspended itself. (0, 3, 4: it is none, waits
 * for the end of a block, waits for something else.) */
#define AC_ACTIVE_ ((uint64_t)1)
#define AC_PARKED_ ((uint64_t)2)
#define AC_STATE_ ((uint64_t)7)
/* ac_finish.flags */
enum { AC_CANCEL_REQUESTED_ = 1, AC_SHIELD_ = 2, AC_LINKED_ = 4 };
/* awe_t.flags: somebody may have a reference to the task. */
enum { AC_NAMED_ = 1 };

/* Where a task goes on that does not run. */
struct ac_context {
    uintptr_t rsp, resume, rbx, rbp;
};

struct ac_awe {
    struct ac_context context;
    awe_t *parent;     /* who called it, while it is attached */
    ac_finish *home;   /* the block that it was started in, which counts it once it is detached */
    uint64_t position; /* in the run queue */
    uint64_t life;     /* atomic: which task this is, and its state */
    uintptr_t stack_top;
    ac_runtime *runtime;
    ac_finish *block; /* the innermost that it is in */
    uint32_t flags;
    uint32_t saved_under; /* the id under which it is suspended, if it was not resumed by that; else 0 */
    awe_t *next; /* in the pool */
    unsigned char rest[88];
} __attribute__((aligned(64)));

struct ac_finish {
    uintptr_t count; /* detached tasks in it */
    awe_t *waiter;
    ac_finish *parent;
    uint32_t flags;
    uint32_t reserved;
    ac_finish *first_child, *next_sibling, *previous_sibling;
    void *items;
    void *panic;
};

struct ac_id_entry {
    awe_t *saved;
    uint32_t generation; /* 16 bits */
    uint32_t next_free;
    uint64_t life; /* of the task that was saved, without a state */
};

struct ac_runtime {
    awe_t *current;
    uint64_t head, tail; /* of the run queue */
    awe_t **ring;
    uint64_t mask;
    awe_t *free;
    struct ac_id_entry *ids;
    uint32_t ids_len;
    uint32_t core;
    awe_t *remote; /* atomic: asked for by other threads */
    unsigned char remote_rest[56];
    const unsigned char *reclaim_waiting; /* atomic: some object waits for this thread to borrow nothing */
    /* More follows. */
} __attribute__((aligned(64)));

AC_ASSERT_(offsetof(struct ac_awe, context) == 0);
AC_ASSERT_(sizeof(struct ac_context) == 32);
AC_ASSERT_(offsetof(struct ac_awe, parent) == 32);
AC_ASSERT_(offsetof(struct ac_awe, home) == 40);
AC_ASSERT_(offsetof(struct ac_awe, position) == 48);
AC_ASSERT_(offsetof(struct ac_awe, life) == 56);
AC_ASSERT_(offsetof(struct ac_awe, stack_top) == 64);
AC_ASSERT_(offsetof(struct ac_awe, runtime) == 72);
AC_ASSERT_(offsetof(struct ac_awe, block) == 80);
AC_ASSERT_(offsetof(struct ac_awe, flags) == 88);
AC_ASSERT_(offsetof(struct ac_awe, saved_under) == 92);
AC_ASSERT_(offsetof(struct ac_awe, next) == 96);
AC_ASSERT_(sizeof(struct ac_awe) == 192);
AC_ASSERT_(offsetof(struct ac_finish, count) == 0);
AC_ASSERT_(offsetof(struct ac_finish, waiter) == 8);
AC_ASSERT_(offsetof(struct ac_finish, parent) == 16);
AC_ASSERT_(offsetof(struct ac_finish, flags) == 24);
AC_ASSERT_(offsetof(struct ac_finish, first_child) == 32);
AC_ASSERT_(offsetof(struct ac_finish, next_sibling) == 40);
AC_ASSERT_(offsetof(struct ac_finish, previous_sibling) == 48);
AC_ASSERT_(offsetof(struct ac_finish, items) == 56);
AC_ASSERT_(offsetof(struct ac_finish, panic) == 64);
AC_ASSERT_(sizeof(struct ac_finish) == 72);
AC_ASSERT_(offsetof(struct ac_id_entry, saved) == 0);
AC_ASSERT_(offsetof(struct ac_id_entry, generation) == 8);
AC_ASSERT_(offsetof(struct ac_id_entry, next_free) == 12);
AC_ASSERT_(offsetof(struct ac_id_entry, life) == 16);
AC_ASSERT_(sizeof(struct ac_id_entry) == 24);
AC_ASSERT_(offsetof(struct ac_runtime, current) == 0);
AC_ASSERT_(offsetof(struct ac_runtime, head) == 8);
AC_ASSERT_(offsetof(struct ac_runtime, tail) == 16);
AC_ASSERT_(offsetof(struct ac_runtime, ring) == 24);
AC_ASSERT_(offsetof(struct ac_runtime, mask) == 32);
AC_ASSERT_(offsetof(struct ac_runtime, free) == 40);
AC_ASSERT_(offsetof(struct ac_runtime, ids) == 48);
AC_ASSERT_(offsetof(struct ac_runtime, ids_len) == 56);
AC_ASSERT_(offsetof(struct ac_runtime, core) == 60);
AC_ASSERT_(offsetof(struct ac_runtime, remote) == 64);
AC_ASSERT_(offsetof(struct ac_runtime, reclaim_waiting) == 128);

/* The calling thread's run-time; null if it has none. A thread-local variable of the initial-exec kind, read anew each time: if the
 * compiler kept its address in a register, that would come from the next task's stack after a switch, and the processor would have to
 * wait for it. */
static inline __attribute__((always_inline, unused)) ac_runtime *ac_runtime_(void)
{
    ac_runtime *own;
    __asm__ volatile("movq ebb_rt_current@GOTTPOFF(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(own));
    return own;
}

#ifdef __cplusplus
}
#endif
#endif
