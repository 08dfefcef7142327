//! One record for each physical frame, used or not.
//!
//! The record's *state* is one word: what the frame is used as (three bits) and how many references there are (the rest). It
//! is zero exactly while the frame is unused, so that "is it unused?" and "was this the last reference?" are one comparison
//! each. The *storage* belongs to whatever kind of frame it is at the moment; the *link* belongs to the policies (safe code
//! can write it at any time, so nothing here relies on it).

use core::cell::UnsafeCell;
use core::ops::Range;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use super::{PAGE_SHIFT, PAGE_SIZE, machine};

/// A frame's number: its physical address divided by the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameNumber(pub u32);

/// Words in which the policies keep their lists, one set for each frame: the frame policy's while the frame is unused, the
/// slab policy's while it is a slab. Zero at boot. While a frame is a page of user memory or a page table, or a core has it at hand, its `previous` is the frame's owner.
#[derive(Default)]
#[allow(missing_docs)]
pub struct FrameLink {
    pub next: AtomicU32,
    pub previous: AtomicU32,
    pub tag: AtomicU32,
}

/// What a frame is used as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// Bytes that user programs may see: a `UFrame`, or mapped for a user program.
    Untyped = 1 << KIND_SHIFT,
    /// A `Frame<M>`.
    Typed = 2 << KIND_SHIFT,
    /// A page table.
    Table = 3 << KIND_SHIFT,
    /// A slab of the heap. A count of 2 means that a core works on it.
    Slab = 4 << KIND_SHIFT,
    /// A large object of the heap, or a kernel stack.
    Block = 5 << KIND_SHIFT,
    /// Not memory, or in use since before there were metadata.
    Reserved = 7 << KIND_SHIFT,
}

const KIND_SHIFT: u32 = 29;
const COUNT_MASK: u32 = (1 << KIND_SHIFT) - 1;
/// From here on the count neither rises nor falls: the frame is never freed. It takes gigabytes of page tables full of
/// entries for one frame to get here.
const PINNED: u32 = 1 << (KIND_SHIFT - 1);

/// What is known about a frame.
#[repr(C)]
pub(super) struct Metadata {
    pub(super) state: AtomicU32,
    pub(super) link: FrameLink,
    /// For whoever uses the frame; its kind says how.
    pub(super) storage: UnsafeCell<[u64; 2]>,
}

const _: () = assert!(size_of::<Metadata>() == 32);

static RECORDS: AtomicPtr<Metadata> = AtomicPtr::new(core::ptr::null_mut());
/// How many records there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// How many frames are memory.
static MEMORY: AtomicUsize = AtomicUsize::new(0);

/// How many frames of memory the machine has, used or not, without the kernel's image and what firmware keeps for itself.
#[inline(always)]
pub fn frame_count() -> usize {
    MEMORY.load(Ordering::Relaxed)
}

/// The highest frame number + 1. Not all below are memory.
#[inline(always)]
pub(super) fn end_of_memory() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// The policy's words about a frame; `None` beyond the last frame.
#[inline(always)]
pub fn frame_link(frame: FrameNumber) -> Option<&'static FrameLink> {
    Metadata::get(frame).map(|record| &record.link)
}

/// All records, for loops.
#[derive(Clone, Copy)]
pub(super) struct Records(*const Metadata);

/// All records.
#[inline(always)]
pub(super) fn records() -> Records {
    Records(RECORDS.load(Ordering::Relaxed))
}

impl Records {
    /// As [`Metadata::of`].
    ///
    /// # Safety
    /// The number is below [`end_of_memory`].
    #[inline(always)]
    pub(super) unsafe fn of(self, frame: FrameNumber) -> &'static Metadata {
        // SAFETY: `init` made that many records, for ever, of which all fields are atomic or in a cell.
        unsafe { &*self.0.add(frame.0 as usize) }
    }
}

impl Metadata {
    /// The record of a frame, if there is such a frame.
    #[inline(always)]
    pub(super) fn get(frame: FrameNumber) -> Option<&'static Metadata> {
        if (frame.0 as usize) < end_of_memory() {
            // SAFETY: the number is in range.
            Some(unsafe { Metadata::of(frame) })
        } else {
            None
        }
    }

    /// The record of a frame.
    ///
    /// # Safety
    /// The number is below [`end_of_memory`].
    #[inline(always)]
    pub(super) unsafe fn of(frame: FrameNumber) -> &'static Metadata {
        // SAFETY: the caller's promise.
        unsafe { records().of(frame) }
    }

    /// How many references there are.
    #[inline(always)]
    pub(super) fn references(&self) -> u32 {
        self.state.load(Ordering::Relaxed) & COUNT_MASK
    }

    /// Whether the frame is in use as `kind`.
    #[inline(always)]
    pub(super) fn is(&self, kind: Kind) -> bool {
        self.state.load(Ordering::Relaxed) & !COUNT_MASK == kind as u32
    }

    /// Turns an unused frame into one of `kind` with one reference (invariant 1).
    ///
    /// # Panics
    /// The frame is in use: the policy handed it out twice.
    #[inline(always)]
    pub(super) fn claim(&self, kind: Kind) {
        if self.state.swap(kind as u32 | 1, Ordering::Acquire) != 0 {
            panic!("the frame policy handed out a frame that is in use");
        }
    }

    /// One more reference. The caller has one.
    #[inline(always)]
    pub(super) fn acquire(&self) {
        let before = self.state.fetch_add(1, Ordering::Relaxed);
        if before & PINNED != 0 {
            self.pin();
        }
    }

    /// One reference less; whether it was the last. Then the frame is still of its kind, with no references, and the caller
    /// alone knows of it.
    #[inline(always)]
    #[must_use]
    pub(super) fn release(&self, kind: Kind) -> bool {
        let before = self.state.fetch_sub(1, Ordering::Release);
        if before == kind as u32 | 1 {
            core::sync::atomic::fence(Ordering::Acquire);
            return true;
        }
        if before & PINNED != 0 {
            self.pin();
        }
        false
    }

    #[cold]
    fn pin(&self) {
        let kind = self.state.load(Ordering::Relaxed) & !COUNT_MASK;
        self.state.store(kind | PINNED | PINNED >> 1, Ordering::Relaxed);
    }
}

/// The whole frames in a physical range, if there are any that a `FrameNumber` can name.
pub(super) fn whole_frames(range: Range<usize>) -> Option<(FrameNumber, usize)> {
    let first = range.start.div_ceil(PAGE_SIZE);
    let end = (range.end / PAGE_SIZE).min(u32::MAX as usize);
    (first < end).then(|| (FrameNumber(first as u32), end - first))
}

/// Makes the records of all frames up to the last usable or `filled` one; those that are not usable are reserved. Gives the physical
/// range that the records take.
pub(super) fn init(usable: impl Iterator<Item = Range<usize>> + Clone, filled: Range<usize>) -> Range<usize> {
    let frames = |range| whole_frames(range).map_or(0..0, |(first, count)| first.0 as usize..first.0 as usize + count);
    let count = usable.clone().map(|range| frames(range).end).max().unwrap_or(0).max(frames(filled.clone()).end);
    MEMORY.store(usable.clone().chain([filled]).map(|range| frames(range).len()).sum(), Ordering::Relaxed);
    let pages = (count * size_of::<Metadata>()).div_ceil(PAGE_SIZE);
    // Low memory is left to those who need it.
    let place = |floor: usize| {
        usable
            .clone()
            .map(frames)
            .filter(|range| range.start >= floor && range.len() > pages)
            .map(|range| range.start)
            .min()
    };
    let start = place(1 << (20 - PAGE_SHIFT)).or_else(|| place(0)).expect("no memory for the frames' metadata");
    machine::provide(FrameNumber(start as u32), pages);
    let records = machine::frame_pointer(FrameNumber(start as u32));
    // SAFETY: the frames are unused, contiguous and were just chosen for this. All zero is a valid record.
    unsafe { machine::zero(records, pages * PAGE_SIZE) };
    RECORDS.store(records.cast(), Ordering::Relaxed);
    COUNT.store(count, Ordering::Release);

    let reserve = |range: Range<usize>| {
        for number in range {
            if let Some(record) = Metadata::get(FrameNumber(number as u32)) {
                record.state.store(Kind::Reserved as u32 | 1, Ordering::Relaxed);
            }
        }
    };
    reserve(start..start + pages);
    // The gaps between usable ranges: each starts at 0 or behind a range, and ends where the next range starts, or with the last record.
    for gap in core::iter::once(0).chain(usable.clone().map(|range| frames(range).end)) {
        let inside = usable.clone().map(frames).any(|range| range.contains(&gap));
        let next = usable.clone().map(frames).filter(|range| !range.is_empty() && range.start >= gap);
        if !inside {
            reserve(gap..next.map(|range| range.start).min().unwrap_or(count));
        }
    }
    start << PAGE_SHIFT..(start + pages) << PAGE_SHIFT
}
