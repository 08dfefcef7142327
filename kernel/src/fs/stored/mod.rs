//! File systems that are stored on a disk: what they have in common.
//!
//! A file system's [`Format`] is a crate of its own that knows nothing of this kernel: pure functions over blocks, which fail where a block is not at hand and are then run again. This is what is around it:
//!
//! ```text
//!   name --> Node (InodeOps) --> Format --> View: blocks, through the disk's page cache
//!                 |                            absent: the step says so, and is run again when they have come
//!                 '--> the file's own page cache --> Node's Backing --> Format: where a page is on the disk
//! ```
//!
//! | file | what it holds |
//! | --- | --- |
//! | `format` | [`Format`], and what it says of its files |
//! | `mounting` | how one is mounted |
//! | `volume` | [`Volume`]: a file system that is mounted, its inodes, and its [`View`] |
//! | `journal` | what gathers changes, of whichever format |
//! | `state` | what was changed in it and is not on the disk |
//! | `task` | the task that writes it: commits, checkpoints, deletion, the end |
//! | `node`, `content` | its files: names, and what is in them |
//! | `turns` | long work of a format in pieces |
//! | `erofs`, `exfat`, `ext`, `squashfs` | the formats |
//!
//! *Who owns what.* The [`FileSystem`](super::FileSystem) owns its volume from its first mount until the last one ends ([`FileSystem::keep`](super::FileSystem::keep)). The volume owns the inodes, so that a name leads to the same inode again; those that nobody uses are thrown out when
//! there are many. Inodes name their volume weakly, and fail with EIO when it is gone. An inode owns the page cache of its content, which ends with it. The end of a volume frees its inodes one by one, in the time of whoever gives up the last mount.
//!
//! *Bad input.* What is on a disk may be anything. A format finds what contradicts itself: EUCLEAN, and a line in the kernel's log for the first time.

mod content;
pub mod erofs;
pub mod exfat;
pub mod ext;
mod file;
mod format;
mod journal;
mod mounting;
mod node;
pub mod squashfs;
mod state;
mod task;
mod turns;
mod volume;

pub use format::{Format, Listed, Place, Problem, Space};
pub use mounting::{check_option, mount};
pub use volume::{View, Volume};
