//! [`WeakRc`]: an object's name; [`Mortal`]: anything whose end can be waited for.

use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ptr::NonNull;

use crate::link::Link;
use crate::mode::{Anywhere, Mode, Shared};
use crate::object::Object;
use crate::{Cx, NoSuspend, TempRc, Waker};

/// The object is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the object was destroyed")
    }
}

impl core::error::Error for Gone {}

/// An object's name: may be kept anywhere for ever, costs nothing to copy or drop, and leads to the object while it lives.
pub struct WeakRc<T: ?Sized + 'static, M: Mode = Shared> {
    /// Lives for ever. A pointer, because nobody's order or hash depends on what is in it.
    link: NonNull<Link>,
    generation: u64,
    object: NonNull<Object<T, M>>,
    name: M::OfName,
}

// SAFETY: a WeakRc gives access to its object as `&T`, on any core.
unsafe impl<T: ?Sized + Send + Sync, M: Anywhere> Send for WeakRc<T, M> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync, M: Anywhere> Sync for WeakRc<T, M> {}

impl<T: ?Sized, M: Mode> Clone for WeakRc<T, M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized, M: Mode> Copy for WeakRc<T, M> {}

impl<T: ?Sized, M: Mode> PartialEq for WeakRc<T, M> {
    /// Whether both name the same object (also after its death).
    fn eq(&self, other: &Self) -> bool {
        self.link == other.link && self.generation == other.generation
    }
}

impl<T: ?Sized, M: Mode> Eq for WeakRc<T, M> {}

impl<T: ?Sized, M: Mode> PartialOrd for WeakRc<T, M> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: ?Sized, M: Mode> Ord for WeakRc<T, M> {
    /// An order without a meaning, for ordered collections; the same as long as the names exist.
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl<T: ?Sized, M: Mode> Hash for WeakRc<T, M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl<T: ?Sized, M: Mode> fmt::Debug for WeakRc<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeakRc({:#x}, generation {})", self.address(), self.generation)
    }
}

impl<T: ?Sized, M: Mode> WeakRc<T, M> {
    #[inline(always)]
    pub(crate) fn new(link: &'static Link, generation: u64, object: NonNull<Object<T, M>>, name: M::OfName) -> Self {
        WeakRc { link: NonNull::from(link), generation, object, name }
    }

    /// The object, for as long as the task does not suspend.
    ///
    /// # Errors
    /// [`Gone`] from the moment the object is destroyed.
    #[inline(always)]
    #[cfg_attr(feature = "check-temps", track_caller)]
    pub fn upgrade<'cx>(&self, cx: &'cx impl NoSuspend<M>) -> Result<TempRc<'cx, T, M>, Gone> {
        if self.lives() {
            // SAFETY: the object lives; if it dies before the caller suspends, its memory stays until then.
            Ok(TempRc::new(unsafe { self.object.as_ref() }, cx))
        } else {
            Err(Gone)
        }
    }

    /// What makes it this object's name and no other's.
    fn identity(&self) -> (usize, u64) {
        (self.link.as_ptr().addr(), self.generation)
    }

    #[inline(always)]
    fn lives(&self) -> bool {
        // SAFETY: links are never freed.
        unsafe { self.link.as_ref() }.is(self.generation) && M::lives(self.name)
    }

    /// Whether the object is destroyed.
    #[inline(always)]
    pub fn is_gone(&self) -> bool {
        !self.lives()
    }

    /// Has `waker` woken when the object dies; at once if it is dead already.
    pub fn watch(&self, waker: Waker, cx: &(impl NoSuspend<M> + NoSuspend)) {
        match self.upgrade(cx) {
            Ok(object) => object.watch(waker),
            Err(Gone) => _ = waker.wake(),
        }
        M::watch(self.name, waker, cx);
    }

    /// A number that no other object that lives at the same time has.
    pub fn address(&self) -> usize {
        self.object.cast::<()>().as_ptr().addr()
    }
}

/// What can end, and wakes who waits for that. For waiting on several things of different types at once.
pub trait Mortal {
    /// Has `waker` woken at the end; at once if it is over already.
    fn watch_end(&self, waker: Waker, cx: &Cx);

    /// Whether it has ended.
    fn is_gone(&self) -> bool;
}

impl<T: ?Sized, M: Mode> Mortal for WeakRc<T, M> {
    fn watch_end(&self, waker: Waker, cx: &Cx) {
        self.watch(waker, cx);
    }

    fn is_gone(&self) -> bool {
        !self.lives()
    }
}
