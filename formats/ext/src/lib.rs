//! The file systems ext2 and ext4 as pure functions over blocks.
//!
//! Nothing here reads a disk, waits, or holds a lock. A function is given [`Blocks`]; where it needs a block that is not at hand it fails with
//! [`Error::Absent`], and the caller brings the block in and calls it again. What changes something works on a [`Transaction`], which keeps
//! copies of the blocks that it changes: dropped, nothing happened; finished, it is a list of blocks ([`Changes`]) for the caller's cache and for the
//! [`Journal`]. The caller lets only one transaction be made at a time.
//!
//! # Features
//!
//! | feature | here |
//! | --- | --- |
//! | dir_prealloc, ext_attr, resize_inode, dir_index, sparse_super2, has_journal, stable_inodes, orphan_file | read and write (preallocation hints and the orphan file are not used; see orphan_present) |
//! | fast_commit | read and write; a journal that holds fast commits to be replayed is refused |
//! | filetype, meta_bg, extents, 64bit, flex_bg, metadata_csum_seed, large_dir, recover | read and write |
//! | sparse_super, large_file, huge_file, gdt_csum (uninit_bg), dir_nlink, extra_isize, metadata_csum | read and write |
//! | mmp, ea_inode, inline_data | read only (large values of attributes that have their own inode are refused) |
//! | quota, bigalloc, project, readonly, verity, orphan_present, and any ro_compat feature that is not known | read only |
//! | compression, journal_dev, dirdata, encrypt, casefold, and any incompat feature that is not known | refused |
//!
//! # How it is made
//!
//! | file | what is in it |
//! | --- | --- |
//! | `bytes`, `checksum`, `hash` | numbers in bytes, CRCs, hashes of names |
//! | `superblock`, `group`, `fs` | where everything is |
//! | `blocks`, `transaction` | what the caller provides, and changes on top of it |
//! | `inode`, `map`, `indirect`, `extent` | inodes, and which blocks they have |
//! | `alloc`, `inode_alloc`, `orphan` | taking and giving back blocks and inodes |
//! | `dir`, `htree`, `namespace` | directories, and what changes names |
//! | `symlink`, `xattr` | symbolic links and extended attributes |
//! | `replay`, `journal` | the journal: what is done at mount, and how it is written |
//!
//! The formats are described in Linux's `Documentation/filesystems/ext4` and in the documentation of e2fsprogs.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]
extern crate alloc as std_alloc;
#[cfg(test)]
extern crate std;

mod alloc;
mod blocks;
mod bytes;
mod checksum;
mod dir;
mod error;
mod extent;
mod fs;
mod group;
mod hash;
mod htree;
mod indirect;
mod inode;
mod inode_alloc;
mod journal;
mod map;
mod namespace;
mod orphan;
mod replay;
mod superblock;
mod symlink;
mod transaction;
mod xattr;

pub use blocks::{Absent, Blocks, Run};
pub use dir::{Entry, NAME_MAX, Position};
pub use error::{Error, Result};
pub use fs::{Access, FileSystem, Statistics};
pub use inode::{Inode, Kind, Time};
pub use inode_alloc::NewInode;
pub use journal::{Checkpoint, Commit, CommitState, Io, Journal};
pub use map::{FileBlocks, Growth, Mapping, Written};
pub use namespace::Rename;
pub use orphan::Step;
pub use replay::{CopyBlock, JournalPlace, Replay, recovered_superblock};
pub use superblock::{SUPERBLOCK_BYTES, SUPERBLOCK_OFFSET, Superblock};
pub use transaction::{Changes, STEP_BLOCKS, Transaction};
pub use xattr::{Attribute, SetMode};
