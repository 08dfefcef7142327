//! The references themselves.

use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::link::Link;
use crate::{Cx, NoSuspend, Waker, reclaim};

/// The object is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the object was destroyed")
    }
}

impl core::error::Error for Gone {}

/// What lies before each object: its link, and how many collections have it.
pub(crate) struct Header {
    link: &'static Link,
    generation: u64,
    owners: AtomicU32,
    #[cfg(feature = "hold-strong")]
    temps: AtomicU32,
}

#[repr(C)]
pub(crate) struct Object<T: ?Sized> {
    header: Header,
    value: T,
}

/// Ownership of an object, alone or with other collections.
///
/// It stays in collections and in the fields of other objects: a task holds a [`TempRc`] or, across a suspension, a
/// [`WeakRc`]. When the last owner is dropped the object is dead at once and its memory is freed at the next suspension;
/// [`destroy`](Self::destroy) frees it now.
pub struct StrongRc<T: Send + Sync + 'static> {
    object: NonNull<Object<T>>,
    _owns: PhantomData<Object<T>>,
}

// SAFETY: a StrongRc gives access to its object as `&T`, and drops it on whichever core is last.
unsafe impl<T: Send + Sync> Send for StrongRc<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for StrongRc<T> {}

impl<T: Send + Sync> StrongRc<T> {
    /// A new object.
    pub fn new(value: T) -> Self {
        Self::new_cyclic(|_| value)
    }

    /// A new object that knows its own name.
    pub fn new_cyclic(value: impl FnOnce(WeakRc<T>) -> T) -> Self {
        let (link, generation) = Link::acquire();
        let memory: Box<MaybeUninit<Object<T>>> = Box::new_uninit();
        let object = NonNull::from(Box::leak(memory)).cast::<Object<T>>();
        // The link does not show `generation` yet: nobody can look inside until the value is written.
        let value = value(WeakRc { link, generation, object });
        // SAFETY: `object` is fresh memory of the right size and alignment, reached by nobody else yet.
        unsafe {
            object.write(Object {
                header: Header {
                    link,
                    generation,
                    owners: AtomicU32::new(1),
                    #[cfg(feature = "hold-strong")]
                    temps: AtomicU32::new(0),
                },
                value,
            });
        }
        link.show(generation);
        StrongRc { object, _owns: PhantomData }
    }
}

impl<T: Send + Sync> StrongRc<T> {
    fn header(&self) -> &Header {
        // SAFETY: an owner exists, so the object's memory is valid.
        unsafe { &self.object.as_ref().header }
    }

    /// The object, for as long as the task does not suspend (also if this owner is dropped meanwhile).
    #[inline(always)]
    pub fn get<'cx>(&self, _cx: &'cx impl NoSuspend) -> TempRc<'cx, T> {
        // SAFETY: an owner exists, and the memory of an object whose last owner goes is not freed before the next
        // suspension, which cannot come while `cx` is borrowed.
        TempRc::new(unsafe { self.object.as_ref() })
    }

    /// Runs `f` on the object: for destructors of what owns it, which have no context.
    pub fn with<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        // SAFETY: this owner lives as long as `f` runs, and so does the object.
        f(unsafe { &self.object.as_ref().value })
    }

    /// The object's name.
    #[inline(always)]
    pub fn downgrade(&self) -> WeakRc<T> {
        let header = self.header();
        WeakRc { link: header.link, generation: header.generation, object: self.object }
    }

    /// One more owner, for an entry in another collection (a descriptor duplicated, a table copied by `fork`, a mapping of
    /// a file). It is not a way to keep an object on a task's stack: that is what [`WeakRc`] is for.
    pub fn share(&self) -> Self {
        self.header().owners.fetch_add(1, Ordering::Relaxed);
        StrongRc { object: self.object, _owns: PhantomData }
    }

    /// How many owners there are.
    pub fn owners(&self) -> u32 {
        self.header().owners.load(Ordering::Relaxed)
    }

    /// Gives up this ownership. If it was the last, the object is destroyed: weak references are dead before its destructor
    /// starts, and its memory is free when this returns (with several cores: when each has passed a suspension).
    pub fn destroy(self, cx: &mut Cx) {
        drop(self);
        reclaim::reclaim(cx);
    }
}

impl<T: Send + Sync> Drop for StrongRc<T> {
    #[inline]
    fn drop(&mut self) {
        let header = self.header();
        if header.owners.fetch_sub(1, Ordering::Release) == 1 {
            core::sync::atomic::fence(Ordering::Acquire);
            header.link.invalidate();
            // SAFETY: this was the last owner and the link no longer leads here; borrows end at the next suspension.
            unsafe { reclaim::defer(header.link, self.object.cast(), free::<T>) };
        }
    }
}

/// Drops an object and returns its memory and its link.
///
/// # Safety
/// `object` is a dead `Object<T>` that nobody borrows.
unsafe fn free<T: Send + Sync>(object: NonNull<()>) {
    // SAFETY: made by `Box` in `new_cyclic`; ours alone by this function's contract.
    let object = unsafe { Box::from_raw(object.cast::<Object<T>>().as_ptr()) };
    let link = object.header.link;
    #[cfg(feature = "hold-strong")]
    assert_eq!(object.header.temps.load(Ordering::Relaxed), 0, "an object was freed while it was borrowed");
    drop(object);
    link.release();
}

/// An object that was removed from its collection: ownership that can only be ended, by [`destroy`](Self::destroy) or by
/// being dropped.
#[must_use = "destroy it, or drop it to have it destroyed at the next suspension"]
pub struct Dying<T: Send + Sync + 'static>(StrongRc<T>);

impl<T: Send + Sync> Dying<T> {
    pub(crate) fn new(owner: StrongRc<T>) -> Self {
        Dying(owner)
    }

    /// Destroys the object now, unless other collections own it too: see [`StrongRc::destroy`].
    pub fn destroy(self, cx: &mut Cx) {
        self.0.destroy(cx);
    }

    /// A last look at the object.
    pub fn get<'cx>(&self, cx: &'cx impl NoSuspend) -> TempRc<'cx, T> {
        self.0.get(cx)
    }
}

impl<T: Send + Sync> From<StrongRc<T>> for Dying<T> {
    fn from(owner: StrongRc<T>) -> Self {
        Dying(owner)
    }
}

/// An object, borrowed until the task suspends at the latest. It is one pointer, and free to take and to drop.
pub struct TempRc<'cx, T> {
    object: &'cx Object<T>,
    _on_this_stack_only: PhantomData<*mut ()>,
}

impl<'cx, T> TempRc<'cx, T> {
    #[inline(always)]
    fn new(object: &'cx Object<T>) -> Self {
        #[cfg(feature = "hold-strong")]
        object.header.temps.fetch_add(1, Ordering::Relaxed);
        TempRc { object, _on_this_stack_only: PhantomData }
    }

    /// The object's name.
    #[inline(always)]
    pub fn downgrade(&self) -> WeakRc<T> {
        let Header { link, generation, .. } = self.object.header;
        WeakRc { link, generation, object: NonNull::from(self.object) }
    }
}

impl<T: Send + Sync> TempRc<'_, T> {
    /// One more owner of the object, for an entry in another collection; `None` if it was destroyed meanwhile. See
    /// [`StrongRc::share`].
    pub fn share(&self) -> Option<StrongRc<T>> {
        let owners = &self.object.header.owners;
        owners
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count > 0).then(|| count + 1))
            .ok()
            .map(|_| StrongRc { object: NonNull::from(self.object), _owns: PhantomData })
    }
}

impl<'cx, T> TempRc<'cx, T> {
    /// The object as a plain borrow of the context.
    #[inline(always)]
    pub fn into_ref(self) -> &'cx T {
        &self.object.value
    }
}

impl<T> Clone for TempRc<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        TempRc::new(self.object)
    }
}

impl<T> Deref for TempRc<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.object.value
    }
}

impl<T> Drop for TempRc<'_, T> {
    /// Nothing, in the ordinary build: it stands here so that both builds accept the same programs.
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(feature = "hold-strong")]
        self.object.header.temps.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T: fmt::Debug> fmt::Debug for TempRc<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// An object's name: may be kept anywhere for ever, costs nothing to copy or drop, and leads to the object while it lives.
pub struct WeakRc<T> {
    link: &'static Link,
    generation: u64,
    object: NonNull<Object<T>>,
}

// SAFETY: a WeakRc gives access to its object as `&T`, on any core.
unsafe impl<T: Send + Sync> Send for WeakRc<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for WeakRc<T> {}

impl<T> Clone for WeakRc<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for WeakRc<T> {}

impl<T> PartialEq for WeakRc<T> {
    /// Whether both name the same object (also after its death).
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.link, other.link) && self.generation == other.generation
    }
}

impl<T> Eq for WeakRc<T> {}

impl<T> fmt::Debug for WeakRc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeakRc({:p}, generation {})", self.object, self.generation)
    }
}

impl<T> WeakRc<T> {
    /// The object, for as long as the task does not suspend.
    ///
    /// # Errors
    /// [`Gone`] from the moment the object is destroyed.
    #[inline(always)]
    pub fn upgrade<'cx>(&self, _cx: &'cx impl NoSuspend) -> Result<TempRc<'cx, T>, Gone> {
        if self.link.is(self.generation) {
            // SAFETY: the object lives; if it dies before the caller suspends, its memory stays until then.
            Ok(TempRc::new(unsafe { self.object.as_ref() }))
        } else {
            Err(Gone)
        }
    }

    /// Whether the object is destroyed.
    #[inline(always)]
    pub fn is_gone(&self) -> bool {
        !self.link.is(self.generation)
    }

    /// Has `waker` woken when the object dies; at once if it is dead already.
    pub fn watch(&self, waker: Waker, cx: &impl NoSuspend) {
        self.link.watchers.register(waker, cx);
        if self.is_gone() {
            waker.wake();
        }
    }

    /// A number that no other object that lives at the same time has.
    pub fn address(&self) -> usize {
        self.object.as_ptr().addr()
    }
}
