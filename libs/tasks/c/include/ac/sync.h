/* Synchronisation of tasks, on one thread or several: each blocks the task only, never the thread. Who waits is served first come first
 * served, and what it waits for is handed to it. What gives (v, signal, release, advance) may be called by any thread, also one that runs no
 * tasks.
 *
 * The published names (thcsync.h): what ends in _x returns THC_CANCELED if the block was asked to end, before or meanwhile, and has had no
 * effect then, but for a condition's lock, which is held in both cases. Objects that are not needed any more are given up with
 * _destroy, which frees what they hold beside themselves; nobody waits at them then. */
#ifndef AC_SYNC_H
#define AC_SYNC_H

#include "run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thc_sem { uint64_t opaque[8]; } thc_sem_t;
typedef struct thc_lock { uint64_t opaque[8]; } thc_lock_t;
typedef struct thc_condvar { uint64_t opaque[8]; } thc_condvar_t;
typedef struct thc_queue { uint64_t opaque[8]; } thc_queue_t;
typedef struct thc_queue_entry { uint64_t opaque[4]; } thc_queue_entry_t;
typedef struct thc_ec { uint64_t opaque[8]; } thc_ec_t;
typedef struct thc_seq { uint64_t opaque[1]; } thc_seq_t;

void ac_sem_init(thc_sem_t *sem, size_t units);
void ac_sem_destroy(thc_sem_t *sem);
void ac_sem_p(thc_sem_t *sem);
int ac_sem_p_x(thc_sem_t *sem);
int ac_sem_try_p(thc_sem_t *sem);
void ac_sem_v(thc_sem_t *sem);

void ac_lock_init(thc_lock_t *lock);
void ac_lock_destroy(thc_lock_t *lock);
void ac_lock_acquire(thc_lock_t *lock);
int ac_lock_acquire_x(thc_lock_t *lock);
int ac_lock_try_acquire(thc_lock_t *lock);
void ac_lock_release(thc_lock_t *lock);

void ac_condvar_init(thc_condvar_t *condvar);
void ac_condvar_destroy(thc_condvar_t *condvar);
void ac_condvar_wait(thc_condvar_t *condvar, thc_lock_t *lock);
int ac_condvar_wait_x(thc_condvar_t *condvar, thc_lock_t *lock);
int ac_condvar_signal(thc_condvar_t *condvar);
size_t ac_condvar_broadcast(thc_condvar_t *condvar);

void ac_queue_init(thc_queue_t *queue);
void ac_queue_destroy(thc_queue_t *queue);
void ac_queue_enter(thc_queue_t *queue, thc_queue_entry_t *turn);
void ac_queue_await_turn(thc_queue_entry_t *turn);
int ac_queue_await_turn_x(thc_queue_entry_t *turn);
size_t ac_queue_leave(thc_queue_entry_t *turn);

void ac_ec_init(thc_ec_t *events);
void ac_ec_destroy(thc_ec_t *events);
uint64_t ac_ec_read(thc_ec_t *events);
uint64_t ac_ec_await(thc_ec_t *events, uint64_t value);
int ac_ec_await_x(thc_ec_t *events, uint64_t value);
void ac_ec_advance(thc_ec_t *events, uint64_t more);

void ac_seq_init(thc_seq_t *sequencer);
uint64_t ac_seq_read(thc_seq_t *sequencer);
uint64_t ac_seq_ticket(thc_seq_t *sequencer);

AC_INLINE_ void thc_sem_init(thc_sem_t *sem, int units) { ac_sem_init(sem, (size_t)units); }
AC_INLINE_ void thc_sem_destroy(thc_sem_t *sem) { ac_sem_destroy(sem); }
AC_INLINE_ void thc_sem_p(thc_sem_t *sem) { ac_sem_p(sem); }
AC_INLINE_ int thc_sem_p_x(thc_sem_t *sem) { return ac_sem_p_x(sem); }
AC_INLINE_ void thc_sem_v(thc_sem_t *sem) { ac_sem_v(sem); }

AC_INLINE_ void thc_lock_init(thc_lock_t *lock) { ac_lock_init(lock); }
AC_INLINE_ void thc_lock_destroy(thc_lock_t *lock) { ac_lock_destroy(lock); }
AC_INLINE_ void thc_lock_acquire(thc_lock_t *lock) { ac_lock_acquire(lock); }
AC_INLINE_ int thc_lock_acquire_x(thc_lock_t *lock) { return ac_lock_acquire_x(lock); }
AC_INLINE_ void thc_lock_release(thc_lock_t *lock) { ac_lock_release(lock); }

AC_INLINE_ void thc_condvar_init(thc_condvar_t *condvar) { ac_condvar_init(condvar); }
AC_INLINE_ void thc_condvar_destroy(thc_condvar_t *condvar) { ac_condvar_destroy(condvar); }
AC_INLINE_ void thc_condvar_wait(thc_condvar_t *condvar, thc_lock_t *lock) { ac_condvar_wait(condvar, lock); }
AC_INLINE_ int thc_condvar_wait_x(thc_condvar_t *condvar, thc_lock_t *lock) { return ac_condvar_wait_x(condvar, lock); }
AC_INLINE_ void thc_condvar_signal(thc_condvar_t *condvar) { ac_condvar_signal(condvar); }
AC_INLINE_ void thc_condvar_broadcast(thc_condvar_t *condvar) { ac_condvar_broadcast(condvar); }

AC_INLINE_ void thc_queue_init(thc_queue_t *queue) { ac_queue_init(queue); }
AC_INLINE_ void thc_queue_destroy(thc_queue_t *queue) { ac_queue_destroy(queue); }
AC_INLINE_ void thc_queue_enter(thc_queue_t *queue, thc_queue_entry_t *turn) { ac_queue_enter(queue, turn); }
AC_INLINE_ void thc_queue_await_turn(thc_queue_t *queue, thc_queue_entry_t *turn) { (void)queue; ac_queue_await_turn(turn); }
AC_INLINE_ int thc_queue_await_turn_x(thc_queue_t *queue, thc_queue_entry_t *turn) { (void)queue; return ac_queue_await_turn_x(turn); }
AC_INLINE_ int thc_queue_leave(thc_queue_t *queue, thc_queue_entry_t *turn) { (void)queue; return (int)ac_queue_leave(turn); }

AC_INLINE_ void thc_ec_init(thc_ec_t *events) { ac_ec_init(events); }
AC_INLINE_ void thc_ec_destroy(thc_ec_t *events) { ac_ec_destroy(events); }
AC_INLINE_ uint64_t thc_ec_read(thc_ec_t *events) { return ac_ec_read(events); }
AC_INLINE_ uint64_t thc_ec_await(thc_ec_t *events, uint64_t value) { return ac_ec_await(events, value); }
AC_INLINE_ int thc_ec_await_x(thc_ec_t *events, uint64_t value) { return ac_ec_await_x(events, value); }
AC_INLINE_ void thc_ec_advance(thc_ec_t *events, uint64_t more) { ac_ec_advance(events, more); }

AC_INLINE_ void thc_seq_init(thc_seq_t *sequencer) { ac_seq_init(sequencer); }
AC_INLINE_ uint64_t thc_seq_read(thc_seq_t *sequencer) { return ac_seq_read(sequencer); }
AC_INLINE_ uint64_t thc_seq_ticket(thc_seq_t *sequencer) { return ac_seq_ticket(sequencer); }

#ifdef __cplusplus
}
#endif
#endif
