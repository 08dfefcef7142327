//! What the caller provides.

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

    /// These blocks will be wanted soon: a hint, for reading ahead.
    fn want(&self, _first: u64, _count: u32) {}

    /// Whether the block was found to have the right checksum since it came from the disk.
    fn is_verified(&self, _block: u64) -> bool {
        false
    }

    /// The block has the right checksum. A cache may remember that, so that it is not computed each time.
    fn mark_verified(&self, _block: u64) {}

    /// Whether the block was freed by a transaction that the journal has not committed ([`Journal::is_pinned`](crate::Journal::is_pinned)):
    /// it must not be used again before that. May be asked from within `read`.
    fn is_pinned(&self, _block: u64) -> bool {
        false
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
    /// Whether the block is one of them.
    pub fn contains(self, block: u64) -> bool {
        block >= self.start && block - self.start < u64::from(self.count)
    }
}
