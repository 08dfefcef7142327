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
void ac_id_unsave_(awe_t *me);                  /* takes the running task out of the table, where it still is */

/* The entry of an id, or null. Generations in use are odd. */
AC_INLINE_ struct ac_id_entry *ac_id_entry_(ac_runtime *rt, uint32_t id)
{
    uint32_t slot = id & 0xffff, generation = id >> 16;
    struct ac_id_entry *entry = rt->ids + slot;
    if (__builtin_expect(slot >= rt->ids_len || !(generation & 1) || entry->generation != generation, 0))
        return 0;
    return entry;
}

/* Whether the task that is saved in an entry is alive. */
AC_INLINE_ int ac_id_occupied_(const struct ac_id_entry *entry)
{
    return entry->saved && (__atomic_load_n(&entry->saved->life, __ATOMIC_RELAXED) & ~AC_STATE_) == entry->life;
}

/* Enters the running task, which is about to suspend, in an entry. */
AC_INLINE_ void ac_id_save_(struct ac_id_entry *entry, uint32_t id, awe_t *me)
{
    entry->saved = me;
    entry->life = __atomic_load_n(&me->life, __ATOMIC_RELAXED) & ~AC_STATE_;
    me->saved_under = id;
}

/* The task goes on that saved itself. Whoever has resumed it by its id has taken it out there. */
AC_INLINE_ void ac_id_back_(awe_t *me)
{
    if (__builtin_expect(me->saved_under != 0, 0))
        ac_id_unsave_(me);
}

/* Switches to the task under `to`, and queues the running one or not. That is found under `from` then, if it is one. */
AC_INLINE_ int ac_id_go_(uint32_t to, const uint32_t *from, int is_queued)
{
    ac_runtime *rt = ac_suspending_();
    awe_t *me = rt->current, *task;
    struct ac_id_entry *entry = ac_id_entry_(rt, to), *place = 0;
    if (__builtin_expect(!entry || !ac_id_occupied_(entry), 0))
        return -EINVAL;
    task = entry->saved;
    if (from) {
        place = ac_id_entry_(rt, *from);
        if (!place)
            return -EINVAL;
        if (__builtin_expect(place->saved != 0, 0) && ac_id_occupied_(place))
            return -EBUSY;
    }
    if (__builtin_expect(me->parent != 0, 0)) {
        /* Called by another task, so that has to be detached first. */
        if (from)
            ac_id_save_(place, *from, me);
        if ((is_queued ? ac_yield_to_(task) : ac_hand_over_(task)) != 0) {
            ac_id_back_(me);
            return -EINVAL;
        }
    } else {
        if (__builtin_expect(!ac_take_(rt, me, task), 0))
            return -EINVAL;
        if (task->saved_under == to) {
            task->saved_under = 0;
            entry->saved = 0;
        }
        if (from)
            ac_id_save_(place, *from, me);
        if (is_queued) {
            ac_push_back_(rt, me);
            ac_make_room_(rt);
        } else {
            ac_park_(me);
        }
        ac_switch_(rt, me, task);
    }
    if (from)
        ac_id_back_(me);
    return 0;
}

/* Enters the running task under an id at which nobody is. */
AC_INLINE_ int ac_id_enter_(uint32_t id, awe_t **me)
{
    ac_runtime *rt = ac_runtime_();
    struct ac_id_entry *entry = ac_id_entry_(rt, id);
    if (!entry)
        return -EINVAL;
    if (entry->saved && ac_id_occupied_(entry))
        return -EBUSY;
    *me = rt->current;
    ac_id_save_(entry, id, *me);
    return 0;
}

/* Yields; meanwhile the task is found under `id`. */
AC_INLINE_ int ac_yield_and_save(uint32_t id)
{
    awe_t *me;
    int error = ac_id_enter_(id, &me);
    if (error)
        return error;
    ac_yield();
    ac_id_back_(me);
    return 0;
}

/* Suspends; the task is found, and resumed, under `id`. */
AC_INLINE_ int ac_save_and_suspend(uint32_t id)
{
    awe_t *me;
    int error = ac_id_enter_(id, &me);
    if (error)
        return error;
    ac_suspend_then(&me, 0, 0);
    ac_id_back_(me);
    return 0;
}

/* Yields to the task under an id, as ac_yield_to; and at the same time can be found under another. */
AC_INLINE_ int ac_yield_to_id(uint32_t to) { return ac_id_go_(to, 0, 1); }
AC_INLINE_ int ac_yield_to_id_and_save(uint32_t to, uint32_t from) { return ac_id_go_(to, &from, 1); }

/* Hands over to it, as ac_hand_over. */
AC_INLINE_ int ac_hand_over_to_id(uint32_t to) { return ac_id_go_(to, 0, 0); }
AC_INLINE_ int ac_hand_over_to_id_and_save(uint32_t to, uint32_t from) { return ac_id_go_(to, &from, 0); }

#ifdef __cplusplus
}
#endif
#endif
