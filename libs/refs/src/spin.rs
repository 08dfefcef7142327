//! Spin locks. [`SpinLock`]'s guard borrows the context, so it cannot be held across a suspension of the task whose context it is; and what
//! [`SpinLock::with`] runs has none. (Who makes other tasks and runs them inside, on a thread of its own for instance, can
//! still hold the lock while those suspend: they wait for him, not he for them.)
//!
//! In the kernel interrupts are off whenever kernel code runs, and a handler runs only where user code or the idle loop was
//! interrupted, so a handler never meets a lock that its own core holds.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::NoSuspend;
use crate::sync::const_fn;

/// The lock word alone, for the inside of this project's libraries.
pub use raw::RawSpin;

/// A value that one core at a time may touch.
#[derive(Default)]
pub struct SpinLock<T: ?Sized> {
    raw: RawSpin,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one core at a time at the value.
unsafe impl<T: ?Sized + Send> Send for SpinLock<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    const_fn! {
        /// A free lock around `value`.
        pub fn new(value: T) -> Self {
            SpinLock { raw: RawSpin::new(), value: UnsafeCell::new(value) }
        }
    }

    /// The value itself, by whoever owns the lock.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> SpinLock<T> {
    /// Takes the lock for as long as the guard lives, which cannot be across a suspension.
    ///
    /// Locking twice on one stack spins for ever.
    #[inline(always)]
    pub fn lock<'a>(&'a self, _cx: &'a impl NoSuspend) -> SpinGuard<'a, T> {
        self.raw.lock();
        SpinGuard { lock: self, _on_this_stack_only: PhantomData }
    }

    /// Takes the lock if it is free.
    #[inline(always)]
    pub fn try_lock<'a>(&'a self, _cx: &'a impl NoSuspend) -> Option<SpinGuard<'a, T>> {
        self.raw.try_lock().then_some(SpinGuard { lock: self, _on_this_stack_only: PhantomData })
    }

    /// The value, by the only one who can reach it.
    #[inline(always)]
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Runs `f` on the value. For code that has no context, such as destructors: `f` is `Send`, and so has no [`Cx`](crate::Cx) by which it
    /// could suspend. It must not lock this lock again, which would spin for ever.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R + Send) -> R {
        self.within(f)
    }

    /// As [`with`](Self::with), for this crate, which never suspends.
    #[inline(always)]
    pub(crate) fn within<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.raw.lock();
        let guard = SpinGuard { lock: self, _on_this_stack_only: PhantomData };
        let result = f(
            // SAFETY: the lock is held until `guard` is dropped, and the reference ends before that.
            unsafe { &mut *self.value.get() },
        );
        drop(guard);
        result
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for SpinLock<T> {
    /// The value, unless somebody has it just now.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SpinLock");
        if self.raw.try_lock() {
            let guard = SpinGuard { lock: self, _on_this_stack_only: PhantomData };
            shown.field("value", &&*guard);
        }
        shown.finish_non_exhaustive()
    }
}

impl<T> From<T> for SpinLock<T> {
    fn from(value: T) -> Self {
        SpinLock::new(value)
    }
}

/// The right to use what a [`SpinLock`] holds.
pub struct SpinGuard<'a, T: ?Sized> {
    lock: &'a SpinLock<T>,
    _on_this_stack_only: PhantomData<*mut ()>,
}

impl<T: ?Sized> Deref for SpinGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held as long as the guard lives.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for SpinGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held as long as the guard lives, and the guard is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for SpinGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> Drop for SpinGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.raw.unlock();
    }
}

#[cfg(not(ebb_loom))]
mod raw {
    use crate::processor::spin_on;
    use crate::sync::{AtomicBool, Ordering};

    /// What is behind this is out of the way of what is not.
    #[cold]
    #[inline]
    fn unlikely() {}

    /// The lock word alone, for the inside of this project's libraries.
    #[derive(Debug, Default)]
    pub struct RawSpin(AtomicBool);

    impl RawSpin {
        /// An unlocked lock.
        pub const fn new() -> Self {
            RawSpin(AtomicBool::new(false))
        }

        /// Takes the lock, spinning while another core has it.
        #[inline(always)]
        pub fn lock(&self) {
            if self.0.swap(true, Ordering::Acquire) {
                unlikely();
                loop {
                    // Only looks: who has the lock needs its cache line to give it back.
                    while self.0.load(Ordering::Relaxed) {
                        spin_on();
                    }
                    if !self.0.swap(true, Ordering::Acquire) {
                        break;
                    }
                }
            }
        }

        /// Takes the lock if it is free.
        #[inline(always)]
        pub fn try_lock(&self) -> bool {
            !self.0.swap(true, Ordering::Acquire)
        }

        /// Gives the lock back. Only its holder may call this.
        #[inline(always)]
        pub fn unlock(&self) {
            self.0.store(false, Ordering::Release);
        }
    }
}

/// Under loom, which cannot follow endless spinning: its own mutex in the place of the lock word.
#[cfg(ebb_loom)]
mod raw {
    use core::cell::UnsafeCell;

    use loom::sync::{Mutex, MutexGuard};

    /// The lock word alone, for the inside of this project's libraries.
    #[derive(Debug)]
    pub struct RawSpin {
        mutex: Mutex<()>,
        guard: UnsafeCell<Option<MutexGuard<'static, ()>>>,
    }

    // SAFETY: the guard is touched only by who has the lock.
    unsafe impl Sync for RawSpin {}
    // SAFETY: as above.
    unsafe impl Send for RawSpin {}

    impl Default for RawSpin {
        fn default() -> Self {
            Self::new()
        }
    }

    impl RawSpin {
        /// An unlocked lock.
        pub fn new() -> Self {
            RawSpin { mutex: Mutex::new(()), guard: UnsafeCell::new(None) }
        }

        fn keep(&self, guard: MutexGuard<'_, ()>) {
            // SAFETY: the lock is held; the guard is dropped before the lock is, as locks do not move while they are held.
            unsafe {
                *self.guard.get() = Some(core::mem::transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard))
            };
        }

        /// Takes the lock.
        pub fn lock(&self) {
            self.keep(self.mutex.lock().expect("loom's locks are not poisoned"));
        }

        /// Takes the lock if it is free.
        pub fn try_lock(&self) -> bool {
            self.mutex.try_lock().map(|guard| self.keep(guard)).is_ok()
        }

        /// Gives the lock back. Only its holder may call this.
        pub fn unlock(&self) {
            // SAFETY: the lock is held by the caller. The guard is out of its cell before it ends.
            let guard = unsafe { (*self.guard.get()).take() };
            drop(guard);
        }
    }
}
