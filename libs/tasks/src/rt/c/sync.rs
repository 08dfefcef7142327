//! Synchronisation: the primitives of [`sync`](crate::rt::sync) in memory of C's.
//!
//! Each is made by its `_init` and given up by its `_destroy`, at which nobody waits; one that has no `_destroy` holds nothing but itself.
//! In between any thread may use it.
#![cfg_attr(false, ebb_lint::root)]

use core::ffi::c_int;
use core::mem::{ManuallyDrop, MaybeUninit};

use super::cancel::canceled;
use super::{context, wait_async};
use crate::rt::sync::{Condvar, EventCount, Queue, RawLock, Semaphore, Sequencer, Turn};

const _: () = {
    // `ac/sync.h` has this much room for each.
    assert!(size_of::<Semaphore>() <= 64 && align_of::<Semaphore>() <= 8);
    assert!(size_of::<RawLock>() <= 64 && align_of::<RawLock>() <= 8);
    assert!(size_of::<Condvar>() <= 64 && align_of::<Condvar>() <= 8);
    assert!(size_of::<Queue>() <= 64 && align_of::<Queue>() <= 8);
    assert!(size_of::<EventCount>() <= 64 && align_of::<EventCount>() <= 8);
    assert!(size_of::<Sequencer>() == 8 && align_of::<Sequencer>() == 8);
    assert!(size_of::<Turn<'static>>() <= 32 && align_of::<Turn<'static>>() <= 8);
};

/// Makes the functions of one kind: each has the contract of the module.
macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($self:ident: $type:ty $(, $argument:ident: $argument_type:ty)*) $(-> $result:ty)? $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the module says; what is not made by this function was made before.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($self: $type $(, $argument: $argument_type)*) $(-> $result)? $body
    )*};
}

functions! {
    /// A semaphore with that many units.
    fn ac_sem_init(sem: &mut MaybeUninit<Semaphore>, units: usize) {
        sem.write(Semaphore::new(units));
    }

    /// Gives it up.
    fn ac_sem_destroy(sem: &mut MaybeUninit<Semaphore>) {
        // SAFETY: made before, and not used after this.
        unsafe { sem.assume_init_drop() };
    }

    /// Takes a unit, first come first served.
    fn ac_sem_p(sem: &Semaphore) {
        // SAFETY: the thread runs tasks, of which one calls this.
        let mut cx = unsafe { context() };
        wait_async(&mut cx, |cx| sem.p_async(cx));
    }

    /// Takes a unit; 0, or `-ECANCELED`.
    fn ac_sem_p_x(sem: &Semaphore) -> c_int {
        // SAFETY: the thread runs tasks, of which one calls this.
        let mut cx = unsafe { context() };
        canceled(wait_async(&mut cx, |cx| sem.p_x_async(cx)))
    }

    /// Takes a unit if there is one: whether it did.
    fn ac_sem_try_p(sem: &Semaphore) -> c_int {
        c_int::from(sem.try_p())
    }

    /// Gives a unit, to the one who waits longest. From any thread.
    fn ac_sem_v(sem: &Semaphore) {
        sem.v();
    }

    /// A lock that nobody has.
    fn ac_lock_init(lock: &mut MaybeUninit<RawLock>) {
        lock.write(RawLock::new());
    }

    /// Gives it up.
    fn ac_lock_destroy(lock: &mut MaybeUninit<RawLock>) {
        // SAFETY: made before, and not used after this.
        unsafe { lock.assume_init_drop() };
    }

    /// Takes the lock. Not for a task that has it.
    fn ac_lock_acquire(lock: &RawLock) {
        // SAFETY: the thread runs tasks, of which one calls this.
        let mut cx = unsafe { context() };
        wait_async(&mut cx, |cx| lock.lock_async(cx));
    }

    /// Takes the lock; 0, or `-ECANCELED`.
    fn ac_lock_acquire_x(lock: &RawLock) -> c_int {
        // SAFETY: the thread runs tasks, of which one calls this.
        let mut cx = unsafe { context() };
        canceled(wait_async(&mut cx, |cx| lock.lock_x_async(cx)))
    }

    /// Takes the lock if it is free: whether it did.
    fn ac_lock_try_acquire(lock: &RawLock) -> c_int {
        c_int::from(lock.try_lock())
    }

    /// Hands the lock to the one who waits longest.
    fn ac_lock_release(lock: &RawLock) {
        lock.unlock();
    }

    /// A condition variable.
    fn ac_condvar_init(condvar: &mut MaybeUninit<Condvar>) {
        condvar.write(Condvar::new());
    }

    /// Gives it up.
    fn ac_condvar_destroy(condvar: &mut MaybeUninit<Condvar>) {
        // SAFETY: made before, and not used after this.
        unsafe { condvar.assume_init_drop() };
    }

    /// Lets the lock go, waits for a signal, and takes the lock again.
    fn ac_condvar_wait(condvar: &Condvar, lock: &RawLock) {
        // SAFETY: the thread runs tasks, of which one calls this.
        let mut cx = unsafe { context() };
        wait_async(&mut cx, |cx| condvar.wait_raw_async(cx, lock));
    }

    /// The same; 0, or `-ECANCELED`. The lock is held in both cases.
    fn ac_condvar_wait_x(condvar: &Condvar, lock: &RawLock) -> c_int {
        // SAFETY: the thread runs tasks, of which one calls this.
        let mut cx = unsafe { context() };
        canceled(wait_async(&mut cx, |cx| condvar.wait_raw_x_async(cx, lock)))
    }

    /// Ends the wait of the one who waits longest: whether there was one.
    fn ac_condvar_signal(condvar: &Condvar) -> c_int {
        c_int::from(condvar.signal())
    }

    /// Ends all waits: how many there were.
    fn ac_condvar_broadcast(condvar: &Condvar) -> usize {
        condvar.broadcast()
    }

    /// A line in which nobody stands.
    fn ac_queue_init(queue: &mut MaybeUninit<Queue>) {
        queue.write(Queue::new());
    }

    /// Gives it up.
    fn ac_queue_destroy(queue: &mut MaybeUninit<Queue>) {
        // SAFETY: made before, and not used after this.
        unsafe { queue.assume_init_drop() };
    }

    /// Stands in the line, at its end.
    fn ac_queue_enter(queue: &'static Queue, turn: &mut MaybeUninit<ManuallyDrop<Turn<'static>>>) {
        turn.write(ManuallyDrop::new(queue.enter()));
    }

    /// Waits until it is the first.
    fn ac_queue_await_turn(turn: &mut ManuallyDrop<Turn<'static>>) {
        // SAFETY: the thread runs tasks, of which one calls this.
        let mut cx = unsafe { context() };
        wait_async(&mut cx, |cx| turn.await_async(cx));
    }

    /// Waits until it is the first; 0, or `-ECANCELED`. It stays in the line in both cases.
    fn ac_queue_await_turn_x(turn: &mut ManuallyDrop<Turn<'static>>) -> c_int {
        // SAFETY: the thread runs tasks, of which one calls this.
        let mut cx = unsafe { context() };
        canceled(wait_async(&mut cx, |cx| turn.await_x_async(cx)))
    }

    /// Leaves the line. 0 for one that was not the first; for the first, how many in a row gave up: itself, if it never had its
    /// turn, and those behind it.
    fn ac_queue_leave(turn: &mut ManuallyDrop<Turn<'static>>) -> usize {
        // SAFETY: entered before, and left once.
        unsafe { ManuallyDrop::take(turn) }.leave()
    }

    /// An event count at 0.
    fn ac_ec_init(events: &mut MaybeUninit<EventCount>) {
        events.write(EventCount::new());
    }

    /// Gives it up.
    fn ac_ec_destroy(events: &mut MaybeUninit<EventCount>) {
        // SAFETY: made before, and not used after this.
        unsafe { events.assume_init_drop() };
    }

    /// How many events there were.
    fn ac_ec_read(events: &EventCount) -> u64 {
        events.read()
    }

    /// Waits until there were that many events: how many there were then.
    fn ac_ec_await(events: &EventCount, value: u64) -> u64 {
        // SAFETY: the thread runs tasks, of which one calls this.
        let mut cx = unsafe { context() };
        wait_async(&mut cx, |cx| events.await_async(cx, value))
    }

    /// The same; 0, or `-ECANCELED`.
    fn ac_ec_await_x(events: &EventCount, value: u64) -> c_int {
        // SAFETY: the thread runs tasks, of which one calls this.
        let mut cx = unsafe { context() };
        canceled(wait_async(&mut cx, |cx| events.await_x_async(cx, value)))
    }

    /// So many events more.
    fn ac_ec_advance(events: &EventCount, more: u64) {
        events.advance(more);
    }

    /// Numbers from 0 on.
    fn ac_seq_init(sequencer: &mut MaybeUninit<Sequencer>) {
        sequencer.write(Sequencer::new());
    }

    /// How many numbers were taken.
    fn ac_seq_read(sequencer: &Sequencer) -> u64 {
        sequencer.read()
    }

    /// The next number.
    fn ac_seq_ticket(sequencer: &Sequencer) -> u64 {
        sequencer.ticket()
    }
}
