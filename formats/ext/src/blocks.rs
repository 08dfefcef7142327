//! What the caller provides.

use core::ops::Range;

/// A block that is not at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent(pub u64);

/// The blocks of the disk, as far as they are at hand: a cache, with what finished transactions changed.
pub trait Blocks {
    /// Calls `with` with the bytes of a block. They are exactly as many as the file system's block size.
    ///
    /// # Errors
    /// The block is not at hand.
    fn read<R>(&self, block: u64, with: impl FnOnce(&[u8]) -> R) -> Result<R, Absent>;

    /// Calls `with` with some bytes of a block, all of which are in it. Where what is shown must be copied, no more than these need be.
    ///
    /// # Errors
    /// The block is not at hand.
    fn read_part<R>(&self, block: u64, part: Range<usize>, with: impl FnOnce(&[u8]) -> R) -> Result<R, Absent> {
        self.read(block, |bytes| with(bytes.get(part).unwrap_or_default()))
    }

    /// These blocks will be wanted soon: a hint, for reading ahead.
    fn want(&self, _first: u64, _count: u32) {}

    /// Whether the block was found to have the right checksum since it came from the disk.
    fn is_verified(&self, _block: u64) -> bool {
        false
    }

    /// The block has the right checksum. A cache may remember that, so that it is not computed each time.
    fn mark_verified(&self, _block: u64) {}

    /// The first of these blocks that were freed by transactions which the journal has not committed
    /// ([`Journal::pinned_in`](crate::Journal::pinned_in)), as a run that has at least one of them: they must not be used again before that.
    /// May be asked from within `read`.
    fn pinned_in(&self, _run: Run) -> Option<Run> {
        None
    }
}

/// Consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// The first.
    pub start: u64,
    /// How many.
    pub count: u32,
}

impl Run {
    /// The block after the last.
    pub fn end(self) -> u64 {
        self.start + u64::from(self.count)
    }

    /// Those that are in the other run as well.
    pub fn common(self, other: Self) -> Option<Self> {
        let (start, end) = (self.start.max(other.start), self.end().min(other.end()));
        (start < end).then(|| Self { start, count: (end - start) as u32 })
    }
}
