//! [`Slab`]: objects of one type by small number, in memory that is used again in place.
//!
//! A slab allocates slots in chunks. A slot holds one object after the other, and keeps its link, so that making and freeing
//! an object needs neither the allocator nor the list of free links. An object can outlive its entry (it is dead, and some core
//! has not passed a suspension yet) and even the slab: the slots go when the slab and the last of its objects are gone.
//!
//! Invariants: a slot is free, or holds an object that is not freed; `users` counts the latter and the slab itself. What the
//! core contains is touched with its lock held.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::fmt;
use core::mem::{MaybeUninit, offset_of};
use core::ptr::NonNull;

use crate::link::Link;
use crate::mode::{Anywhere, Home, Mode, RawLock, Shared};
use crate::object::{Header, Object};
use crate::{Dying, NoSuspend, StrongRc, TempRc, WeakRc};

/// Objects of one type by small number. It owns them and gives out [`TempRc`] and [`WeakRc`].
///
/// A number may be given to another object once its object was taken out: across a suspension it is the [`WeakRc`] that names
/// the object. It locks nothing that its user could wait for: where several tasks use it, put it into a
/// [`SpinLock`](crate::SpinLock).
pub struct Slab<T: 'static, M: Mode = Shared> {
    core: NonNull<Core<T, M>>,
    entries: Vec<Option<StrongRc<T, M>>>,
    len: usize,
}

// SAFETY: it is owners of objects, and a core that is shared with destructors on any thread behind a lock.
unsafe impl<T: Send + Sync, M: Anywhere> Send for Slab<T, M> {}
// SAFETY: as above; `&Slab` gives access to objects as `&T` only.
unsafe impl<T: Send + Sync, M: Anywhere> Sync for Slab<T, M> {}

struct Core<T: 'static, M: Mode> {
    of: M::OfObject,
    lock: M::Lock,
    slots: UnsafeCell<Slots<T, M>>,
}

struct Slots<T: 'static, M: Mode> {
    /// Each of [`CHUNK`] slots.
    chunks: Vec<NonNull<[Slot<T, M>]>>,
    free: Option<NonNull<Slot<T, M>>>,
    users: usize,
}

#[repr(C)]
struct Slot<T: 'static, M: Mode> {
    core: NonNull<Core<T, M>>,
    number: usize,
    next_free: Option<NonNull<Slot<T, M>>>,
    link: Option<&'static Link>,
    object: MaybeUninit<Object<T, M>>,
}

const CHUNK: usize = if cfg!(ebb_loom) { 1 } else { 32 };

impl<T: Send + Sync> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync> Slab<T> {
    /// An empty slab. It allocates with its first object.
    pub fn new() -> Self {
        Self::make(())
    }
}

impl<T, M: Mode> Slab<T, M> {
    /// An empty slab for objects of a realm or a group.
    pub fn new_in(home: &impl Home<T, Mode = M>) -> Self {
        Self::make(home.of_object())
    }

    fn make(of: M::OfObject) -> Self {
        let slots = Slots { chunks: Vec::new(), free: None, users: 1 };
        let core = Box::new(Core { of, lock: M::Lock::default(), slots: UnsafeCell::new(slots) });
        Slab { core: NonNull::from(Box::leak(core)), entries: Vec::new(), len: 0 }
    }

    /// Enters a new object, and says under which number.
    #[inline]
    pub fn insert(&mut self, value: T) -> usize {
        self.insert_cyclic(|_| value)
    }

    /// Enters a new object that knows its own name. The name leads nowhere until this returns.
    #[inline]
    pub fn insert_cyclic(&mut self, value: impl FnOnce(WeakRc<T, M>) -> T) -> usize {
        // SAFETY: the core lives as long as the slab.
        let core = unsafe { self.core.as_ref() };
        let slot = Taken(core.with(|slots| slots.take()).unwrap_or_else(|| self.grow()));
        // SAFETY: the slot was free and is ours now. The pointer to the object may go back to the slot.
        let (number, unborn, object) = unsafe {
            let slot = slot.0.as_ptr();
            let link = *(*slot).link.get_or_insert_with(|| M::take_link(core.of));
            (
                (*slot).number,
                link.conceive::<M>(core.of),
                NonNull::new_unchecked((&raw mut (*slot).object).cast::<Object<T, M>>()),
            )
        };
        // If this panics the name ends first, then the slot is given back.
        let value = value(WeakRc::new(unborn.link(), unborn.generation(), object, M::name(core.of)));
        core::mem::forget(slot);
        // SAFETY: the slot's memory is ours and fits; `free_slot` is for objects in slots.
        let owner = unsafe { StrongRc::show(object, unborn, free_slot::<T, M>, core.of, value) };
        if number >= self.entries.len() {
            self.entries.resize_with(number + 1, || None);
        }
        self.entries[number] = Some(owner);
        self.len += 1;
        number
    }

    /// The object of a number.
    #[inline(always)]
    #[cfg_attr(feature = "check-temps", track_caller)]
    pub fn get<'cx>(&self, number: usize, cx: &'cx impl NoSuspend<M>) -> Option<TempRc<'cx, T, M>> {
        Some(self.entries.get(number)?.as_ref()?.get(cx))
    }

    /// The name of the object of a number.
    #[inline(always)]
    pub fn weak(&self, number: usize) -> Option<WeakRc<T, M>> {
        Some(self.entries.get(number)?.as_ref()?.downgrade())
    }

    /// One more owner of the object of a number, for another collection.
    pub fn share(&self, number: usize) -> Option<StrongRc<T, M>> {
        Some(self.entries.get(number)?.as_ref()?.share())
    }

    /// Takes the object out.
    #[inline]
    pub fn remove(&mut self, number: usize) -> Option<Dying<T, M>> {
        let owner = self.entries.get_mut(number)?.take()?;
        self.len -= 1;
        Some(Dying::new(owner))
    }

    /// Keeps the objects that `keep` accepts; the others die, and are freed at the next suspension.
    pub fn retain(&mut self, mut keep: impl FnMut(usize, &T) -> bool) {
        for number in 0..self.entries.len() {
            let owner = self.entries[number].as_ref();
            if owner.is_some_and(|owner| !owner.with(|object| keep(number, object))) {
                drop(self.remove(number));
            }
        }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The numbers and names of all objects, by ascending number.
    pub fn iter(&self) -> impl Iterator<Item = (usize, WeakRc<T, M>)> + '_ {
        let named = |(number, owner): (usize, &Option<StrongRc<T, M>>)| Some((number, owner.as_ref()?.downgrade()));
        self.entries.iter().enumerate().filter_map(named)
    }

    /// How many objects there is memory for.
    pub fn capacity(&self) -> usize {
        // SAFETY: the core lives as long as the slab.
        unsafe { self.core.as_ref() }.with(|slots| slots.chunks.len() * CHUNK)
    }

    /// A slot out of a new chunk.
    #[cold]
    fn grow(&mut self) -> NonNull<Slot<T, M>> {
        // SAFETY: the core lives as long as the slab.
        let core = unsafe { self.core.as_ref() };
        // Only the slab's owner, which this borrows mutably, makes chunks: the number is the same below. The memory is made without the lock,
        // which a slot that is too large for any memory would leave locked.
        let first = core.with(|slots| slots.chunks.len()) * CHUNK;
        let slot =
            |number| Slot { core: self.core, number, next_free: None, link: None, object: MaybeUninit::uninit() };
        let chunk: Box<[Slot<T, M>]> = (first..first + CHUNK).map(slot).collect();
        core.with(|slots| {
            // SAFETY: a Box is not null.
            let chunk = unsafe { NonNull::new_unchecked(Box::into_raw(chunk)) };
            slots.chunks.push(chunk);
            // Low numbers first.
            for index in (0..CHUNK).rev() {
                // SAFETY: the chunk has so many slots; they are new and belong to the core, whose lock is held.
                unsafe { slots.give(chunk.cast::<Slot<T, M>>().add(index)) };
                slots.users += 1;
            }
            slots.take().expect("a new chunk has free slots")
        })
    }
}

impl<T: fmt::Debug, M: Mode> fmt::Debug for Slab<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries.iter().enumerate();
        f.debug_map().entries(entries.filter_map(|(number, owner)| Some((number, owner.as_ref()?)))).finish()
    }
}

impl<T: Send + Sync> FromIterator<T> for Slab<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut slab = Slab::new();
        slab.extend(values);
        slab
    }
}

impl<T, M: Mode> Extend<T> for Slab<T, M> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| _ = self.insert(value));
    }
}

impl<T, M: Mode> Drop for Slab<T, M> {
    /// All its objects die, unless others own them too.
    fn drop(&mut self) {
        self.entries.clear();
        // SAFETY: the slab is a user of the core, and ends here.
        unsafe { Core::leave(self.core, None) };
    }
}

/// A slot that is to be filled; given back if that panics.
struct Taken<T: 'static, M: Mode>(NonNull<Slot<T, M>>);

impl<T, M: Mode> Drop for Taken<T, M> {
    fn drop(&mut self) {
        // SAFETY: the slot holds no object, and its slab exists.
        unsafe { Core::leave(self.0.as_ref().core, Some(self.0)) };
    }
}

impl<T, M: Mode> Slots<T, M> {
    fn take(&mut self) -> Option<NonNull<Slot<T, M>>> {
        let slot = self.free?;
        // SAFETY: a slot in the list is free and belongs to the core, whose lock is held.
        self.free = unsafe { slot.as_ref().next_free };
        self.users += 1;
        Some(slot)
    }

    /// # Safety
    /// The slot belongs to the core, whose lock is held, and holds no object. It was counted as a user.
    unsafe fn give(&mut self, mut slot: NonNull<Slot<T, M>>) {
        // SAFETY: by this function's contract.
        unsafe { slot.as_mut().next_free = self.free };
        self.free = Some(slot);
        self.users -= 1;
    }
}

impl<T, M: Mode> Core<T, M> {
    fn with<R>(&self, f: impl FnOnce(&mut Slots<T, M>) -> R) -> R {
        self.lock.lock();
        // SAFETY: the lock is held, and `f`, which is one of this file's, does not come back here.
        let result = f(unsafe { &mut *self.slots.get() });
        self.lock.unlock();
        result
    }

    /// One user less, and perhaps a free slot more. Frees the core if it was the last.
    ///
    /// # Safety
    /// The caller is a counted user of `core` and does not use it again; `slot` is its slot and holds no object.
    unsafe fn leave(core: NonNull<Self>, slot: Option<NonNull<Slot<T, M>>>) {
        // SAFETY: a user keeps the core.
        let users = unsafe { core.as_ref() }.with(|slots| {
            match slot {
                // SAFETY: by this function's contract.
                Some(slot) => unsafe { slots.give(slot) },
                None => slots.users -= 1,
            }
            slots.users
        });
        if users == 0 {
            // SAFETY: nobody else is left. The core and the chunks were made by `Box`.
            unsafe {
                let core = Box::from_raw(core.as_ptr());
                for chunk in core.slots.into_inner().chunks {
                    let chunk = Box::from_raw(chunk.as_ptr());
                    chunk.iter().filter_map(|slot| slot.link).for_each(|link| M::give_link(core.of, link));
                }
            }
        }
    }
}

/// Frees an object in a slot.
///
/// # Safety
/// As for [`Header::free`].
unsafe fn free_slot<T: 'static, M: Mode>(object: NonNull<Header>) {
    // SAFETY: the object is in the slot that `insert_cyclic` put it into, by whose pointer it is reached; it is ours alone.
    unsafe {
        let object = object.cast::<Object<T, M>>();
        let slot = object.byte_sub(offset_of!(Slot<T, M>, object)).cast::<Slot<T, M>>();
        let core = slot.as_ref().core;
        object.drop_in_place();
        Core::leave(core, Some(slot));
    }
}
