/* Asynchronous C: cooperative tasks with structured DO_FINISH / ASYNC blocks, for C and C++ on x86-64 Linux.
 *
 *     #include <ac.h>
 *
 *     static void program(void)
 *     {
 *         DO_FINISH({
 *             for (int i = 0; i < 3; i++)
 *                 ASYNC({
 *                     int mine = i;       // the loop goes on when this task first suspends
 *                     THCYield();
 *                     printf("task %d\n", mine);
 *                 });
 *             printf("all are started\n");
 *         });                             // waits for the three
 *     }
 *
 *     int main(void) { LCD_MAIN({ program(); }); }
 *
 * What suspends is inlined from here into the caller (a switch costs a few cycles); link with -lac (pkg-config: ac; CMake: ac::ac).
 *
 * Rules that Rust's borrow checker proves and C's compiler cannot:
 * - What suspends is called on a thread that has called thc_init() (or that runs Rust's `tasks::rt::run`), by a task on its own stack.
 * - A task has 64 KiB of stack (ac_config). An overflow hits a guard page and is reported with the task; a function with more than a page
 *   of variables may step over that, if it is not compiled with -fstack-clash-protection.
 * - No longjmp out of a task or a DO_FINISH block, and no change of mxcsr or the x87 control word across a suspension.
 * - Nothing that another task may free or change is relied on across a suspension; a task never changes threads, so thread-local
 *   variables and their addresses stay the same.
 * - An awe_t pointer is good until its task is resumed by it; from then on it may name another task. Ids (ids.h) are checked.
 * - Threads: THCSchedule, the giving half of sync.h (v, release, signal, advance) may be called for tasks of other threads; everything else
 *   concerns the calling thread.
 * - With -flto a large program with ASYNC needs -flto-partition=one (GCC's assembler says so otherwise, in its way: "junk .lto_priv").
 * - Code that is compiled for shadow stacks (and run with them) cannot switch stacks like this. */
#ifndef AC_H
#define AC_H

#include "ac/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a thread's run-time is to be like; zeroes mean what is usual. */
typedef struct ac_config {
    size_t stack_size_bytes;        /* without the guard page; usual: 64 KiB */
    size_t keep_stacks;             /* how many unused stacks are kept; usual: 1024 */
    void (*idle_wait)(void *);      /* called when nothing is ready, until idle_wake is called, or shorter; usual: sleeps */
    void (*idle_wake)(void *);      /* called by other threads, at any time */
    void *idle_argument;            /* for both; valid for ever */
} ac_config;

int ac_init(const ac_config *config);   /* null: as usual. 0; -EBUSY if the thread runs tasks already */
void ac_done(void);
int ac_is_running(void);                /* whether the thread runs tasks */

__attribute__((noreturn)) void ac_end_task(void); /* as if the task's function had returned */
void ac_stop_all(void);                 /* asks all tasks of the thread to stop */
int ac_should_stop(void);

int ac_dump(int descriptor);            /* one line for each task */
int ac_dump_stats(int descriptor, int clear);
size_t ac_task_count(void);             /* tasks that have not ended */
size_t ac_stack_count(void);            /* stacks, used and unused */
void ac_count_send(void);
void ac_count_receive(void);

/* Cancellation: nothing is forced. A request stays, holds for blocks inside, and is seen by operations whose names end in _x, by
 * ac_is_cancel_requested, and by items: something to be done on a request. */
typedef struct ac_cancel_item { uint64_t opaque[16]; } ac_cancel_item;
void ac_cancel(ac_finish *block);
int ac_is_cancel_requested(void);
int ac_yield_x(void);
int ac_suspend_then_x(awe_t **task, void (*publish)(void *), void *argument);
/* Enters an item in the running task's block; it stays where it is until it is removed, before the block ends. */
void ac_cancel_item_add(ac_cancel_item *item, void (*action)(void *), void *argument);
int ac_cancel_item_remove(ac_cancel_item *item);    /* 0, or 1 if the action has run; waits for one that is running */
int ac_cancel_item_ran(const ac_cancel_item *item); /* whether it was begun */

#ifdef __cplusplus
}
#include "ac/lambda.hpp"
#endif

#include "ac/sync.h"
#include "ac/thc.h"

#endif
