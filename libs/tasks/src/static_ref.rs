//! [`StaticRef`]: a reference that several cores read while one replaces it.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::{from_ref, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

/// Refers to a value that lives for ever, or to none.
pub struct StaticRef<T: Sync + 'static> {
    to: AtomicPtr<T>,
    _refers: PhantomData<&'static T>,
}

impl<T: Sync> StaticRef<T> {
    /// Refers to nothing.
    pub const fn none() -> Self {
        StaticRef { to: AtomicPtr::new(null_mut()), _refers: PhantomData }
    }

    /// What it refers to.
    #[inline(always)]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or from a reference that `set` was given, which is good for ever.
        unsafe { self.to.load(Ordering::Acquire).as_ref() }
    }

    /// From now on it refers to this.
    #[inline(always)]
    pub fn set(&self, to: Option<&'static T>) {
        self.to.store(to.map_or(null_mut(), |to| from_ref(to).cast_mut()), Ordering::Release);
    }
}

impl<T: Sync> Default for StaticRef<T> {
    fn default() -> Self {
        Self::none()
    }
}

impl<T: Sync> fmt::Debug for StaticRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StaticRef").field(&self.to.load(Ordering::Relaxed)).finish()
    }
}
