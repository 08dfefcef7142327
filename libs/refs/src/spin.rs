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
pub struct SpinLock<T: ?Sized> {
    raw: RawSpin,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one core at a time at the value.
unsafe impl<T: ?Sized + Send> Send for SpinLock<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for SpinLock<T> {}

impl<T: Default> Default for SpinLock<T> {
    #[cfg_attr(feature = "check-locks", track_caller)]
    fn default() -> Self {
        SpinLock::new(T::default())
    }
}

impl<T> SpinLock<T> {
    const_fn! {
        /// A free lock around `value`.
        #[cfg_attr(feature = "check-locks", track_caller)]
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
    /// Locking twice on one stack spins for ever. With the feature `check-locks` that is reported, and so is whatever else could have cores wait for each other.
    #[inline(always)]
    #[cfg_attr(feature = "check-locks", track_caller)]
    pub fn lock<'a>(&'a self, _cx: &'a impl NoSuspend) -> SpinGuard<'a, T> {
        self.raw.lock();
        SpinGuard { lock: self, _on_this_stack_only: PhantomData }
    }

    /// Takes the lock while another one of its kind is held. All who hold two such locks take them in one order, which [`lock_after`](Self::lock_after)'s caller
    /// states where it calls this: a parent before its child, or the one with the smaller address first.
    #[inline(always)]
    #[cfg_attr(feature = "check-locks", track_caller)]
    pub fn lock_after<'a>(&'a self, _first: &SpinGuard<'_, T>, _cx: &'a impl NoSuspend) -> SpinGuard<'a, T> {
        self.raw.lock_after();
        SpinGuard { lock: self, _on_this_stack_only: PhantomData }
    }

    /// As [`lock_after`](Self::lock_after), where the one that is held first, if any, is out of sight: a caller further up may hold it.
    #[inline(always)]
    #[cfg_attr(feature = "check-locks", track_caller)]
    pub fn lock_nested<'a>(&'a self, _cx: &'a impl NoSuspend) -> SpinGuard<'a, T> {
        self.raw.lock_after();
        SpinGuard { lock: self, _on_this_stack_only: PhantomData }
    }

    /// Takes the lock if it is free.
    #[inline(always)]
    #[cfg_attr(feature = "check-locks", track_caller)]
    pub fn try_lock<'a>(&'a self, _cx: &'a impl NoSuspend) -> Option<SpinGuard<'a, T>> {
        self.raw.try_lock().then_some(SpinGuard { lock: self, _on_this_stack_only: PhantomData })
    }

    /// Lets all cores that wait for the lock now have it first: for whoever holds it for long, again and again, between two such times. The caller holds no lock.
    #[inline(always)]
    #[cfg_attr(feature = "check-locks", track_caller)]
    pub fn give_way(&self) {
        self.raw.give_way();
    }

    /// The value, by the only one who can reach it.
    #[inline(always)]
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Runs `f` on the value. For code that has no context, such as destructors: `f` is `Send`, and so has no [`Cx`](crate::Cx) by which it
    /// could suspend. It must not lock this lock again, which would spin for ever.
    #[inline(always)]
    #[cfg_attr(feature = "check-locks", track_caller)]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R + Send) -> R {
        self.within(f)
    }

    /// As [`with`](Self::with), if the lock is free. For code that may be called with any lock held, this one too.
    #[cfg_attr(feature = "check-locks", track_caller)]
    pub fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R + Send) -> Option<R> {
        if !self.raw.try_lock() {
            return None;
        }
        let guard = SpinGuard { lock: self, _on_this_stack_only: PhantomData };
        let result = f(
            // SAFETY: the lock is held until `guard` is dropped, and the reference ends before that.
            unsafe { &mut *self.value.get() },
        );
        drop(guard);
        Some(result)
    }

    /// As [`with`](Self::with), for this crate, which never suspends.
    #[inline(always)]
    #[cfg_attr(feature = "check-locks", track_caller)]
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
    #[cfg_attr(feature = "check-locks", track_caller)]
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
    #[cfg(feature = "check-locks")]
    use crate::lock_order::{self, Beside, Class};
    use crate::processor::spin_until_locked;
    use crate::sync::{AtomicBool, Ordering};
    #[cfg(not(ebb_shuttle))]
    use crate::waiting;

    /// What is behind this is out of the way of what is not.
    #[cold]
    #[inline]
    fn unlikely() {}

    /// The lock word alone, for the inside of this project's libraries.
    #[derive(Debug)]
    pub struct RawSpin {
        is_locked: AtomicBool,
        #[cfg(feature = "check-locks")]
        class: Class,
    }

    impl Default for RawSpin {
        #[cfg_attr(feature = "check-locks", track_caller)]
        fn default() -> Self {
            Self::new()
        }
    }

    impl RawSpin {
        /// An unlocked lock.
        #[cfg_attr(feature = "check-locks", track_caller)]
        pub const fn new() -> Self {
            RawSpin {
                is_locked: AtomicBool::new(false),
                #[cfg(feature = "check-locks")]
                class: Class::of_caller(),
            }
        }

        #[cfg(feature = "check-locks")]
        fn address(&self) -> usize {
            core::ptr::from_ref(&self.is_locked).addr()
        }

        /// Takes the lock, spinning while another core has it.
        #[inline(always)]
        #[cfg_attr(feature = "check-locks", track_caller)]
        pub fn lock(&self) {
            #[cfg(feature = "check-locks")]
            lock_order::before_lock(self.address(), &self.class, Beside::No);
            self.wait_and_lock();
        }

        /// As [`lock`](Self::lock), while another one of its kind is held that comes before it.
        #[inline(always)]
        #[cfg_attr(feature = "check-locks", track_caller)]
        pub fn lock_after(&self) {
            #[cfg(feature = "check-locks")]
            lock_order::before_lock(self.address(), &self.class, Beside::After);
            self.wait_and_lock();
        }

        #[inline(always)]
        #[cfg_attr(feature = "check-locks", track_caller)]
        fn wait_and_lock(&self) {
            #[cfg(feature = "stalls")]
            crate::stalls::maybe();
            if self.is_locked.swap(true, Ordering::Acquire) {
                unlikely();
                spin_until_locked(&self.is_locked);
            }
            #[cfg(feature = "stalls")]
            crate::stalls::maybe();
            #[cfg(feature = "check-locks")]
            lock_order::locked(self.address(), &self.class);
        }

        /// Takes the lock if it is free.
        #[inline(always)]
        #[cfg_attr(feature = "check-locks", track_caller)]
        pub fn try_lock(&self) -> bool {
            let is_free = !self.is_locked.swap(true, Ordering::Acquire);
            #[cfg(feature = "check-locks")]
            if is_free {
                lock_order::locked(self.address(), &self.class);
            }
            is_free
        }

        /// Lets all cores that wait for the lock now have it first. The caller holds no lock.
        #[inline(always)]
        #[cfg_attr(feature = "check-locks", track_caller)]
        pub fn give_way(&self) {
            #[cfg(all(feature = "check-locks", not(ebb_shuttle)))]
            lock_order::check_none_held();
            #[cfg(not(ebb_shuttle))]
            if waiting::is_any() {
                waiting::let_all_have_it(core::ptr::from_ref(&self.is_locked).addr());
            }
        }

        /// Gives the lock back. Only its holder may call this.
        #[inline(always)]
        pub fn unlock(&self) {
            #[cfg(feature = "check-locks")]
            lock_order::unlocked(self.address());
            self.is_locked.store(false, Ordering::Release);
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

        /// As [`lock`](Self::lock).
        pub fn lock_after(&self) {
            self.lock();
        }

        /// Loom lets others have it anyway.
        pub fn give_way(&self) {}

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
