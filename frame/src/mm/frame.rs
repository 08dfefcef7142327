//! Physical frames: who uses each, how often.

use core::ops::Range;
use core::sync::atomic::AtomicU32;

use super::{Reader, Writer};

/// A frame's number: its physical address divided by the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameNumber(pub u32);

/// Which unused frames are handed out. Blocks are `1 << order` frames, aligned to their size. Frames that come back are
/// checked (invariant 1): handing out one that is in use is a bug in the policy and stops the kernel.
pub trait FramePolicy: Sync {
    /// Takes in frames that were never used before (at boot).
    fn add(&self, first: FrameNumber, count: usize);
    /// A free block; `None` if there is none.
    fn allocate(&self, order: u8) -> Option<FrameNumber>;
    /// Takes a block back.
    fn free(&self, first: FrameNumber, order: u8);
    /// How many frames are free.
    fn available(&self) -> usize;
}

/// Words in which the policy keeps its lists, one set for each frame, meaningful only while the frame is unused.
#[derive(Default)]
#[allow(missing_docs)]
pub struct FrameLink {
    pub next: AtomicU32,
    pub previous: AtomicU32,
    pub tag: AtomicU32,
}

/// The policy's words about a frame; `None` beyond the last frame.
pub fn frame_link(_frame: FrameNumber) -> Option<&'static FrameLink> {
    None
}

/// How many frames there are, used or not (the highest number + 1).
pub fn frame_count() -> usize {
    0
}

/// A frame of untyped memory: bytes that user programs may see and change at any time, so they are only ever copied in and
/// out. Counted: the frame is free when its last `UFrame` is dropped and no page table maps it.
pub struct UFrame {
    number: FrameNumber,
}

impl UFrame {
    /// A frame of zeros; `None` if there is no memory.
    pub fn zeroed() -> Option<Self> {
        None
    }

    /// A frame whose content is whatever it was: the caller overwrites all of it before anybody else sees it.
    pub fn for_overwrite() -> Option<Self> {
        None
    }

    /// A new frame with the same content.
    pub fn duplicate(&self) -> Option<Self> {
        None
    }

    /// Its number.
    pub fn number(&self) -> FrameNumber {
        self.number
    }

    /// How many hold it: `UFrame`s and page-table entries.
    pub fn references(&self) -> u32 {
        1
    }

    /// To read its bytes in `range` (clamped to the frame).
    pub fn reader(&self, _range: Range<usize>) -> Reader<'_> {
        unimplemented!()
    }

    /// To write its bytes in `range` (clamped to the frame).
    pub fn writer(&self, _range: Range<usize>) -> Writer<'_> {
        unimplemented!()
    }
}

impl Clone for UFrame {
    fn clone(&self) -> Self {
        UFrame { number: self.number }
    }
}

impl Drop for UFrame {
    fn drop(&mut self) {}
}
