//! Which frames are handed out: a buddy allocator.

use frame::mm::{FrameNumber, FramePolicy};

/// All frames that are free.
pub static FRAMES: Buddy = Buddy {};

/// A buddy allocator over the words that the framework keeps for each unused frame.
pub struct Buddy {}

impl FramePolicy for Buddy {
    fn add(&self, _first: FrameNumber, _count: usize) {}
    fn allocate(&self, _order: u8) -> Option<FrameNumber> {
        None
    }
    fn free(&self, _first: FrameNumber, _order: u8) {}
    fn available(&self) -> usize {
        0
    }
}
