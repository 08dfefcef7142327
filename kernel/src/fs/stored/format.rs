//! [`Format`]: what a file system's crate provides.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering;

use frame::Cx;

use super::View;
pub use super::journal::{Changes, Journal};
use crate::error::Errno;
use crate::fs::file_system::Capacity;
use crate::fs::{Creation, FileKind, InodeFlags, Metadata, NextExtent, Rename, Timestamp};
pub use ext::Growth;

/// Why something cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Blocks must come first; the [`View`] knows what to wait for.
    Absent,
    /// The journal must be committed first: only then is there room.
    CommitFirst,
    /// An error of a call.
    Errno(Errno),
    /// The file system contradicts itself: where.
    Corrupt(&'static str),
    /// The file system has something that is not supported: what.
    Unsupported(&'static str),
}

/// Extended attributes: names and values.
pub type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

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
    /// Those that are free and kept for the superuser, of whom nobody knows here.
    pub kept_pages: u64,
    /// Inodes.
    pub inodes: u64,
    /// Those that are in use.
    pub used_inodes: u64,
    /// Bytes of the unit in which files get space; 0: a page.
    pub block_bytes: u32,
    /// What statfs(2) tells as the longest name; 0: 255.
    pub longest_name: u32,
}

impl Space {
    /// Those that are free for everybody.
    pub fn free_pages(&self) -> u64 {
        self.pages.saturating_sub(self.used_pages).saturating_sub(self.kept_pages)
    }

    /// Says so to whoever asks how much there is.
    pub fn tell(&self, capacity: &Capacity) {
        for (figure, value) in [
            (&capacity.pages, self.pages),
            (&capacity.used_pages, self.used_pages),
            (&capacity.kept_pages, self.kept_pages),
            (&capacity.inodes, self.inodes),
            (&capacity.used_inodes, self.used_inodes),
        ] {
            figure.store(value, Ordering::Relaxed);
        }
        for (figure, value) in [(&capacity.block_bytes, self.block_bytes), (&capacity.longest_name, self.longest_name)]
        {
            if value != 0 {
                figure.store(value, Ordering::Relaxed);
            }
        }
    }
}

/// A change of a file system. Inodes are named by their numbers.
pub enum Change<'a> {
    /// Makes a file in a directory.
    Create(u64, &'a [u8], &'a Creation<'a>),
    /// Makes a file without a name, beside those of a directory.
    CreateNameless(u64, &'a Creation<'a>),
    /// Gives an inode, whose metadata are these, a name in a directory.
    Link(u64, Metadata, u64, &'a [u8]),
    /// Takes a name out of a directory.
    Unlink(u64, &'a [u8]),
    /// Takes an empty directory out of a directory.
    RemoveDirectory(u64, &'a [u8]),
    /// Moves a name of a directory to another.
    Rename((u64, &'a [u8]), (u64, &'a [u8]), Rename),
    /// Keeps mode, owners, times and flags of an inode.
    Keep(u64, Metadata, InodeFlags),
    /// Keeps an attribute of an inode; `None`: there is none of that name.
    Attribute(u64, &'a [u8], Option<&'a [u8]>),
    /// Sees to it that bytes of a file have blocks, as many from the start on as fit one change, and that the file is that long if it has to be.
    Allocate(u64, Range<u64>, Allocation),
    /// Gives a file a length. What is beyond has to be [cut](Change::Cut) if there is more.
    Resize(u64, u64),
    /// Frees some of what a file has behind its end.
    Cut(u64),
    /// Frees some of the blocks that lie wholly in a range, from its end on.
    Punch(u64, Range<u64>),
    /// Frees some of what an inode has that has no name, at last itself.
    Delete(u64),
    /// Goes on with what was begun before the last crash.
    Recover,
    /// The file system is in use from now on, with a journal or without.
    Begin(bool),
    /// All is written that there was.
    End,
}

impl Change<'_> {
    /// Whether a call asks for it that can wait for room, and not the volume's task, which makes room.
    pub fn is_of_a_call(&self) -> bool {
        matches!(
            self,
            Change::Create(..)
                | Change::CreateNameless(..)
                | Change::Link(..)
                | Change::Rename(..)
                | Change::Attribute(..)
                | Change::Allocate(..)
        )
    }
}

/// What blocks are allocated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// To be written now.
    Written,
    /// The same, and only as many as lie together.
    Together,
    /// To be there when they are written: they read as zeros. The length changes.
    Ahead,
    /// The same, and the length stays.
    AheadOfEnd,
}

/// What came of a change.
pub struct Done<N> {
    /// The inode that was made.
    pub made: Option<(u64, N)>,
    /// There is more to do in another change.
    pub has_more: bool,
    /// Up to where bytes have blocks; of a range that is [punched](Change::Punch), from where on they have none.
    pub reached: u64,
    /// Where on the device the first of them is, if they lie [together](Allocation::Together).
    pub place: Option<u64>,
    /// What inodes are like now whose names, length or blocks have changed.
    pub touched: Vec<(u64, Metadata)>,
}

impl<N> Default for Done<N> {
    fn default() -> Self {
        Done { made: None, has_more: false, reached: 0, place: None, touched: Vec::new() }
    }
}

impl<N> Done<N> {
    /// What an inode is like now.
    pub fn of(&self, number: u64) -> Option<&Metadata> {
        self.touched.iter().find(|(other, _)| *other == number).map(|(_, now)| now)
    }
}

/// What has to be done before a file system can be opened that was not left as it should have been.
pub trait Recovery: Send {
    /// The next thing to do. What it says is done before it is called again.
    fn step(&mut self, view: &View<'_>) -> Said<Repair>;
}

/// One thing to do in a recovery.
pub enum Repair {
    /// There is more.
    More,
    /// Write these bytes at this place of the device.
    Write(u64, Box<[u8]>),
    /// Have the disk keep what was written.
    Flush,
    /// Nothing is left.
    Done,
}

/// A format of file systems, as it is on one disk. Its functions are pure: they may be run any number of times.
pub trait Format: Send + Sync + Sized + 'static {
    /// A file, as it was read.
    type Node: Send + Sync + 'static;

    /// Whether there is code that writes it.
    const CAN_BE_WRITTEN: bool;
    /// Whether a number leads to the same file for ever. If not, it does as long as the file is in memory.
    const NUMBERS_STAY: bool = true;
    /// Whether files can have holes, and any part of them can be written at first. If not, a file has blocks up to its end, and is written from its beginning on.
    const HAS_HOLES: bool = true;
    /// Whether what is written of a file goes to the disk's cache first: then that has to be written for it to be on the disk.
    const WRITES_THROUGH_DISK: bool = false;
    /// Whether its inodes have flags that can be set.
    const HAS_FLAGS: bool;
    /// Whether access control lists can be among the attributes of its files.
    const HAS_ACLS: bool;
    /// Its magic number in statfs(2).
    const MAGIC: u32;

    /// How far it is opened, where that is done in pieces.
    type Opening: Default + Send;

    /// Whether it has that option of mount(2), besides those that all formats have.
    fn has_option(_option: &[u8]) -> bool {
        false
    }

    /// Opens what is on a disk of so many bytes, to be written if that is asked for, with options each of which it has or all formats have. `Errno(EINVAL)`: it is no such file system; `Errno(EROFS)`: it cannot be written.
    fn open(view: &View<'_>, bytes: u64, to_write: bool, options: &[u8], opening: &mut Self::Opening) -> Said<Self>;

    /// What has to be done before it can be opened.
    fn recovery(_view: &View<'_>, _bytes: u64) -> Said<Option<Box<dyn Recovery>>> {
        Ok(None)
    }

    /// Whether it is opened to be written.
    fn is_written(&self) -> bool {
        false
    }

    /// Bytes of a block, as changes are counted in.
    fn block_bytes(&self) -> u32;

    /// Its journal, which is empty.
    fn journal(&self, _view: &View<'_>) -> Said<Journal> {
        Err(Problem::Errno(Errno::EROFS))
    }

    /// Makes a change on top of what there is: nothing has happened before the caller has put what comes of it in its place.
    fn change(&self, _what: &Change<'_>, _now: Timestamp, _view: &View<'_>) -> Said<(Done<Self::Node>, Changes)> {
        Err(Problem::Errno(Errno::EROFS))
    }

    /// What a change has changed is true from now on.
    fn is_true(&self, _changes: &Changes) {}

    /// How many numbers lead to nothing known any more: another file may have each by now. Of numbers that stay there is none.
    fn forgotten(&self, _cx: &Cx) -> u64 {
        0
    }

    /// Up to where a file was written that can only be written from its beginning on.
    fn written_until(&self, _node: &Self::Node, _view: &View<'_>) -> Said<u64> {
        Ok(u64::MAX)
    }

    /// Says that others must have their turn before a call that has done something goes on.
    fn others_first(&self, _view: &View<'_>) -> Problem {
        Problem::Errno(Errno::EIO)
    }

    /// The permissions that a file of that kind gets which has some and is to have others. EPERM.
    fn permissions(&self, _kind: FileKind, _now: u32, wanted: u32) -> Result<u32, Errno> {
        Ok(wanted)
    }

    /// Whether files can belong to that user and group.
    fn can_be_owned_by(&self, _uid: u32, _gid: u32) -> bool {
        true
    }

    /// The next data or hole of a file from `from` on and before its end, as far as was looked: `Err` says where to go on.
    fn seek(&self, _node: &Self::Node, from: u64, is_data: bool, _view: &View<'_>) -> Said<Result<u64, u64>> {
        Ok(if is_data { Ok(from) } else { Err(u64::MAX) })
    }

    /// The first extent of a file in a range of bytes, cut to blocks that are in it, as far as was looked.
    fn extent(&self, _node: &Self::Node, _range: Range<u64>, _view: &View<'_>) -> Said<NextExtent> {
        Err(Problem::Errno(Errno::EOPNOTSUPP))
    }

    /// How a file gets blocks from its end on, if that may be done later than its pages become dirty; `None`: it gets them at once. Blocks are as large as pages then.
    fn delayed(&self, _node: &Self::Node, _view: &View<'_>) -> Said<Option<Growth>> {
        Ok(None)
    }

    /// Up to where bytes of a file from `from` on can be written as they are: `from` if a block is missing.
    fn written_to(&self, _node: &Self::Node, _range: Range<u64>, _view: &View<'_>) -> Said<u64> {
        Err(Problem::Errno(Errno::EROFS))
    }

    /// How much there is.
    fn space(&self, view: &View<'_>) -> Said<Space>;

    /// The root directory's number.
    fn root(&self) -> u64;

    /// Reads a file, and what stat(2) tells of it.
    fn node(&self, number: u64, view: &View<'_>) -> Said<(Self::Node, Metadata)>;

    /// The flags of a file that was read just now.
    fn flags(&self, _node: &Self::Node) -> InodeFlags {
        InodeFlags::empty()
    }

    /// The extended attributes of a file.
    fn attributes(&self, node: &Self::Node, view: &View<'_>) -> Said<Attributes>;

    /// The number of a name's inode. `Errno(ENOENT)`.
    fn look_up(&self, directory: &Self::Node, name: &[u8], view: &View<'_>) -> Said<u64>;

    /// Whether two names in a directory are one.
    fn is_same_name(&self, one: &[u8], other: &[u8]) -> bool {
        one == other
    }

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

    /// Where bytes of a file belong that are not written as whole pages: from which byte of the file, to which of the device, and how many. What has no block is left out.
    fn store(&self, _node: &Self::Node, _range: Range<u64>, _view: &View<'_>) -> Said<Vec<(u64, u64, u64)>> {
        Err(Problem::Errno(Errno::EROFS))
    }
}
