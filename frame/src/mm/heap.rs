//! The kernel's heap: slots of slabs for what is up to a page, and blocks of frames for what is larger.
//!
//! Each core keeps a *magazine* of free slots of each size class, linked through the slots themselves, so that most
//! allocations and releases are a few instructions. Behind them is the slab policy, which is asked for a batch at a time.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
#[cfg(feature = "scarce")]
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::core_local;
use super::metadata::{Kind, Metadata};
use super::slab::{HeapSlots, SizeClass, SlabPolicy};
use super::{PAGE_SIZE, machine, scattered, supply};

/// The heap, as the language's allocator.
pub struct Heap;

#[cfg(target_os = "none")]
#[global_allocator]
static HEAP: Heap = Heap;

static POLICY: PolicyCell = PolicyCell(UnsafeCell::new(None));

struct PolicyCell(UnsafeCell<Option<&'static dyn SlabPolicy>>);

// SAFETY: written once by `init`, before any other core runs.
unsafe impl Sync for PolicyCell {}

/// Sets the policy. Called once, at boot; before, nothing can be allocated.
pub(super) fn init(policy: &'static dyn SlabPolicy) {
    // SAFETY: the boot core alone runs, and nobody is at the policy.
    unsafe { *POLICY.0.get() = Some(policy) };
}

fn policy() -> Option<&'static dyn SlabPolicy> {
    // SAFETY: only `init` writes it, before others read.
    unsafe { *POLICY.0.get() }
}

/// Free slots of one class at a core.
pub(super) struct Magazine {
    /// The first; each starts with a pointer to the next.
    first: AtomicPtr<u8>,
    len: AtomicU32,
}

/// A core's magazines.
pub(super) struct Magazines([Magazine; SizeClass::COUNT]);

impl Magazines {
    pub(super) const fn new() -> Self {
        Magazines([const { Magazine { first: AtomicPtr::new(null_mut()), len: AtomicU32::new(0) } }; SizeClass::COUNT])
    }

    #[inline(always)]
    fn of(&self, class: SizeClass) -> &Magazine {
        &self.0[class.index()]
    }
}

impl Magazine {
    #[inline(always)]
    fn pop(&self) -> Option<NonNull<u8>> {
        let slot = NonNull::new(self.first.load(Ordering::Relaxed))?;
        // SAFETY: a slot in the magazine is nobody else's, and starts with a pointer to the next.
        self.first.store(unsafe { slot.cast::<*mut u8>().read() }, Ordering::Relaxed);
        self.len.store(self.len.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        Some(slot)
    }

    /// Adds a slot; how many there are then.
    ///
    /// # Safety
    /// The slot is nobody's, and of the magazine's class.
    #[inline(always)]
    unsafe fn push(&self, slot: NonNull<u8>) -> u32 {
        // SAFETY: a slot has at least 16 bytes, aligned to 16, and is the magazine's from here on.
        unsafe { slot.cast::<*mut u8>().write(self.first.load(Ordering::Relaxed)) };
        self.first.store(slot.as_ptr(), Ordering::Relaxed);
        let len = self.len.load(Ordering::Relaxed) + 1;
        self.len.store(len, Ordering::Relaxed);
        len
    }

    /// Adds slots, all of its class, to a magazine that has none.
    fn fill(&self, slots: HeapSlots) {
        let (first, len) = slots.into_list();
        self.first.store(first, Ordering::Relaxed);
        self.len.store(len as u32, Ordering::Relaxed);
    }

    /// Takes up to `count` slots out. `class` is the magazine's.
    fn split(&self, class: SizeClass, count: u32) -> HeapSlots {
        let (first, len) = (self.first.load(Ordering::Relaxed), self.len.load(Ordering::Relaxed));
        let count = count.min(len);
        if count == 0 {
            return HeapSlots::none(class);
        }
        let mut last = first.cast::<*mut u8>();
        // SAFETY: the magazine has `len` slots, at least `count`, and each starts with a pointer to the next. They came from slabs and are nobody's.
        unsafe {
            for _ in 1..count {
                last = last.read().cast();
            }
            self.first.store(last.replace(null_mut()), Ordering::Relaxed);
            self.len.store(len - count, Ordering::Relaxed);
            HeapSlots::from_list(class, first, count as usize)
        }
    }
}

/// How many free slots of a class a core keeps at most: about two pages of them, within bounds.
#[inline(always)]
const fn limit(class: SizeClass) -> u32 {
    const LIMITS: [u8; SizeClass::COUNT] = {
        let mut limits = [0; SizeClass::COUNT];
        let mut index = 0;
        while index < limits.len() {
            let slots = 2 * PAGE_SIZE / SizeClass::SIZES[index];
            limits[index] = if slots > 64 {
                64
            } else if slots < 8 {
                8
            } else {
                slots as u8
            };
            index += 1;
        }
        limits
    };
    LIMITS[class.index()] as u32
}

/// Slots from the policy: one for the caller, a few for the magazine, which has none.
#[cold]
#[inline(never)]
fn refill(class: SizeClass) -> *mut u8 {
    let take = || {
        let mut slots = HeapSlots::none(class);
        // The policy may be slow; but what it is asked for beyond the one is not always needed.
        policy()?.take(&mut slots, 1 + limit(class) as usize / 4);
        if slots.class() != class {
            panic!("the slab policy gave slots of another size");
        }
        let slot = slots.pop()?;
        core_local::here().slots.of(class).fill(slots);
        Some(slot)
    };
    let slot = take().or_else(|| {
        super::trim();
        take()
    });
    slot.map_or(null_mut(), NonNull::as_ptr)
}

/// Gives half of a full magazine back to the policy.
#[cold]
#[inline(never)]
fn spill(class: SizeClass) {
    if let Some(policy) = policy() {
        policy.give(core_local::here().slots.of(class).split(class, limit(class) / 2));
    }
}

/// The order of the block for a size beyond the slabs'.
fn order(layout: Layout) -> Option<u8> {
    // A block is aligned to its size.
    let pages = layout.size().max(layout.align()).div_ceil(PAGE_SIZE);
    let order = pages.checked_next_power_of_two()?.trailing_zeros();
    (order <= supply::MAX_ORDER.into()).then_some(order as u8)
}

/// Blocks from this size on leave something to those that cannot do without: see [`supply::can_spare`].
pub const LARGE_PAGES: usize = 16;

/// From how many pages on blocks are refused, whatever memory there is.
#[cfg(feature = "scarce")]
static REFUSED_FROM: AtomicUsize = AtomicUsize::new(usize::MAX);

/// From now on blocks of `pages` pages or more are refused, as if memory were short: who asks for one must be able to do without.
#[cfg(feature = "scarce")]
pub fn refuse_blocks_from(pages: usize) {
    REFUSED_FROM.store(pages, Ordering::Relaxed);
}

/// The pages of a block that is not contiguous; `None` if it is to be aligned beyond a page.
fn scattered_pages(layout: Layout) -> Option<usize> {
    (layout.align() <= PAGE_SIZE).then(|| layout.size().div_ceil(PAGE_SIZE))
}

/// A block of frames for a large object; null if there is none. Kept out of `alloc`, which is to be small: it stands wherever something is made.
#[cold]
#[inline(never)]
fn alloc_block(layout: Layout) -> *mut u8 {
    let pages = layout.size().div_ceil(PAGE_SIZE);
    #[cfg(feature = "scarce")]
    if pages >= REFUSED_FROM.load(Ordering::Relaxed) {
        return null_mut();
    }
    if pages >= LARGE_PAGES && !supply::can_spare(pages) {
        return null_mut();
    }
    let contiguous = || order(layout).and_then(|order| supply::take_block(order, Kind::Block));
    let block = contiguous().or_else(|| {
        super::trim();
        contiguous()
    });
    match block {
        Some(first) => machine::frame_pointer(first),
        None => scattered_pages(layout).and_then(scattered::take).unwrap_or(null_mut()),
    }
}

/// Takes back what [`alloc_block`] gave.
///
/// # Safety
/// It came from there with this layout, and the caller is done with it.
#[cold]
#[inline(never)]
unsafe fn dealloc_block(pointer: *mut u8, layout: Layout) {
    if scattered::has(pointer) {
        // SAFETY: the caller's promise.
        return unsafe { scattered::give(pointer.addr(), scattered_pages(layout).unwrap_or(0)) };
    }
    let Some(order) = order(layout) else { return };
    let first = machine::pointer_frame(pointer);
    if !Metadata::get(first).is_some_and(|metadata| metadata.is(Kind::Block)) {
        panic!("a block that is not in use was freed");
    }
    // SAFETY: the caller's promise.
    unsafe { supply::give_block(first, order) };
}

// SAFETY: slots are nobody's when they are given out and until they come back, are at least as large as asked for (the class
// is computed from the layout, invariant 10), and aligned by the class's size; blocks are likewise.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match SizeClass::of(layout.size(), layout.align()) {
            Some(class) => match core_local::here().slots.of(class).pop() {
                Some(slot) => slot.as_ptr(),
                None => refill(class),
            },
            None => alloc_block(layout),
        }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        match SizeClass::of(layout.size(), layout.align()) {
            Some(class) => {
                // SAFETY: it came from `alloc` with this layout, so it is a slot of this class, and the caller is done with it.
                let len = unsafe { core_local::here().slots.of(class).push(NonNull::new_unchecked(pointer)) };
                if len > limit(class) {
                    spill(class);
                }
            }
            // SAFETY: the caller's promise.
            None => unsafe { dealloc_block(pointer, layout) },
        }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size, rounded up to the alignment, does not overflow.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let same = match (SizeClass::of(layout.size(), layout.align()), SizeClass::of(size, layout.align())) {
            (Some(old), Some(new)) => old == new,
            (None, None) if scattered::has(pointer) => scattered_pages(layout) == scattered_pages(new),
            (None, None) => order(layout) == order(new),
            _ => false,
        };
        if same {
            return pointer;
        }
        // SAFETY: the caller's promises; the new object is nobody else's.
        unsafe {
            let moved = self.alloc(new);
            if !moved.is_null() {
                machine::copy(moved, pointer, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}

/// Gives back the free slots that this core keeps at hand, and slabs that are empty.
pub(super) fn trim() {
    for index in 0..SizeClass::COUNT {
        let Some(class) = SizeClass::at(index) else { continue };
        while core_local::here().slots.of(class).len.load(Ordering::Relaxed) > 0 {
            spill(class);
        }
    }
    if let Some(policy) = policy() {
        policy.trim();
    }
}
