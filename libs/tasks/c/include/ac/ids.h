/* The id table: small numbers under which suspended tasks can be found, to be sent in messages. An id has 16 bits for the entry and
 * 16 bits for how often that was given out, and each use is checked: one that was taken back, guessed or made up finds nothing.
 *
 * Errors: -EINVAL (no such id; nobody is saved under it; whom it names is not suspended), -EBUSY (another task is saved under it), -ENOMEM. With
 * any of them nothing has happened. */
#ifndef AC_IDS_H
#define AC_IDS_H

#include "run.h"
#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

int ac_id_create(uint32_t *id);                 /* 0 or -ENOMEM */
int ac_id_remove(uint32_t id);                  /* 0 or -EINVAL */
int ac_id_set(uint32_t id, awe_t *task);        /* a task of this thread; null takes out. 0 or -EINVAL */
awe_t *ac_id_get(uint32_t id);                  /* null if there is none */

/* The entry of an id, or null. Generations in use are odd. */
AC_INLINE_ struct ac_id_entry *ac_id_entry_(ac_runtime *rt, uint32_t id)
{
    uint32_t slot = id & 0xffff, generation = id >> 16;
    struct ac_id_entry *entry = rt->ids + slot;
    if (__builtin_expect(slot >= rt->ids_len || !(generation & 1) || entry->generation != generation, 0))
        return 0;
    return entry;
}

/* The task under an id, if it is alive; or null. */
AC_INLINE_ awe_t *ac_id_task_(ac_runtime *rt, uint32_t id)
{
    struct ac_id_entry *entry = ac_id_entry_(rt, id);
    awe_t *task = entry ? entry->saved : 0;
    if (!task || (__atomic_load_n(&task->life, __ATOMIC_RELAXED) & ~AC_STATE_) != entry->life)
        return 0;
    return task;
}

/* Enters the running task. */
AC_INLINE_ int ac_id_save_(ac_runtime *rt, uint32_t id)
{
    struct ac_id_entry *entry = ac_id_entry_(rt, id);
    if (!entry)
        return -EINVAL;
    if (entry->saved)
        return -EBUSY;
    entry->saved = ac_name_(rt->current);
    entry->life = __atomic_load_n(&rt->current->life, __ATOMIC_RELAXED) & ~AC_STATE_;
    return 0;
}

/* The running task goes on: its entry, if it still is one, names nobody. */
AC_INLINE_ void ac_id_unsave_(uint32_t id)
{
    ac_runtime *rt = ac_runtime_();
    struct ac_id_entry *entry = ac_id_entry_(rt, id);
    if (entry && entry->saved == rt->current)
        entry->saved = 0;
}

/* Yields; meanwhile the task is found under `id`. */
AC_INLINE_ int ac_yield_and_save(uint32_t id)
{
    int error = ac_id_save_(ac_runtime_(), id);
    if (error)
        return error;
    ac_yield();
    ac_id_unsave_(id);
    return 0;
}

/* Suspends; the task is found, and resumed, under `id`. */
AC_INLINE_ int ac_save_and_suspend(uint32_t id)
{
    awe_t *self;
    int error = ac_id_save_(ac_runtime_(), id);
    if (error)
        return error;
    ac_suspend_then(&self, 0, 0);
    ac_id_unsave_(id);
    return 0;
}

/* Yields to the task under an id, as ac_yield_to. */
AC_INLINE_ int ac_yield_to_id(uint32_t id)
{
    awe_t *task = ac_id_task_(ac_runtime_(), id);
    return task && ac_yield_to(task) == 0 ? 0 : -EINVAL;
}

/* Hands over to it, as ac_hand_over. */
AC_INLINE_ int ac_hand_over_to_id(uint32_t id)
{
    awe_t *task = ac_id_task_(ac_runtime_(), id);
    return task && ac_hand_over(task, 0) == 0 ? 0 : -EINVAL;
}

AC_INLINE_ int ac_yield_to_id_and_save(uint32_t to, uint32_t from)
{
    ac_runtime *rt = ac_runtime_();
    awe_t *task = ac_id_task_(rt, to);
    int error = task ? ac_id_save_(rt, from) : -EINVAL;
    if (error)
        return error;
    error = ac_yield_to(task) == 0 ? 0 : -EINVAL;
    ac_id_unsave_(from);
    return error;
}

AC_INLINE_ int ac_hand_over_to_id_and_save(uint32_t to, uint32_t from)
{
    ac_runtime *rt = ac_runtime_();
    awe_t *task = ac_id_task_(rt, to);
    int error = task ? ac_id_save_(rt, from) : -EINVAL;
    if (error)
        return error;
    error = ac_hand_over(task, 0) == 0 ? 0 : -EINVAL;
    ac_id_unsave_(from);
    return error;
}

#ifdef __cplusplus
}
#endif
#endif
