//! [`Format`]: what a file system's crate provides.

use alloc::vec::Vec;

use super::View;
use crate::error::Errno;
use crate::fs::{FileKind, Metadata};

/// Why something cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Blocks must come first; the [`View`] knows what to wait for.
    Absent,
    /// An error of a call.
    Errno(Errno),
    /// The file system contradicts itself: where.
    Corrupt(&'static str),
    /// The file system has something that is not supported: what.
    Unsupported(&'static str),
}

/// What a format says.
pub type Said<T> = Result<T, Problem>;

/// Where a page of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the device at this byte, a multiple of a sector's, and so many pages lie there one behind the other: at least one.
    Device {
        /// The first byte.
        offset: u64,
        /// How many pages.
        pages: u32,
    },
    /// Nowhere: it is zeros.
    Hole,
    /// Not as it is: [`Format::fill`] makes it.
    Made,
}

/// A name in a directory.
pub struct Listed<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The number of its inode.
    pub number: u64,
    /// What it is, if the directory says so.
    pub kind: Option<FileKind>,
    /// Where a listing goes on behind it: at least 3.
    pub next: u64,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Pages of 4096 bytes.
    pub pages: u64,
    /// Those that files have.
    pub used_pages: u64,
    /// Inodes.
    pub inodes: u64,
    /// Those that are in use.
    pub used_inodes: u64,
}

/// A format of file systems, as it is on one disk. Its functions are pure: they may be run any number of times.
pub trait Format: Send + Sync + Sized + 'static {
    /// A file, as it was read.
    type Node: Send + Sync + 'static;

    /// Its name in `/proc/filesystems`.
    const NAME: &'static str;
    /// Its magic number in statfs(2).
    const MAGIC: u32;
    /// Whether such file systems can be written elsewhere: who asks for that here is told EROFS.
    const IS_WRITTEN: bool;

    /// Opens what is on a disk of so many bytes. `Errno(EINVAL)`: it is no such file system.
    fn open(view: &View<'_>, bytes: u64) -> Said<Self>;

    /// How much there is.
    fn space(&self, view: &View<'_>) -> Said<Space>;

    /// The root directory's number.
    fn root(&self) -> u64;

    /// Reads a file, and what stat(2) tells of it.
    fn node(&self, number: u64, view: &View<'_>) -> Said<(Self::Node, Metadata)>;

    /// The extended attributes of a file.
    fn attributes(&self, node: &Self::Node, view: &View<'_>) -> Said<Vec<(Vec<u8>, Vec<u8>)>>;

    /// The number of a name's inode. `Errno(ENOENT)`.
    fn look_up(&self, directory: &Self::Node, name: &[u8], view: &View<'_>) -> Said<u64>;

    /// Tells names from a position on, without `.` and `..`, until `each` says false or fails.
    fn list(
        &self,
        directory: &Self::Node,
        from: u64,
        view: &View<'_>,
        each: &mut dyn FnMut(Listed<'_>) -> Said<bool>,
    ) -> Said<()>;

    /// Where a symbolic link leads.
    fn read_link(&self, node: &Self::Node, view: &View<'_>) -> Said<Vec<u8>>;

    /// Where the page of that index is.
    fn place(&self, node: &Self::Node, page: u32, view: &View<'_>) -> Said<Place>;

    /// Copies content from `offset` on: how many bytes, fewer than `to` has only at the end.
    fn fill(&self, node: &Self::Node, offset: u64, to: &mut [u8], view: &View<'_>) -> Said<usize>;
}
