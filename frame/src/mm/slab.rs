//! Slabs: frames cut into slots of one size. The mechanism; which slab a slot is taken from, and when an empty slab's frame is
//! given back, is the policy's ([`SlabPolicy`]).
//!
//! A slot does not outlive its slab (invariant 9): a slab with slots out is not destroyed. An object fits its slot (invariant
//! 10): a slot knows its size class, and whoever takes it checks that.
//!
//! A [`Slab`] is only a name: each operation looks whether the frame is a slab at all. The state word of the frame's metadata
//! is that check and the slab's lock in one: it goes from "slab, 1 reference" to "slab, 2" and back.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::Ordering;

use super::metadata::{FrameNumber, Kind, Metadata};
use super::supply::{self, Purpose};
use super::{PAGE_SIZE, machine};

/// A size of slots, as an index into [`SIZES`](Self::SIZES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClass(u8);

impl SizeClass {
    /// The sizes in bytes, ascending. Each is a multiple of 16; a slot is aligned to the largest power of two that divides
    /// its size.
    pub const SIZES: [usize; 20] =
        [16, 32, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 448, 512, 672, 816, 1024, 1360, 2048, 4096];

    /// How many classes there are.
    pub const COUNT: usize = Self::SIZES.len();

    /// The smallest class for objects of `size` bytes, aligned to `align`; `None` if they are too large for slabs.
    #[inline(always)]
    pub const fn of(size: usize, align: usize) -> Option<Self> {
        let size = if align <= 16 {
            size
        } else {
            // Powers of two are aligned to themselves.
            let size = if size > align { size } else { align };
            if size > PAGE_SIZE {
                return None;
            }
            size.next_power_of_two()
        };
        if size <= 1024 {
            Some(SizeClass(SMALL[size.div_ceil(16)]))
        } else if size <= 1360 {
            Some(SizeClass(17))
        } else if size <= 2048 {
            Some(SizeClass(18))
        } else if size <= 4096 {
            Some(SizeClass(19))
        } else {
            None
        }
    }

    /// The class at an index below [`COUNT`](Self::COUNT).
    pub const fn at(index: usize) -> Option<Self> {
        if index < Self::COUNT { Some(SizeClass(index as u8)) } else { None }
    }

    /// Its index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its slots' size in bytes.
    #[inline(always)]
    pub const fn size_bytes(self) -> usize {
        Self::SIZES[self.0 as usize]
    }

    /// How many slots a slab of it has.
    pub const fn capacity(self) -> usize {
        PAGE_SIZE / self.size_bytes()
    }
}

/// The class for each size up to 1024, in steps of 16.
const SMALL: [u8; 65] = {
    let mut table = [0; 65];
    let mut class = 0;
    let mut step = 0;
    while step < table.len() {
        if step * 16 > SizeClass::SIZES[class] {
            class += 1;
        }
        table[step] = class as u8;
        step += 1;
    }
    table
};

const _: () =
    assert!(SizeClass::SIZES[16] == 1024 && SizeClass::SIZES[17] == 1360 && SizeClass::SIZES[19] == PAGE_SIZE);

/// Which slab an object goes to.
pub trait SlabPolicy: Sync {
    /// Adds free slots ([`Slab::take`]) until there are `count`; fewer, or none, if there is no memory.
    fn take(&self, slots: &mut HeapSlots, count: usize);
    /// Puts all of these slots back into their slabs ([`HeapSlots::put_back`]).
    fn give(&self, slots: HeapSlots);
    /// Gives up slabs that are empty and kept for later.
    fn trim(&self) {}
}

/// Free slots of one size class, on their way between slabs and the cores' magazines. Whoever drops them loses them for good: they go back one by one, by
/// [`put_back`](Self::put_back).
#[must_use]
pub struct HeapSlots {
    class: SizeClass,
    /// Each starts with a pointer to the next, the last one with null.
    first: *mut u8,
    len: usize,
}

// SAFETY: the slots' bytes are whoever's has the `HeapSlots`.
unsafe impl Send for HeapSlots {}

/// How a slab has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotsOut {
    /// How many of its slots were out.
    pub before: usize,
    /// How many are out now.
    pub now: usize,
}

impl HeapSlots {
    /// No slots yet.
    pub(super) fn none(class: SizeClass) -> Self {
        HeapSlots { class, first: null_mut(), len: 0 }
    }

    /// # Safety
    /// The list from `first` on has `len` slots of this class, each of which starts with a pointer to the next, the last one with null. They are
    /// what [`into_list`](Self::into_list) or [`pop`](Self::pop) gave, and nobody uses them any more.
    #[inline(always)]
    pub(super) unsafe fn from_list(class: SizeClass, first: *mut u8, len: usize) -> Self {
        HeapSlots { class, first, len }
    }

    /// The first, and how many there are.
    #[inline(always)]
    pub(super) fn into_list(self) -> (*mut u8, usize) {
        (self.first, self.len)
    }

    /// Takes one out, for an object.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<NonNull<u8>> {
        let slot = NonNull::new(self.first)?;
        // SAFETY: these slots are nobody else's, and each starts with a pointer to the next.
        self.first = unsafe { slot.cast::<*mut u8>().read() };
        self.len -= 1;
        Some(slot)
    }

    /// Their size class.
    pub fn class(&self) -> SizeClass {
        self.class
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts one of them back into its slab, and those behind it that are of the same: which that is, and how many of its slots are out. `None` if none is left.
    ///
    /// # Panics
    /// The slab is of another size class: the object was freed with another size than it was allocated with.
    #[inline]
    pub fn put_back(&mut self) -> Option<(Slab, SlotsOut)> {
        let slot = self.pop()?;
        let slab = Slab(machine::pointer_frame(slot.as_ptr()));
        let Some(mut state) = slab.lock() else { panic!("an object of the heap is not in a slab") };
        let inside = state.inside();
        let before = usize::from(inside.out);
        let mut next = Some(slot);
        while let Some(slot) = next {
            if inside.class != self.class.0 || inside.out == 0 {
                panic!("an object of the heap was freed with another size, or twice");
            }
            let offset = (slot.addr().get() % PAGE_SIZE) as u16;
            // SAFETY: the slot is free and was in the list. A slot's address is a multiple of 16.
            unsafe { slot.cast::<u16>().write(inside.free) };
            inside.free = offset | 1;
            inside.out -= 1;
            let is_beside = self.first.addr() / PAGE_SIZE == slot.addr().get() / PAGE_SIZE;
            next = if is_beside { self.pop() } else { None };
        }
        Some((slab, SlotsOut { before, now: inside.out.into() }))
    }
}

/// The name of a slab: of a frame that was a slab when this was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slab(FrameNumber);

/// What stands beside a slab, in its frame's storage.
#[repr(C)]
struct Inside {
    /// The first of the free slots that were out once: its offset in the frame, with bit 0 set; or 0. Each of them starts
    /// with such a word for the next.
    free: u16,
    /// How many slots are out.
    out: u16,
    /// How many slots were ever out; those beyond are free too.
    used: u16,
    class: u8,
}

impl Slab {
    /// A new slab; `None` if there is no memory.
    pub fn new(class: SizeClass) -> Option<Self> {
        let frame = supply::take(Kind::Slab, Purpose::Kernel)?;
        let slab = Slab(frame);
        if let Some(mut state) = slab.lock() {
            *state.inside() = Inside { free: 0, out: 0, used: 0, class: class.0 };
        }
        Some(slab)
    }

    /// The slab in a frame, if the frame is one.
    pub fn at(frame: FrameNumber) -> Option<Self> {
        Metadata::get(frame)?.is(Kind::Slab).then_some(Slab(frame))
    }

    /// The frame it is in.
    pub fn frame(self) -> FrameNumber {
        self.0
    }

    /// Adds up to `most` free slots to `slots`. `None` if that is none: all are out, or of another size class, or it is no slab any more.
    pub fn take(self, slots: &mut HeapSlots, most: usize) -> Option<SlotsOut> {
        let mut state = self.lock()?;
        let inside = state.inside();
        if inside.class != slots.class.0 {
            return None;
        }
        let size = slots.class.size_bytes();
        let before = usize::from(inside.out);
        let count = most.min(slots.class.capacity() - before);
        let start = machine::frame_pointer(self.0);
        let mut first = slots.first;
        for _ in 0..count {
            // SAFETY: so many slots are free: each was out, and starts with the next one's word, or never was. Offsets of slots are within the frame. A
            // free slot is nobody's, and has room for a pointer.
            unsafe {
                let slot = if inside.free != 0 {
                    let slot = start.add((inside.free & !1) as usize);
                    inside.free = slot.cast::<u16>().read();
                    slot
                } else {
                    inside.used += 1;
                    start.add((inside.used as usize - 1) * size)
                };
                slot.cast::<*mut u8>().write(first);
                first = slot;
            }
        }
        slots.first = first;
        slots.len += count;
        inside.out += count as u16;
        (count > 0).then_some(SlotsOut { before, now: before + count })
    }

    /// How many of its slots are out.
    pub fn out(self) -> usize {
        self.lock().map_or(0, |mut state| state.inside().out.into())
    }

    /// Gives its frame back. Nothing happens, and the answer is false, while slots are out (invariant 9).
    pub fn destroy(self) -> bool {
        let Some(mut state) = self.lock() else { return false };
        if state.inside().out != 0 {
            return false;
        }
        state.0.state.store(Kind::Slab as u32, Ordering::Relaxed);
        core::mem::forget(state);
        // SAFETY: no slot is out, and since the lock is never given back nobody gets at the slab again.
        unsafe { supply::give(self.0) };
        true
    }

    fn lock(self) -> Option<Locked> {
        let metadata = Metadata::get(self.0)?;
        match Self::try_lock(metadata) {
            Ok(()) => Some(Locked(metadata)),
            Err(Self::LOCKED) => Self::wait_and_lock(metadata),
            Err(_) => None,
        }
    }

    const FREE: u32 = Kind::Slab as u32 | 1;
    const LOCKED: u32 = Kind::Slab as u32 | 2;

    /// What stands there instead of `FREE` if it fails.
    #[inline(always)]
    fn try_lock(metadata: &Metadata) -> Result<(), u32> {
        let exchanged = metadata.state.compare_exchange(Self::FREE, Self::LOCKED, Ordering::Acquire, Ordering::Relaxed);
        exchanged.map(|_| ())
    }

    #[cold]
    fn wait_and_lock(metadata: &'static Metadata) -> Option<Locked> {
        let mut wait = refs::Wait::new();
        loop {
            match Self::try_lock(metadata) {
                Ok(()) => return Some(Locked(metadata)),
                Err(Self::LOCKED) => wait.spin(0),
                Err(_) => return None,
            }
        }
    }
}

/// The right to what stands beside a slab.
struct Locked(&'static Metadata);

impl Locked {
    #[inline(always)]
    fn inside(&mut self) -> &mut Inside {
        // SAFETY: the frame is a slab, whose storage is this, and the lock is held.
        unsafe { &mut *self.0.storage.get().cast::<Inside>() }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.0.state.store(Kind::Slab as u32 | 1, Ordering::Release);
    }
}
