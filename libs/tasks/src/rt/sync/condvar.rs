//! [`Condvar`]: waiting, with a lock, until what it protects has changed.

use core::fmt;

use refs::{Cx, SpinLock};

use super::waiters::{Waiters, wait_async};
use super::{LockGuard, RawLock};
use crate::rt::cancel::wait_x_async;
use crate::rt::{Canceled, check_canceled, prepare};

/// What reports say of those who wait.
const WHAT: &&str = &"a condition variable";

/// A condition variable. Signals wake in the order in which tasks began to wait, and nothing else wakes them. A signal with nobody
/// waiting is void. May be used with several locks.
pub struct Condvar {
    waiters: SpinLock<Waiters>,
}

impl Condvar {
    const_fn! {
        /// A condition variable at which nobody waits.
        pub fn new() -> Self {
            Condvar { waiters: SpinLock::new(Waiters::new()) }
        }
    }

    /// Gives the lock away, waits for a signal, and takes the lock again.
    pub fn wait_async<T: ?Sized>(&self, cx: &mut Cx, guard: &mut LockGuard<'_, T>) {
        self.enter(cx);
        guard.release();
        wait_async(cx, WHAT, |_| self.pass_on());
        guard.retake_async(cx);
    }

    /// Waits as [`wait_async`](Self::wait_async) does. The lock is held afterwards in every case.
    ///
    /// # Errors
    /// [`Canceled`] if the block was asked to end, before or before a signal came for this task.
    pub fn wait_x_async<T: ?Sized>(&self, cx: &mut Cx, guard: &mut LockGuard<'_, T>) -> Result<(), Canceled> {
        check_canceled(cx)?;
        self.enter(cx);
        guard.release();
        let result = wait_x_async(cx, WHAT, |_| self.pass_on());
        guard.retake_async(cx);
        result
    }

    /// Waits as [`wait_async`](Self::wait_async) does, with a lock without a value, which the task has.
    pub fn wait_raw_async(&self, cx: &mut Cx, lock: &RawLock) {
        self.enter(cx);
        lock.unlock();
        wait_async(cx, WHAT, |_| self.pass_on());
        lock.lock_async(cx);
    }

    /// Waits as [`wait_x_async`](Self::wait_x_async) does, with a lock without a value, which the task has.
    ///
    /// # Errors
    /// [`Canceled`] as there.
    pub fn wait_raw_x_async(&self, cx: &mut Cx, lock: &RawLock) -> Result<(), Canceled> {
        check_canceled(cx)?;
        self.enter(cx);
        lock.unlock();
        let result = wait_x_async(cx, WHAT, |_| self.pass_on());
        lock.lock_async(cx);
        result
    }

    /// Wakes the task that has waited longest; false if none waits.
    pub fn signal(&self) -> bool {
        while let Some(first) = self.waiters.with(Waiters::pop) {
            if first.wake() {
                return true;
            }
        }
        false
    }

    /// Wakes all that wait; how many there were.
    pub fn broadcast(&self) -> usize {
        self.waiters.with(Waiters::take).wake_all()
    }

    /// A task was woken but unwinds.
    fn pass_on(&self) {
        self.signal();
    }

    fn enter(&self, cx: &Cx) {
        self.waiters.lock(cx).push(prepare(cx));
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Condvar::new()
    }
}
