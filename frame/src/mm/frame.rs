//! Untyped frames: [`UFrame`], and [`USegment`] for several in a row.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use super::metadata::{FrameNumber, Kind, Metadata};
use super::supply::{self, Purpose};
use super::{PAGE_SIZE, Reader, Writer, machine, owner};

/// A frame of untyped memory: bytes that user programs may see and change at any time, so they are only ever copied in and
/// out. Counted: the frame is free when its last `UFrame` is dropped and no page table maps it.
pub struct UFrame {
    // Of kind `Untyped`, and one of its references is this one.
    number: FrameNumber,
}

impl UFrame {
    /// A frame of zeros; `None` if there is no memory.
    #[inline]
    pub fn zeroed() -> Option<Self> {
        let frame = Self::for_overwrite()?;
        // SAFETY: the frame is this one's alone.
        unsafe { machine::zero_page(machine::frame_pointer(frame.number)) };
        Some(frame)
    }

    /// A frame whose content is whatever it was: the caller overwrites all of it before anybody else sees it.
    #[inline]
    pub fn for_overwrite() -> Option<Self> {
        supply::take_charged(Kind::Untyped, Purpose::User).map(|number| UFrame { number })
    }

    /// A new frame with the same content.
    #[inline]
    pub fn duplicate(&self) -> Option<Self> {
        let copy = Self::for_overwrite()?;
        // SAFETY: both are frames in use, and differ. A program that changes the source meanwhile gets what it deserves.
        unsafe { machine::copy_page(machine::frame_pointer(copy.number), machine::frame_pointer(self.number)) };
        Some(copy)
    }

    /// Its number.
    #[inline(always)]
    pub fn number(&self) -> FrameNumber {
        self.number
    }

    /// Its owner, if it has one, counts it among the pages of objects that several can have (files of memory, shared memory) until it is free.
    #[inline]
    pub fn count_as_shared(&self) {
        owner::count_shared(self.metadata());
    }

    /// How many hold it: `UFrame`s and page-table entries.
    #[inline(always)]
    pub fn references(&self) -> u32 {
        self.metadata().references()
    }

    /// To read its bytes in `range` (clamped to the frame).
    #[inline]
    pub fn reader(&self, range: Range<usize>) -> Reader<'_> {
        let (start, len) = clamp(range, PAGE_SIZE);
        // SAFETY: within the frame, which is not given back while `self` is borrowed.
        unsafe { Reader::untyped(machine::frame_pointer(self.number).add(start), len) }
    }

    /// To write its bytes in `range` (clamped to the frame).
    #[inline]
    pub fn writer(&self, range: Range<usize>) -> Writer<'_> {
        let (start, len) = clamp(range, PAGE_SIZE);
        // SAFETY: within the frame, which is not given back while `self` is borrowed.
        unsafe { Writer::untyped(machine::frame_pointer(self.number).add(start), len) }
    }

    /// Stores a word, by its index from the start of the frame, at once: who reads it meanwhile sees the old or the new one, and with the new one all that was
    /// stored before. Nothing happens behind the frame's end.
    #[inline]
    pub fn store(&self, index: usize, word: u64) {
        if index < PAGE_SIZE / size_of::<u64>() {
            // SAFETY: within the frame and aligned; untyped memory is accessed atomically or copied as bytes.
            unsafe {
                AtomicU64::from_ptr(machine::frame_pointer(self.number).cast::<u64>().add(index))
                    .store(word, Ordering::Release);
            }
        }
    }

    /// Gives up the handle but not its reference, which the caller has from now on.
    #[inline(always)]
    pub(super) fn into_number(self) -> FrameNumber {
        let number = self.number;
        core::mem::forget(self);
        number
    }

    /// The opposite of [`into_number`](Self::into_number).
    ///
    /// # Safety
    /// The frame is untyped, and the caller has a reference to it, which it passes on.
    #[inline(always)]
    pub(super) unsafe fn from_number(number: FrameNumber) -> Self {
        UFrame { number }
    }

    #[inline(always)]
    fn metadata(&self) -> &'static Metadata {
        // SAFETY: a frame in use has a number in range.
        unsafe { Metadata::of(self.number) }
    }
}

impl Clone for UFrame {
    #[inline(always)]
    fn clone(&self) -> Self {
        self.metadata().acquire();
        UFrame { number: self.number }
    }
}

impl Drop for UFrame {
    #[inline(always)]
    fn drop(&mut self) {
        if self.metadata().release(Kind::Untyped) {
            give(self.number);
        }
    }
}

/// Gives a frame back whose last reference was just released. One place, because handles are dropped everywhere.
#[inline(never)]
fn give(number: FrameNumber) {
    // SAFETY: `drop` found that nobody else refers to the frame.
    unsafe { supply::give_charged(number) };
}

/// The start and length of a range clamped to `len`.
#[inline(always)]
fn clamp(range: Range<usize>, len: usize) -> (usize, usize) {
    let start = range.start.min(len);
    (start, range.end.min(len).saturating_sub(start))
}

/// Contiguous frames of untyped memory, a power of two of them. It holds one reference to each.
pub struct USegment {
    first: FrameNumber,
    order: u8,
}

impl USegment {
    /// `1 << order` frames of zeros; `None` if there is no such block of memory.
    pub fn zeroed(order: u8) -> Option<Self> {
        let first = supply::take_block(order, Kind::Untyped)?;
        // SAFETY: the frames are contiguous and this one's alone.
        unsafe { machine::zero(machine::frame_pointer(first), PAGE_SIZE << order) };
        Some(USegment { first, order })
    }

    /// How many frames.
    pub fn frames(&self) -> usize {
        1 << self.order
    }

    /// The number of its first frame.
    pub(crate) fn first(&self) -> FrameNumber {
        self.first
    }

    /// The physical address of its first byte.
    #[cfg(target_os = "none")]
    pub(crate) fn address(&self) -> u64 {
        u64::from(self.first.0) * PAGE_SIZE as u64
    }

    /// Writes what was stored in the cache line at `offset` back to memory, for whoever does not see the processor's cache.
    pub(crate) fn write_back(&self, offset: usize) {
        #[cfg(target_os = "none")]
        if let Some(byte) = self.word::<u8>(offset) {
            crate::arch::machine::instructions::write_back(byte);
        }
        // On a host nobody reads past the cache.
        #[cfg(not(target_os = "none"))]
        let _ = offset;
    }

    /// [Writes](Self::write_back) all of it back.
    pub(crate) fn write_all_back(&self) {
        /// No processor's is shorter.
        const CACHE_LINE: usize = 64;
        for offset in (0..PAGE_SIZE << self.order).step_by(CACHE_LINE) {
            self.write_back(offset);
        }
    }

    /// One of its frames, from 0; `None` beyond the last. It lives on when the segment is dropped.
    pub fn frame(&self, index: usize) -> Option<UFrame> {
        if index >= self.frames() {
            return None;
        }
        let number = FrameNumber(self.first.0 + index as u32);
        // SAFETY: a frame of the segment, to which it has a reference.
        unsafe {
            Metadata::of(number).acquire();
            Some(UFrame::from_number(number))
        }
    }

    /// To read its bytes in `range` (clamped to the segment).
    pub fn reader(&self, range: Range<usize>) -> Reader<'_> {
        let (start, len) = clamp(range, PAGE_SIZE << self.order);
        // SAFETY: within the segment, which is contiguous and not given back while `self` is borrowed.
        unsafe { Reader::untyped(machine::frame_pointer(self.first).add(start), len) }
    }

    /// To write its bytes in `range` (clamped to the segment).
    pub fn writer(&self, range: Range<usize>) -> Writer<'_> {
        let (start, len) = clamp(range, PAGE_SIZE << self.order);
        // SAFETY: as for `reader`.
        unsafe { Writer::untyped(machine::frame_pointer(self.first).add(start), len) }
    }
}

/// A number that a processor reads and writes at once.
///
/// # Safety
/// Any bits are one, and it is as large as it must be aligned.
pub unsafe trait Word: Copy + Default {}

// SAFETY: integers.
unsafe impl Word for u8 {}
// SAFETY: integers.
unsafe impl Word for u16 {}
// SAFETY: integers.
unsafe impl Word for u32 {}
// SAFETY: integers.
unsafe impl Word for u64 {}

impl USegment {
    /// Where a word is at `offset`, if one is there.
    fn word<T: Word>(&self, offset: usize) -> Option<*mut T> {
        let is_within = offset.checked_add(size_of::<T>()).is_some_and(|end| end <= PAGE_SIZE << self.order);
        // The segment is aligned to a page.
        (is_within && offset.is_multiple_of(size_of::<T>()))
            .then(|| machine::frame_pointer(self.first).wrapping_add(offset).cast())
    }

    /// The word at `offset`, which is a multiple of its size; 0 beyond the end. What somebody else wrote before it is seen behind this.
    pub fn load<T: Word>(&self, offset: usize) -> T {
        // SAFETY: within the segment and aligned; any bits are a word, and others change it at any time.
        let word = self.word::<T>(offset).map_or(T::default(), |word| unsafe { word.read_volatile() });
        fence(Ordering::Acquire);
        word
    }

    /// Writes the word at `offset`, a multiple of its size; nothing beyond the end. Others see it behind what was written before.
    pub fn store_word<T: Word>(&self, offset: usize, value: T) {
        fence(Ordering::Release);
        if let Some(word) = self.word::<T>(offset) {
            // SAFETY: as for `load`.
            unsafe { word.write_volatile(value) };
        }
    }
}

/// The frame of that number, if it is in use as untyped memory: for devices that a test simulates.
#[cfg(not(target_os = "none"))]
pub(crate) fn untyped_frame(number: FrameNumber) -> Option<UFrame> {
    let record = Metadata::get(number).filter(|record| record.is(Kind::Untyped))?;
    record.acquire();
    Some(UFrame { number })
}

impl Drop for USegment {
    fn drop(&mut self) {
        for number in self.first.0..self.first.0 + (1 << self.order) {
            // SAFETY: the segment has a reference to each of its frames, which ends here.
            drop(unsafe { UFrame::from_number(FrameNumber(number)) });
        }
    }
}
