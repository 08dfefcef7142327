/* Blocks, tasks and suspensions: the hot paths, which are inlined into the caller. Rarer cases are functions of the library, whose
 * names end in an underscore. */
#ifndef AC_RUN_H
#define AC_RUN_H

#include "switch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- the library's part --- */
awe_t *ac_refill_(void);                                  /* another task to be; null without memory */
void ac_no_stack_(void);                                  /* says so and ends the program */
void ac_retire_(awe_t *task);                             /* its names are void from here on */
void ac_take_in_(void);                                   /* what other threads ask for */
awe_t *ac_wait_for_next_(void);                           /* the next task, as soon as there is one */
void ac_close_ranks_(void);                               /* makes room in the run queue */
void ac_quiescent_(void);                                 /* frees what waited for this thread */
void ac_detach_all_(void);                                /* who called the running task goes on by itself */
void ac_wait_for_tasks_(ac_finish *block);                /* suspends until the block is empty */
void ac_unlink_(ac_finish *block);                        /* takes it out of its parent's list */
int ac_schedule_remote_(awe_t *task);                     /* asks another thread to run it */
int ac_yield_to_(awe_t *task);                            /* all cases that are not inlined */
int ac_hand_over_(awe_t *task);

/* --- the state of a task --- */
AC_INLINE_ uint64_t ac_state_(const awe_t *task)
{
    return __atomic_load_n(&task->life, __ATOMIC_RELAXED) & AC_STATE_;
}

AC_INLINE_ void ac_set_state_(awe_t *task, uint64_t state)
{
    uint64_t life = __atomic_load_n(&task->life, __ATOMIC_RELAXED);
    __atomic_store_n(&task->life, (life & ~AC_STATE_) | state, __ATOMIC_RELAXED);
}

/* The running task, which is active, parks. */
AC_INLINE_ void ac_park_(awe_t *me)
{
    uint64_t active = __atomic_load_n(&me->life, __ATOMIC_RELAXED);
    __atomic_store_n(&me->life, active + (AC_PARKED_ - AC_ACTIVE_), __ATOMIC_RELAXED);
}

/* --- the run queue --- */
AC_INLINE_ void ac_push_back_(ac_runtime *rt, awe_t *task)
{
    uint64_t tail = rt->tail;
    rt->ring[tail & rt->mask] = task;
    task->position = tail;
    rt->tail = tail + 1;
}

AC_INLINE_ void ac_push_front_(ac_runtime *rt, awe_t *task)
{
    uint64_t head = rt->head - 1;
    rt->ring[head & rt->mask] = task;
    task->position = head;
    rt->head = head;
}

AC_INLINE_ void ac_make_room_(ac_runtime *rt)
{
    if (__builtin_expect(rt->tail - rt->head > rt->mask, 0))
        ac_close_ranks_();
}

AC_INLINE_ int ac_is_queued_(ac_runtime *rt, awe_t *task)
{
    uint64_t position = task->position;
    return position >= rt->head && position < rt->tail && rt->ring[position & rt->mask] == task;
}

AC_INLINE_ void ac_remove_(ac_runtime *rt, awe_t *task)
{
    uint64_t position = task->position;
    if (position == rt->head)
        rt->head = position + 1;
    else
        rt->ring[position & rt->mask] = 0;
}

AC_INLINE_ void ac_look_at_remote_(ac_runtime *rt)
{
    if (__builtin_expect(__atomic_load_n(&rt->remote, __ATOMIC_RELAXED) != 0, 0))
        ac_take_in_();
}

/* --- what each suspension does --- */

/* The thread's run-time; its running task is about to suspend. */
AC_INLINE_ ac_runtime *ac_suspending_(void)
{
    ac_runtime *rt = ac_runtime_();
    if (__builtin_expect(__atomic_load_n(rt->reclaim_waiting, __ATOMIC_RELAXED), 0))
        ac_quiescent_();
    return rt;
}

/* If `me` is attached: detaches it, and says who called it. */
AC_INLINE_ awe_t *ac_detach_(awe_t *me)
{
    awe_t *parent = me->parent;
    if (parent) {
        me->parent = 0;
        me->home->count++;
    }
    return parent;
}

/* Who runs after `me`, which is parked already. */
AC_INLINE_ awe_t *ac_successor_(ac_runtime *rt, awe_t *me)
{
    awe_t *next = ac_detach_(me);
    if (next)
        return next;
    ac_look_at_remote_(rt);
    if (rt->head != rt->tail) {
        next = rt->ring[rt->head & rt->mask];
        rt->head++;
    }
    return __builtin_expect(next != 0, 1) ? next : ac_wait_for_next_();
}

AC_INLINE_ void ac_switch_(ac_runtime *rt, awe_t *me, awe_t *next)
{
    rt->current = next;
    ac_exchange_(me, next);
}

AC_INLINE_ awe_t *ac_name_(awe_t *task)
{
    if (!(task->flags & AC_NAMED_))
        task->flags |= AC_NAMED_;
    return task;
}

/* --- suspensions --- */

/* Lets all that is queued run first. */
AC_INLINE_ void ac_yield(void)
{
    ac_runtime *rt = ac_suspending_();
    awe_t *me = rt->current, *next;
    ac_look_at_remote_(rt);
    next = ac_detach_(me);
    if (__builtin_expect(next != 0, 0)) {
        ac_push_back_(rt, me);
        ac_make_room_(rt);
    } else {
        uint64_t head = rt->head, tail = rt->tail, mask = rt->mask;
        awe_t **ring = rt->ring;
        rt->head = head + 1;
        rt->tail = tail + 1;
        me->position = tail;
        ring[tail & mask] = me;
        next = ring[head & mask];
        if (__builtin_expect(next == 0, 0))
            next = ac_wait_for_next_();
    }
    ac_switch_(rt, me, next);
}

/* Suspends until somebody schedules the task or yields to it. `publish(argument)`, if it is not null, is called when the task, which
 * `*task` then names, is suspended, and before another one runs. */
AC_INLINE_ void ac_suspend_then(awe_t **task, void (*publish)(void *), void *argument)
{
    ac_runtime *rt = ac_suspending_();
    awe_t *me = rt->current;
    ac_park_(me);
    *task = ac_name_(me);
    if (publish)
        publish(argument);
    ac_switch_(rt, me, ac_successor_(rt, me));
}

/* Puts a suspended task at the head of its queue; a task of another thread behind all others, once that thread comes to it. 0, or -1
 * if the task is not suspended. */
AC_INLINE_ int ac_schedule(awe_t *task)
{
    ac_runtime *rt = ac_runtime_();
    if (__builtin_expect(task->runtime != rt, 0))
        return ac_schedule_remote_(task);
    if (ac_state_(task) != AC_PARKED_)
        return -1;
    ac_set_state_(task, AC_ACTIVE_);
    ac_push_front_(rt, task);
    ac_make_room_(rt);
    return 0;
}

/* The same at the end of the queue. */
AC_INLINE_ int ac_schedule_back(awe_t *task)
{
    ac_runtime *rt = ac_runtime_();
    if (__builtin_expect(task->runtime != rt, 0))
        return ac_schedule_remote_(task);
    if (ac_state_(task) != AC_PARKED_)
        return -1;
    ac_set_state_(task, AC_ACTIVE_);
    ac_push_back_(rt, task);
    ac_make_room_(rt);
    return 0;
}

/* Takes a task out of its parked state or out of the queue; says whether it was in one of them. */
AC_INLINE_ int ac_take_(ac_runtime *rt, awe_t *me, awe_t *task)
{
    if (__builtin_expect(task->runtime != rt || me->parent != 0, 0))
        return 0;
    if (ac_state_(task) == AC_PARKED_)
        ac_set_state_(task, AC_ACTIVE_);
    else if (ac_state_(task) == AC_ACTIVE_ && ac_is_queued_(rt, task))
        ac_remove_(rt, task);
    else
        return 0;
    return 1;
}

/* Switches to a task of this thread, whether it is queued or suspended itself; the running one goes to the end of the queue. A task of
 * another thread is only scheduled. 0, or -1 if the task runs, has ended, or waits for something else. */
AC_INLINE_ int ac_yield_to(awe_t *task)
{
    ac_runtime *rt = ac_suspending_();
    awe_t *me = rt->current;
    if (__builtin_expect(!ac_take_(rt, me, task), 0))
        return ac_yield_to_(task);
    ac_push_back_(rt, me);
    ac_make_room_(rt);
    ac_switch_(rt, me, task);
    return 0;
}

/* Switches to a task of this thread; the running one, which `*self` then names, is suspended. 0, or -1 as ac_yield_to. */
AC_INLINE_ int ac_hand_over(awe_t *task, awe_t **self)
{
    ac_runtime *rt = ac_suspending_();
    awe_t *me = rt->current;
    if (self)
        *self = ac_name_(me);
    if (__builtin_expect(!ac_take_(rt, me, task), 0))
        return ac_hand_over_(task);
    ac_park_(me);
    ac_switch_(rt, me, task);
    return 0;
}

/* --- blocks --- */

AC_INLINE_ void ac_finish_begin(ac_finish *block, uint32_t flags)
{
    awe_t *me = ac_runtime_()->current;
    block->count = 0;
    block->waiter = 0;
    block->parent = me->block;
    block->flags = flags;
    block->first_child = 0;
    block->items = 0;
    block->panic = 0;
    me->block = block;
}

/* Waits for all tasks of the block. */
AC_INLINE_ void ac_finish_end(ac_finish *block)
{
    if (block->count)
        ac_wait_for_tasks_(block);
    ac_runtime_()->current->block = block->parent;
    if (__builtin_expect(block->flags & AC_LINKED_, 0))
        ac_unlink_(block);
}

/* --- tasks --- */

/* The next task to be, in `block`. Null without memory. */
AC_INLINE_ awe_t *ac_new_task_(ac_runtime *rt, ac_finish *block)
{
    awe_t *child = rt->free;
    if (__builtin_expect(child != 0, 1)) {
        rt->free = child->next;
    } else {
        child = ac_refill_();
        if (!child)
            return 0;
    }
    child->home = block;
    child->block = block;
    return child;
}

/* Attached to the running task. */
AC_INLINE_ awe_t *ac_begin_lazy_(ac_runtime *rt, ac_finish *block)
{
    awe_t *child = ac_new_task_(rt, block);
    if (child) {
        child->parent = rt->current;
        rt->current = child;
    }
    return child;
}

/* Detached at once: the running task is at the head of the queue. */
AC_INLINE_ awe_t *ac_begin_eager_(ac_runtime *rt, ac_finish *block)
{
    awe_t *child = ac_new_task_(rt, block);
    if (child) {
        child->parent = 0;
        block->count++;
        if (__builtin_expect(rt->current->parent != 0, 0))
            ac_detach_all_();
        ac_push_front_(rt, rt->current);
        ac_make_room_(rt);
        rt->current = child;
    }
    return child;
}

/* The call of an attached task has returned. As a rule the link that it had in the pool is still right, and is not written: so the
 * next task to be is known early. */
AC_INLINE_ void ac_returned_(awe_t *child)
{
    ac_runtime *rt = child->runtime;
    awe_t *top = rt->free;
    rt->current = child->parent;
    if (__builtin_expect(child->flags != 0, 0))
        ac_retire_(child);
    if (child->next != top)
        child->next = top;
    rt->free = child;
}

/* Starts function(argument) as a task of the block, *lazily*: it runs at once, as a call; if it suspends before it returns, this
 * returns then, and the task goes on by itself. 0, or -1 if there is no memory for a stack. */
AC_INLINE_ int ac_try_async(ac_finish *block, void (*function)(void *), void *argument)
{
    ac_runtime *rt = ac_runtime_();
    awe_t *me = rt->current, *child = ac_begin_lazy_(rt, block);
    if (!child)
        return -1;
    if (ac_call_on_(me, child, function, argument))
        ac_returned_(child);
    return 0;
}

/* The same; a program that runs out of memory ends with a message. */
AC_INLINE_ void ac_async(ac_finish *block, void (*function)(void *), void *argument)
{
    if (__builtin_expect(ac_try_async(block, function, argument) != 0, 0))
        ac_no_stack_();
}

/* Starts a task *eagerly*: it runs at once, while the running task is at the head of the queue. */
AC_INLINE_ void ac_async_eager(ac_finish *block, void (*function)(void *), void *argument)
{
    ac_runtime *rt = ac_suspending_();
    awe_t *me = rt->current, *child = ac_begin_eager_(rt, block);
    if (!child)
        ac_no_stack_();
    ac_call_on_(me, child, function, argument);
}

#ifdef __cplusplus
}
#endif
#endif
