//! [`Lock`]: mutual exclusion of tasks. Unlike a spin lock's its guard may be held across suspensions: it borrows no context.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use refs::Cx;

use super::Semaphore;
use crate::rt::Canceled;

/// A lock without a value, as C has it: who locks it must unlock it. Not reentrant.
pub struct RawLock(Semaphore);

impl RawLock {
    const_fn! {
        /// A free lock.
        pub fn new() -> Self {
            RawLock(Semaphore::new(1))
        }
    }

    /// Takes the lock; waits for its turn while another task has it.
    pub fn lock_async(&self, cx: &mut Cx) {
        self.0.p_async(cx);
    }

    /// Takes the lock as [`lock_async`](Self::lock_async) does.
    ///
    /// # Errors
    /// [`Canceled`] as for [`Semaphore::p_x_async`]; then the lock is not taken.
    pub fn lock_x_async(&self, cx: &mut Cx) -> Result<(), Canceled> {
        self.0.p_x_async(cx)
    }

    /// Takes the lock if it is free now.
    pub fn try_lock(&self) -> bool {
        self.0.try_p()
    }

    /// Gives the lock to the task that has waited longest. To be called once for each time that it was taken.
    pub fn unlock(&self) {
        self.0.v();
    }
}

impl fmt::Debug for RawLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawLock").field("is_locked", &(self.0.units() == 0)).finish()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(value) => f.debug_tuple("Lock").field(&&*value).finish(),
            None => f.write_str("Lock(<locked>)"),
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for LockGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Default for RawLock {
    fn default() -> Self {
        RawLock::new()
    }
}

/// A value that one task at a time may use, for as long as it likes. Not reentrant: a task that takes it twice waits for ever. A task
/// that panics gives it back as it is.
pub struct Lock<T: ?Sized> {
    raw: RawLock,
    value: UnsafeCell<T>,
}

// SAFETY: one task at a time has the value.
unsafe impl<T: ?Sized + Send> Send for Lock<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    const_fn! {
        /// A free lock around `value`.
        pub fn new(value: T) -> Self {
            Lock { raw: RawLock::new(), value: UnsafeCell::new(value) }
        }
    }

    /// The value, by the lock's owner.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Lock<T> {
    /// Takes the lock until the guard is dropped; waits for its turn while another task has it.
    pub fn lock_async(&self, cx: &mut Cx) -> LockGuard<'_, T> {
        self.raw.lock_async(cx);
        self.guard()
    }

    /// Takes the lock as [`lock_async`](Self::lock_async) does.
    ///
    /// # Errors
    /// [`Canceled`] if the block was asked to end before the lock was handed over; then it is not taken.
    pub fn lock_x_async(&self, cx: &mut Cx) -> Result<LockGuard<'_, T>, Canceled> {
        self.raw.lock_x_async(cx)?;
        Ok(self.guard())
    }

    /// Takes the lock if it is free now.
    pub fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        if self.raw.try_lock() { Some(self.guard()) } else { None }
    }

    /// The value, by whoever has the lock to itself.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    fn guard(&self) -> LockGuard<'_, T> {
        LockGuard { lock: self, held: true, _for_one_task: PhantomData }
    }
}

/// The right to use a [`Lock`]'s value. May be held across suspensions.
pub struct LockGuard<'a, T: ?Sized> {
    lock: &'a Lock<T>,
    /// False only inside of a wait at a condition variable, and for good if the task unwinds from that.
    held: bool,
    _for_one_task: PhantomData<*mut ()>,
}

impl<T: ?Sized> LockGuard<'_, T> {
    /// Gives the lock away. The caller, who has the guard to itself, uses it no more before [`retake_async`](Self::retake_async).
    pub(super) fn release(&mut self) {
        self.held = false;
        self.lock.raw.unlock();
    }

    pub(super) fn retake_async(&mut self, cx: &mut Cx) {
        self.lock.raw.lock_async(cx);
        self.held = true;
    }
}

impl<T: ?Sized> Deref for LockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        assert!(self.held, "the lock was given away when a wait was aborted");
        // SAFETY: the lock is held, and stays so while the guard is borrowed: it is released by a mutable borrow only.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        assert!(self.held, "the lock was given away when a wait was aborted");
        // SAFETY: as in `deref`, and the guard is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for LockGuard<'_, T> {
    fn drop(&mut self) {
        if self.held {
            self.lock.raw.unlock();
        }
    }
}
