//! [`TempRc`]: an object for now.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::mode::{Mode, Shared};
use crate::object::{Header, Object};
use crate::sync::Ordering;
use crate::unsize::unsize;
use crate::{NoSuspend, StrongRc, Waker, WeakRc};

/// An object, borrowed until the task suspends at the latest. It is one pointer, and free to take and to drop.
pub struct TempRc<'cx, T: ?Sized + 'static, M: Mode = Shared> {
    object: &'cx Object<T, M>,
    #[cfg(feature = "check-temps")]
    note: Option<crate::ledger::Note<'cx>>,
    _on_this_stack_only: PhantomData<*mut ()>,
}

impl<'cx, T: ?Sized, M: Mode> TempRc<'cx, T, M> {
    #[inline(always)]
    #[cfg_attr(feature = "check-temps", track_caller)]
    pub(crate) fn new(object: &'cx Object<T, M>, cx: &'cx impl NoSuspend<M>) -> Self {
        #[cfg(feature = "hold-strong")]
        object.header.temps.fetch_add(1, Ordering::Relaxed);
        #[cfg(not(feature = "check-temps"))]
        let _ = cx;
        TempRc {
            object,
            #[cfg(feature = "check-temps")]
            note: match cx.ledger() {
                Some(ledger) => ledger.note(core::any::type_name::<T>()),
                None => None,
            },
            _on_this_stack_only: PhantomData,
        }
    }

    /// The object's name.
    #[inline(always)]
    pub fn downgrade(&self) -> WeakRc<T, M> {
        let Header { link, generation, .. } = self.object.header;
        WeakRc::new(link, generation, NonNull::from(self.object), M::name(self.object.of))
    }

    /// How many owners there are: see [`StrongRc::owners`].
    pub fn owners(&self) -> u32 {
        self.object.header.owners.load(Ordering::Relaxed)
    }

    /// Has `waker` woken when the object dies; at once if it is dead already.
    pub(crate) fn watch(&self, waker: Waker) {
        self.object.header.watch::<M>(self.object.of, waker);
    }

    /// The object as a plain borrow of the context.
    #[inline(always)]
    pub fn into_ref(self) -> &'cx T {
        &self.object.value
    }

    /// The object with its header, as borrowed from the context.
    #[cfg(feature = "dynamic")]
    #[inline(always)]
    pub(crate) fn object(self) -> &'cx Object<T, M> {
        self.object
    }

    /// One more owner of the object, for an entry in another collection; `None` if it was destroyed meanwhile. See
    /// [`StrongRc::share`].
    pub fn share(&self) -> Option<StrongRc<T, M>> {
        // SAFETY: the object lives, and the new owner was counted.
        M::try_share(&self.object.header.owners).then(|| unsafe { StrongRc::counted(NonNull::from(self.object)) })
    }
}

impl<'cx, T, M: Mode> TempRc<'cx, T, M> {
    /// The same object under a wider type: see [`StrongRc::unsize`].
    ///
    /// # Panics
    /// If `widen` returns anything but its argument.
    #[cfg_attr(feature = "check-temps", track_caller)]
    pub fn unsize<U: ?Sized>(self, widen: fn(&T) -> &U, cx: &'cx impl NoSuspend<M>) -> TempRc<'cx, U, M> {
        // SAFETY: the object is borrowed here; the result is borrowed no longer.
        TempRc::new(unsafe { unsize(NonNull::from(self.object), widen).as_ref() }, cx)
    }
}

impl<T: ?Sized, M: Mode> Clone for TempRc<'_, T, M> {
    #[inline(always)]
    #[cfg_attr(feature = "check-temps", track_caller)]
    fn clone(&self) -> Self {
        #[cfg(feature = "hold-strong")]
        self.object.header.temps.fetch_add(1, Ordering::Relaxed);
        TempRc {
            object: self.object,
            #[cfg(feature = "check-temps")]
            note: match &self.note {
                Some(note) => note.again(core::any::type_name::<T>()),
                None => None,
            },
            _on_this_stack_only: PhantomData,
        }
    }
}

impl<T: ?Sized, M: Mode> Deref for TempRc<'_, T, M> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.object.value
    }
}

impl<T: ?Sized, M: Mode> Drop for TempRc<'_, T, M> {
    /// Nothing, in the ordinary build: it stands here so that all builds accept the same programs.
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(feature = "hold-strong")]
        self.object.header.temps.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T: ?Sized + fmt::Debug, M: Mode> fmt::Debug for TempRc<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
