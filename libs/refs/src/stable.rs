//! [`StableRc`]: a name that is good only as long as the object was not modified; [`Versioned`]: what notices modifications.

use core::cell::UnsafeCell;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::mode::{Mode, Shared};
use crate::spin_loop;
use crate::sync::{AtomicU32, AtomicU64, Ordering, const_fn};
use crate::{Cx, Gone, Mortal, NoSuspend, TempRc, Waker, WeakRc};

/// Why a [`StableRc`] leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lost {
    /// The object was destroyed.
    Gone,
    /// The object lives, and somebody had it to write since the reference was taken.
    Modified,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lost::Gone => "the object was destroyed",
            Lost::Modified => "the object was modified",
        })
    }
}

impl core::error::Error for Lost {}

impl From<Gone> for Lost {
    fn from(_: Gone) -> Self {
        Lost::Gone
    }
}

/// A value that counts its modifications. Many may read it or one may write it at a time.
///
/// The guards borrow the context, so they are not held across a suspension, and what waits here (on other cores) spins.
/// Taking it to write while this stack has it in any way spins for ever.
#[derive(Default)]
pub struct Versioned<T: ?Sized> {
    /// How many readers there are, or [`WRITER`].
    users: AtomicU32,
    /// How often the value was had to write.
    version: AtomicU64,
    value: UnsafeCell<T>,
}

const WRITER: u32 = u32::MAX;

// SAFETY: the value is reached by many readers or one writer at a time.
unsafe impl<T: ?Sized + Send + Sync> Sync for Versioned<T> {}
// SAFETY: as any owner of a `T`.
unsafe impl<T: ?Sized + Send> Send for Versioned<T> {}

impl<T> Versioned<T> {
    const_fn! {
        /// The first version of a value.
        pub fn new(value: T) -> Self {
            Versioned { users: AtomicU32::new(0), version: AtomicU64::new(0), value: UnsafeCell::new(value) }
        }
    }

    /// The value itself.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Versioned<T> {
    /// The value, to read. Other cores may read it too.
    #[inline]
    pub fn read<'a>(&'a self, _cx: &'a impl NoSuspend) -> ReadGuard<'a, T> {
        loop {
            let users = self.users.load(Ordering::Relaxed);
            if users < WRITER - 1
                && self.users.compare_exchange_weak(users, users + 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return ReadGuard { cell: self, _on_this_stack_only: PhantomData };
            }
            spin_loop();
        }
    }

    /// The value, to write. It is a new version from here on, whether anything is written or not.
    #[inline]
    pub fn write<'a>(&'a self, _cx: &'a impl NoSuspend) -> WriteGuard<'a, T> {
        while self.users.compare_exchange_weak(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_err() {
            spin_loop();
        }
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Release);
        WriteGuard { cell: self, _on_this_stack_only: PhantomData }
    }

    /// The value, by the only one who can reach it. A new version.
    pub fn get_mut(&mut self) -> &mut T {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        self.value.get_mut()
    }

    /// How often the value was had to write. It has 64 bits: it does not wrap in practice.
    #[inline(always)]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
}

impl<T: ?Sized> fmt::Debug for Versioned<T> {
    /// Without the value, which somebody may be writing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Versioned").field("version", &self.version()).finish_non_exhaustive()
    }
}

/// The right to read what a [`Versioned`] holds.
pub struct ReadGuard<'a, T: ?Sized> {
    cell: &'a Versioned<T>,
    _on_this_stack_only: PhantomData<*mut ()>,
}

impl<T: ?Sized> Deref for ReadGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: there is no writer as long as the guard lives.
        unsafe { &*self.cell.value.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for ReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> Drop for ReadGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.cell.users.fetch_sub(1, Ordering::Release);
    }
}

/// The right to write what a [`Versioned`] holds.
pub struct WriteGuard<'a, T: ?Sized> {
    cell: &'a Versioned<T>,
    _on_this_stack_only: PhantomData<*mut ()>,
}

impl<T: ?Sized> Deref for WriteGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this is the only user as long as the guard lives.
        unsafe { &*self.cell.value.get() }
    }
}

impl<T: ?Sized> DerefMut for WriteGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the only user as long as the guard lives, and the guard is borrowed mutably.
        unsafe { &mut *self.cell.value.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for WriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> Drop for WriteGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.cell.users.store(0, Ordering::Release);
    }
}

/// A name of an object as it was: like [`WeakRc`], and it leads nowhere any more once the object was modified.
pub struct StableRc<T: ?Sized + 'static, M: Mode = Shared> {
    name: WeakRc<Versioned<T>, M>,
    version: u64,
}

impl<T: ?Sized, M: Mode> Clone for StableRc<T, M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized, M: Mode> Copy for StableRc<T, M> {}

impl<T: ?Sized, M: Mode> PartialEq for StableRc<T, M> {
    /// Whether both name the same version of the same object.
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.version) == (other.name, other.version)
    }
}

impl<T: ?Sized, M: Mode> Eq for StableRc<T, M> {}

impl<T: ?Sized, M: Mode> PartialOrd for StableRc<T, M> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: ?Sized, M: Mode> Ord for StableRc<T, M> {
    /// As of names, and of one object the older version first.
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.name, self.version).cmp(&(other.name, other.version))
    }
}

impl<T: ?Sized, M: Mode> Hash for StableRc<T, M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.name, self.version).hash(state);
    }
}

impl<T: ?Sized, M: Mode> fmt::Debug for StableRc<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StableRc({:?}, version {})", self.name, self.version)
    }
}

impl<T: ?Sized, M: Mode> TempRc<'_, Versioned<T>, M> {
    /// The object's name, for as long as it stays as it is now.
    #[inline(always)]
    pub fn downgrade_stable(&self) -> StableRc<T, M> {
        StableRc { name: self.downgrade(), version: self.version() }
    }
}

impl<T: ?Sized, M: Mode> StableRc<T, M> {
    /// The object, to read, exactly as it was when this reference was taken; nobody modifies it while the guard lives.
    ///
    /// # Errors
    /// [`Lost::Gone`] if it was destroyed, [`Lost::Modified`] if it was had to write.
    #[inline]
    #[cfg_attr(feature = "check-temps", track_caller)]
    pub fn upgrade<'cx>(&self, cx: &'cx (impl NoSuspend<M> + NoSuspend)) -> Result<ReadGuard<'cx, T>, Lost> {
        let object = self.name.upgrade(cx)?.into_ref();
        if object.version() != self.version {
            return Err(Lost::Modified);
        }
        let guard = object.read(cx);
        // A writer may have come before the guard.
        if object.version() == self.version { Ok(guard) } else { Err(Lost::Modified) }
    }

    /// The object's name, whatever became of it.
    #[inline(always)]
    pub fn weak(&self) -> WeakRc<Versioned<T>, M> {
        self.name
    }
}

impl<T: ?Sized, M: Mode> Mortal for StableRc<T, M> {
    fn watch_end(&self, waker: Waker, cx: &Cx) {
        self.name.watch(waker, cx);
    }

    fn is_gone(&self) -> bool {
        Mortal::is_gone(&self.name)
    }
}
