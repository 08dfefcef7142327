//! Where on its disk a file is: extents, as FS_IOC_FIEMAP tells them.

/// A range of a file that lies together on the disk. All numbers are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where in the file it begins.
    pub at: u64,
    /// Where on the disk.
    pub on_disk: u64,
    /// How long it is.
    pub len: u64,
    /// Whether it holds what was written. It reads as zeros otherwise.
    pub is_written: bool,
    /// Whether the file system keeps single blocks, of which those that lie together are told as one.
    pub is_merged: bool,
}

/// What a search for the next extent has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextExtent {
    /// This one.
    Found(Extent),
    /// There is none before this offset.
    NoneBefore(u64),
}
