//! Owning objects: [`StrongRc`] and [`Dying`].
//!
//! An object is one allocation: a header, what its mode keeps, the value. Who made it says in the header how it is freed, so
//! an owner of `dyn Trait` frees what it was made as.

use alloc::alloc::{Layout, dealloc};
use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::Deref;
use core::ptr::NonNull;

use crate::link::{Link, QueueLink, Unborn};
use crate::mode::{Anywhere, Home, Mode, Shared};
use crate::sync::{AtomicBool, AtomicU32, Ordering, fence};
use crate::unsize::unsize;
use crate::{Cx, NoSuspend, TempRc, WaitList, Waker, WeakRc};

/// What lies before each object: all that it has in common with others but its link, so that it returns with it.
pub struct Header {
    pub(crate) link: &'static Link,
    pub(crate) generation: u64,
    /// How many collections have it.
    pub(crate) owners: AtomicU32,
    /// Whether somebody may be in `watchers`.
    watched: AtomicBool,
    /// Who is to be woken when the object dies.
    watchers: WaitList,
    /// Where it waits to be freed.
    pub(crate) place: QueueLink,
    #[cfg(feature = "hold-strong")]
    pub(crate) temps: AtomicU32,
    free: unsafe fn(NonNull<Header>),
}

impl Header {
    /// The header of an object with one owner.
    fn new<M: Mode>(unborn: &Unborn<M>, free: unsafe fn(NonNull<Header>)) -> Self {
        Header {
            link: unborn.link(),
            generation: unborn.generation(),
            owners: AtomicU32::new(1),
            watched: AtomicBool::new(false),
            watchers: WaitList::new(),
            place: QueueLink::new(),
            #[cfg(feature = "hold-strong")]
            temps: AtomicU32::new(0),
            free,
        }
    }

    /// The last owner is gone: no upgrade succeeds from here on, and watchers are woken. Returns the epoch of the death, which `epoch` says behind a full barrier.
    #[inline(always)]
    fn die_at(&self, epoch: impl FnOnce() -> u64) -> u64 {
        self.link.end();
        let epoch = epoch();
        if self.watched.load(Ordering::Relaxed) {
            self.watchers.wake_all();
        }
        epoch
    }

    /// Has `waker` woken when the object dies; at once if it is dead already.
    ///
    /// Between the two steps of this function, and between those of `die`, there is a full barrier: either the waker is seen there, or the death is seen
    /// here.
    pub(crate) fn watch<M: Mode>(&self, of: M::OfObject, waker: Waker) {
        self.watchers.enter(waker);
        self.watched.store(true, Ordering::Release);
        M::die(of);
        fence(Ordering::SeqCst);
        if !self.link.is(self.generation) {
            waker.wake();
        }
    }

    /// Drops an object's value and returns its memory and its link.
    ///
    /// # Safety
    /// `object` is dead, nobody borrows it, and it is given away.
    pub(crate) unsafe fn free(object: NonNull<Header>) {
        let must_end = MustNotPanic("an object's destructor");
        // SAFETY: by this function's contract; `free` belongs to the object.
        unsafe {
            #[cfg(feature = "hold-strong")]
            assert_eq!(object.as_ref().temps.load(Ordering::Relaxed), 0, "an object was freed while it was borrowed");
            (object.as_ref().free)(object);
        }
        core::mem::forget(must_end);
    }
}

/// Ends the program if it is dropped: by a panic while another one unwinds. For functions that are called in the middle of what somebody
/// else does, who could not go on after a panic, nor be left.
pub(crate) struct MustNotPanic(pub(crate) &'static str);

impl Drop for MustNotPanic {
    #[cold]
    fn drop(&mut self) {
        panic!("{} panicked, which ends the program", self.0);
    }
}

#[repr(C)]
pub(crate) struct Object<T: ?Sized, M: Mode> {
    pub(crate) header: Header,
    pub(crate) of: M::OfObject,
    pub(crate) value: T,
}

/// Ownership of an object, alone or with other collections.
///
/// It stays in collections and in the fields of other objects: a task holds a [`TempRc`] or, across a suspension, a
/// [`WeakRc`]. When the last owner is dropped the object is dead at once and its memory is freed at the next suspension;
/// [`destroy`](Self::destroy) frees it now.
pub struct StrongRc<T: ?Sized + 'static, M: Mode = Shared> {
    object: NonNull<Object<T, M>>,
    _owns: PhantomData<Object<T, M>>,
}

// SAFETY: a StrongRc gives access to its object as `&T`, and drops it on whichever core is last.
unsafe impl<T: ?Sized + Send + Sync, M: Anywhere> Send for StrongRc<T, M> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync, M: Anywhere> Sync for StrongRc<T, M> {}

impl<T: Send + Sync> StrongRc<T> {
    /// A new object.
    pub fn new(value: T) -> Self {
        Self::make((), |_| value)
    }

    /// A new object that knows its own name. The name leads nowhere until this returns.
    pub fn new_cyclic(value: impl FnOnce(WeakRc<T>) -> T) -> Self {
        Self::make((), value)
    }
}

/// The memory and the link of an object that is not complete; given back if its making panics.
struct Unfinished<T: 'static, M: Mode> {
    object: NonNull<Object<T, M>>,
    of: M::OfObject,
    unborn: ManuallyDrop<Unborn<M>>,
}

impl<T, M: Mode> Drop for Unfinished<T, M> {
    #[cold]
    fn drop(&mut self) {
        let link = self.unborn.link();
        // SAFETY: allocated as a Box of this type; no value was written. The name is not used again, and its generation is used up
        // before the link is.
        unsafe {
            dealloc(self.object.as_ptr().cast(), Layout::new::<Object<T, M>>());
            ManuallyDrop::drop(&mut self.unborn);
        }
        M::give_link(self.of, link);
    }
}

impl<T, M: Mode> StrongRc<T, M> {
    /// So many bytes an object is allocated with.
    pub const OBJECT_BYTES: usize = size_of::<Object<T, M>>();
    /// So many bytes its link takes.
    pub const LINK_BYTES: usize = size_of::<Link>();

    /// A new object of a realm or a group.
    #[inline]
    pub fn new_in(value: T, home: &impl Home<T, Mode = M>) -> Self {
        Self::make(home.of_object(), |_| value)
    }

    /// A new object of a realm or a group that knows its own name. The name leads nowhere until this returns.
    #[inline]
    pub fn new_cyclic_in(value: impl FnOnce(WeakRc<T, M>) -> T, home: &impl Home<T, Mode = M>) -> Self {
        Self::make(home.of_object(), value)
    }

    /// A new object in its own allocation.
    #[inline]
    pub(crate) fn make(of: M::OfObject, value: impl FnOnce(WeakRc<T, M>) -> T) -> Self {
        let unborn = M::take_link(of).conceive::<M>(of);
        let memory: Box<MaybeUninit<Object<T, M>>> = Box::new_uninit();
        // SAFETY: a Box is not null.
        let object = unsafe { NonNull::new_unchecked(Box::into_raw(memory).cast::<Object<T, M>>()) };
        let name = WeakRc::new(unborn.link(), unborn.generation(), object, M::name(of));
        let unfinished = Unfinished { object, of, unborn: ManuallyDrop::new(unborn) };
        // The object does not live yet: nobody can look inside until the value is written.
        let value = value(name);
        let mut complete = ManuallyDrop::new(unfinished);
        // SAFETY: taken out once, here.
        let unborn = unsafe { ManuallyDrop::take(&mut complete.unborn) };
        // SAFETY: `object` is fresh memory of the right size and alignment, reached by nobody else yet; freed as a Box.
        unsafe { Self::show(object, unborn, free_box::<T, M>, of, value) }
    }

    /// Writes a new object, which `free` frees, and begins its life.
    ///
    /// # Safety
    /// `memory` is valid for it and reached by nobody else, and `free` suits it.
    #[inline(always)]
    pub(crate) unsafe fn show(
        memory: NonNull<Object<T, M>>,
        unborn: Unborn<M>,
        free: unsafe fn(NonNull<Header>),
        of: M::OfObject,
        value: T,
    ) -> Self {
        // SAFETY: by this function's contract.
        unsafe { memory.write(Object { header: Header::new(&unborn, free), of, value }) };
        unborn.show();
        StrongRc { object: memory, _owns: PhantomData }
    }

    /// The same ownership under a wider type: `owner.unsize(|value| value)` where a `StrongRc<dyn Trait>` or a `StrongRc<[T]>`
    /// is expected.
    ///
    /// # Panics
    /// If `widen` returns anything but its argument (a field, for instance).
    pub fn unsize<U: ?Sized>(self, widen: fn(&T) -> &U) -> StrongRc<U, M> {
        // SAFETY: this owner keeps the object alive; nobody has it by `&mut`.
        let object = unsafe { unsize(self.object, widen) };
        let _moved_on = ManuallyDrop::new(self);
        StrongRc { object, _owns: PhantomData }
    }
}

impl<T: ?Sized, M: Mode> StrongRc<T, M> {
    /// An owner that was counted before.
    ///
    /// # Safety
    /// The object lives, and one of its counted owners has no `StrongRc`.
    pub(crate) unsafe fn counted(object: NonNull<Object<T, M>>) -> Self {
        StrongRc { object, _owns: PhantomData }
    }

    #[inline(always)]
    fn header(&self) -> &Header {
        // SAFETY: an owner exists, so the object's memory is valid.
        unsafe { &self.object.as_ref().header }
    }

    #[inline(always)]
    fn of(&self) -> M::OfObject {
        // SAFETY: as above.
        unsafe { self.object.as_ref().of }
    }

    /// The object, for as long as the task does not suspend (also if this owner is dropped meanwhile).
    #[inline(always)]
    #[cfg_attr(feature = "check-temps", track_caller)]
    pub fn get<'cx>(&self, cx: &'cx impl NoSuspend<M>) -> TempRc<'cx, T, M> {
        // SAFETY: an owner exists, and the memory of an object whose last owner goes is not freed before the next
        // suspension, which cannot come while `cx` is borrowed.
        TempRc::new(unsafe { self.object.as_ref() }, cx)
    }

    /// Runs `f` on the object: for destructors of what owns it, which have no context.
    pub fn with<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        // SAFETY: this owner lives as long as `f` runs, and so does the object.
        f(unsafe { &self.object.as_ref().value })
    }

    /// The object's name.
    #[inline(always)]
    pub fn downgrade(&self) -> WeakRc<T, M> {
        let header = self.header();
        WeakRc::new(header.link, header.generation, self.object, M::name(self.of()))
    }

    /// One more owner, for an entry in another collection (a descriptor duplicated, a table copied by `fork`, a mapping of
    /// a file). It is not a way to keep an object on a task's stack: that is what [`WeakRc`] is for.
    ///
    /// # Panics
    /// At 2^31 owners.
    pub fn share(&self) -> Self {
        M::share(&self.header().owners);
        StrongRc { object: self.object, _owns: PhantomData }
    }

    /// How many owners there are.
    pub fn owners(&self) -> u32 {
        self.header().owners.load(Ordering::Relaxed)
    }

    /// Gives up this ownership. If it was the last, the object is destroyed: weak references are dead before its destructor
    /// starts, and its memory is free when this returns (with several cores: when each has passed a suspension).
    #[inline]
    pub fn destroy(self, cx: &mut Cx) {
        let of = self.of();
        match self.invalidate_if_last() {
            Some(end) => {
                let End { object, epoch, .. } = *ManuallyDrop::new(end);
                // SAFETY: just dead, and given away.
                unsafe { M::bury_now(of, object.cast(), epoch, cx) };
            }
            None => M::reclaim(of, cx),
        }
    }

    /// Gives up this ownership. If it was the last, the object is dead, and nobody sees when exactly it comes to its end: its destructor gives back no more than the memory of
    /// some small objects. So where other cores may still borrow it, nobody waits until they have passed a suspension, and its core [keeps](crate::reclaim) it at hand
    /// with others.
    #[inline]
    pub fn end_unseen(self) {
        if M::may_end_unseen() {
            self.end_among_others();
        }
    }

    /// As [`end_unseen`](Self::end_unseen), if `is_unseen` says that of the object as it is now.
    #[inline]
    pub fn end_unseen_if(self, is_unseen: impl FnOnce(&T) -> bool) {
        if M::may_end_unseen() && self.with(is_unseen) {
            self.end_among_others();
        }
    }

    /// As [`destroy`](Self::destroy), if nobody else can borrow the object, or `is_unseen` does not say that nobody sees when exactly it comes to its end; else as
    /// [`end_unseen`](Self::end_unseen).
    #[inline]
    pub fn destroy_unseen(self, cx: &mut Cx, is_unseen: impl FnOnce(&T) -> bool) {
        if M::may_end_unseen() && self.with(is_unseen) {
            let of = self.of();
            self.end_among_others();
            M::reclaim(of, cx);
        } else {
            self.destroy(cx);
        }
    }

    /// There are other cores, and nobody sees when the object comes to its end.
    #[cold]
    #[inline(never)]
    fn end_among_others(self) {
        let this = ManuallyDrop::new(self);
        if M::unshare(&this.header().owners) {
            let End { object, epoch, .. } = *ManuallyDrop::new(this.end_by(M::die_unseen));
            // SAFETY: it died so just now, and is given away.
            unsafe { M::bury_unseen(object.cast(), epoch) };
        }
    }

    /// Gives up this ownership. If it was the last, all names of the object are dead from here on, `teardown` runs, which may
    /// suspend, and then the object is destroyed: nobody reaches it meanwhile. Returns what `teardown` did, or `None` if other
    /// owners are left.
    pub fn destroy_async<R>(self, cx: &mut Cx, teardown: impl FnOnce(&T, &mut Cx) -> R) -> Option<R> {
        let of = self.of();
        let end = self.invalidate_if_last()?;
        // SAFETY: `end` keeps the object, and gives it away only when it is dropped.
        let result = teardown(unsafe { &end.object.as_ref().value }, cx);
        let End { object, epoch, .. } = *ManuallyDrop::new(end);
        // SAFETY: dead, and given away.
        unsafe { M::bury_now(of, object.cast(), epoch, cx) };
        Some(result)
    }

    /// As [`destroy_async`](Self::destroy_async), where `teardown` leaves nothing whose end anybody sees: see [`end_unseen`](Self::end_unseen).
    pub fn destroy_unseen_async<R>(self, cx: &mut Cx, teardown: impl FnOnce(&T, &mut Cx) -> R) -> Option<R> {
        if !M::may_end_unseen() {
            return self.destroy_async(cx, teardown);
        }
        let this = ManuallyDrop::new(self);
        if !M::unshare(&this.header().owners) {
            return None;
        }
        let end = this.end_by(M::die_unseen);
        // SAFETY: as above.
        let result = teardown(unsafe { &end.object.as_ref().value }, cx);
        let End { object, epoch, .. } = *ManuallyDrop::new(end);
        // SAFETY: it died so, and is given away.
        unsafe { M::bury_unseen(object.cast(), epoch) };
        Some(result)
    }

    /// The object loses its last owner, which this was.
    #[inline(always)]
    fn end(&self) -> End<T, M> {
        let of = self.of();
        self.end_by(|| M::die(of))
    }

    /// As [`end`](Self::end), in an epoch that `epoch` says behind a full barrier.
    #[inline(always)]
    fn end_by(&self, epoch: impl FnOnce() -> u64) -> End<T, M> {
        End { of: self.of(), object: self.object, epoch: self.header().die_at(epoch) }
    }

    #[inline(always)]
    fn invalidate_if_last(self) -> Option<End<T, M>> {
        let this = ManuallyDrop::new(self);
        M::unshare(&this.header().owners).then(|| this.end())
    }
}

impl<T: ?Sized> StrongRc<T> {
    /// Gives up this ownership if it is the only one: the object dies, and nobody becomes an owner in between.
    ///
    /// # Errors
    /// This, where there are others.
    pub fn end_if_only(self) -> Result<(), Self> {
        let this = ManuallyDrop::new(self);
        match this.header().owners.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => {
                drop(this.end());
                Ok(())
            }
            Err(_) => Err(ManuallyDrop::into_inner(this)),
        }
    }
}

impl<T: ?Sized + fmt::Debug, M: Mode> fmt::Debug for StrongRc<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|object| f.debug_tuple("StrongRc").field(&object).finish())
    }
}

impl<T: ?Sized, M: Mode> Drop for StrongRc<T, M> {
    #[inline]
    fn drop(&mut self) {
        if M::unshare(&self.header().owners) {
            drop(self.end());
        }
    }
}

/// An owner that ends as [`StrongRc::end_unseen`] says: for fields of other objects.
pub struct UnseenRc<T: ?Sized + 'static, M: Mode = Shared>(ManuallyDrop<StrongRc<T, M>>);

impl<T: ?Sized + fmt::Debug, M: Mode> fmt::Debug for UnseenRc<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized, M: Mode> From<StrongRc<T, M>> for UnseenRc<T, M> {
    fn from(owner: StrongRc<T, M>) -> Self {
        UnseenRc(ManuallyDrop::new(owner))
    }
}

impl<T: ?Sized, M: Mode> Deref for UnseenRc<T, M> {
    type Target = StrongRc<T, M>;

    #[inline(always)]
    fn deref(&self) -> &StrongRc<T, M> {
        &self.0
    }
}

impl<T: ?Sized, M: Mode> Drop for UnseenRc<T, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: taken out once, here.
        unsafe { ManuallyDrop::take(&mut self.0) }.end_unseen();
    }
}

/// An object that has lost its last owner: dead for all, not yet freed. Dropping it has it freed at the next suspension.
struct End<T: ?Sized + 'static, M: Mode> {
    of: M::OfObject,
    object: NonNull<Object<T, M>>,
    epoch: u64,
}

impl<T: ?Sized, M: Mode> Drop for End<T, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the last owner is gone and the link no longer leads here; borrows end at the next suspension.
        unsafe { M::bury(self.of, self.object.cast(), self.epoch) };
    }
}

/// Frees an object that `make` made.
///
/// # Safety
/// As for [`Header::free`].
unsafe fn free_box<T, M: Mode>(object: NonNull<Header>) {
    // SAFETY: made by `Box` in `make`; ours alone by this function's contract.
    let object = unsafe { Box::from_raw(object.cast::<Object<T, M>>().as_ptr()) };
    let (link, of) = (object.header.link, object.of);
    drop(object);
    M::give_link(of, link);
}

/// An object that was removed from its collection: ownership that can only be ended, by [`destroy`](Self::destroy) or by
/// being dropped.
#[must_use = "destroy it, or drop it to have it destroyed at the next suspension"]
pub struct Dying<T: ?Sized + 'static, M: Mode = Shared>(StrongRc<T, M>);

impl<T: ?Sized, M: Mode> Dying<T, M> {
    pub(crate) fn new(owner: StrongRc<T, M>) -> Self {
        Dying(owner)
    }

    /// Destroys the object now, unless other collections own it too: see [`StrongRc::destroy`].
    pub fn destroy(self, cx: &mut Cx) {
        self.0.destroy(cx);
    }

    /// Destroys the object, unless other collections own it too, and perhaps lets nobody wait for it: see [`StrongRc::destroy_unseen`].
    #[inline]
    pub fn destroy_unseen(self, cx: &mut Cx, is_unseen: impl FnOnce(&T) -> bool) {
        self.0.destroy_unseen(cx, is_unseen);
    }

    /// Ends the object, unless other collections own it too, and lets nobody wait for it: see [`StrongRc::end_unseen`].
    #[inline]
    pub fn end_unseen(self) {
        self.0.end_unseen();
    }

    /// Destroys the object after a teardown that may suspend: see [`StrongRc::destroy_async`].
    pub fn destroy_async<R>(self, cx: &mut Cx, teardown: impl FnOnce(&T, &mut Cx) -> R) -> Option<R> {
        self.0.destroy_async(cx, teardown)
    }

    /// How many owners the object has, this one among them.
    pub fn owners(&self) -> u32 {
        self.0.owners()
    }

    /// Runs `f` on the object: see [`StrongRc::with`].
    pub fn with<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        self.0.with(f)
    }

    /// A last look at the object.
    #[cfg_attr(feature = "check-temps", track_caller)]
    pub fn get<'cx>(&self, cx: &'cx impl NoSuspend<M>) -> TempRc<'cx, T, M> {
        self.0.get(cx)
    }
}

impl<T: ?Sized + fmt::Debug, M: Mode> fmt::Debug for Dying<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.with(|object| f.debug_tuple("Dying").field(&object).finish())
    }
}

impl<T: ?Sized, M: Mode> From<StrongRc<T, M>> for Dying<T, M> {
    fn from(owner: StrongRc<T, M>) -> Self {
        Dying(owner)
    }
}
