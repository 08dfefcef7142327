//! Which blocks a file has.

use crate::alloc::Use;
use crate::blocks::Blocks;
use crate::error::{Error, Result};
use crate::extent;
use crate::fs::FileSystem;
use crate::indirect;
use crate::inode::{Inode, Kind, flag};
use crate::transaction::Transaction;

/// Whether blocks of a file hold what was written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// They do.
    Yes,
    /// They are the file's, but it reads as zeros there until they are converted.
    No,
}

/// What is at a place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// Blocks of the disk that lie together.
    Blocks {
        /// The first.
        start: u64,
        /// How many, from the place that was asked for on.
        count: u32,
        /// Whether they hold something.
        written: Written,
    },
    /// Nothing, for at least as many blocks; it reads as zeros.
    Hole {
        /// How many.
        count: u32,
    },
}

/// Blocks of a file that lie together on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileBlocks {
    /// The first, counted in the file.
    pub at: u32,
    /// The same on the disk.
    pub start: u64,
    /// How many.
    pub count: u32,
    /// Whether they hold something.
    pub written: Written,
}

/// How a file's tree of blocks grows when the file gets blocks at its end: for whoever promises a file room before it takes blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The first block of the file that it has none for.
    first: u32,
    /// How many blocks it can get, at most.
    most: u32,
    tree: Tree,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tree {
    /// So many extents fit a node; so many more fit the inode without a node.
    Extents { per_node: u32, in_inode: u32 },
    /// So many numbers fit a block.
    Indirect { per_block: u32 },
}

impl Growth {
    /// How many blocks it can get, at most.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// How many blocks the tree needs, at most, for `count` more of the file's, wherever these lie.
    pub fn tree_blocks(&self, count: u32) -> u64 {
        let count = u64::from(count);
        match self.tree {
            Tree::Extents { in_inode, .. } if count <= in_inode.into() => 0,
            // Leaves; on each level above one more at most is split, and the root's entries may move into a node of their own.
            Tree::Extents { per_node, .. } => count.div_ceil(per_node.into()) + extent::MOST_NODES_ABOVE,
            Tree::Indirect { .. } if u64::from(self.first) + count <= indirect::DIRECT => 0,
            Tree::Indirect { per_block } => {
                let per_block = u64::from(per_block);
                // On each of three levels one may be begun that is not full.
                count.div_ceil(per_block) + count.div_ceil(per_block * per_block) + 4
            }
        }
    }
}

impl FileSystem {
    /// How a file's tree grows from its end on; `None` where the file does not end with a block, or has blocks behind its end.
    ///
    /// # Errors
    /// As for [`map`](Self::map).
    pub fn growth(&self, blocks: &impl Blocks, inode: &Inode) -> Result<Option<Growth>> {
        let size = u64::from(self.block_size());
        if !inode.size().is_multiple_of(size) || inode.kind() != Some(Kind::File) {
            return Ok(None);
        }
        let most = self.max_file_size(inode).saturating_sub(inode.size()) / size;
        let first = u32::try_from(inode.size() / size).map_err(|_| Error::TooLarge)?;
        let Mapping::Hole { count } = self.map(blocks, inode, first)? else { return Ok(None) };
        let (most, tree) = if inode.has_flag(flag::EXTENTS) {
            let in_inode = if inode.sectors(self) == 0 { extent::ROOT_ENTRIES as u32 } else { 0 };
            (most.min(count.into()), Tree::Extents { per_node: self.entries_of_block() as u32, in_inode })
        } else {
            // Blocks behind the end would be visible: there are none.
            (most, Tree::Indirect { per_block: self.block_size() / 4 })
        };
        Ok(Some(Growth { first, most: most.min(u32::MAX.into()) as u32, tree }))
    }

    /// Finds which blocks a file has from its block `at` on.
    ///
    /// # Errors
    /// `Invalid` for what has no blocks (a device, a short symbolic link); `Corrupt`, `Absent`, `TooLarge`.
    pub fn map(&self, blocks: &impl Blocks, inode: &Inode, at: u32) -> Result<Mapping> {
        self.check_mapped(inode)?;
        if inode.has_flag(flag::EXTENTS) {
            self.map_extent(blocks, inode, at)
        } else {
            self.map_indirect(blocks, inode, at)
        }
    }

    fn check_mapped(&self, inode: &Inode) -> Result<()> {
        if inode.has_flag(flag::INLINE_DATA) {
            return Err(Error::Unsupported("inline data"));
        }
        match inode.kind() {
            Some(Kind::File | Kind::Directory) => Ok(()),
            Some(Kind::Symlink) if !self.is_fast_symlink(inode) => Ok(()),
            // The journal's inode and other reserved ones are files; what has no mode is none.
            _ => Err(Error::Invalid),
        }
    }

    /// Finds the block of a directory or a symbolic link, which has no holes.
    pub(crate) fn map_metadata(&self, blocks: &impl Blocks, inode: &Inode, at: u32) -> Result<u64> {
        match self.map(blocks, inode, at)? {
            Mapping::Blocks { start, written: Written::Yes, .. } => Ok(start),
            _ => Err(Error::Corrupt("hole in a directory")),
        }
    }

    /// The place of the file's next data, or of its next hole, from block `at` on and before block `end`: for SEEK_DATA and SEEK_HOLE.
    /// It looks at 64 mappings at most. `Err(at)` in the result says that there is none before that block, where to go on.
    pub fn seek(
        &self,
        blocks: &impl Blocks,
        inode: &Inode,
        at: u32,
        end: u32,
        data: bool,
    ) -> Result<core::result::Result<u32, u32>> {
        let mut at = at;
        for _ in 0..64 {
            if at >= end {
                return Ok(Err(end));
            }
            let (count, is_data) = match self.map(blocks, inode, at)? {
                Mapping::Blocks { count, written, .. } => (count, written == Written::Yes),
                Mapping::Hole { count } => (count, false),
            };
            if is_data == data {
                return Ok(Ok(at));
            }
            at = at.saturating_add(count.max(1));
        }
        Ok(Err(at.min(end)))
    }

    /// The file's first blocks from block `at` on and before block `end`: for FS_IOC_FIEMAP.
    /// It looks at 64 mappings at most. `Err(at)` in the result says that there are none before that block, where to go on.
    ///
    /// # Errors
    /// As [`map`](Self::map)'s.
    pub fn next_blocks(
        &self,
        blocks: &impl Blocks,
        inode: &Inode,
        at: u32,
        end: u32,
    ) -> Result<core::result::Result<FileBlocks, u32>> {
        // A file has no blocks behind what it can be at most.
        let most = self.max_file_size(inode).div_ceil(self.block_size().into());
        let last = end.min(u32::try_from(most).unwrap_or(u32::MAX));
        let mut at = at;
        for _ in 0..64 {
            if at >= last {
                return Ok(Err(end));
            }
            match self.map(blocks, inode, at)? {
                Mapping::Blocks { start, count, written } => {
                    return Ok(Ok(FileBlocks { at, start, count: count.min(last - at), written }));
                }
                Mapping::Hole { count } => at = at.saturating_add(count.max(1)),
            }
        }
        Ok(Err(at.min(end)))
    }

    /// Whether freed blocks of this inode held metadata.
    pub(crate) fn usage_of(&self, inode: &Inode) -> Use {
        if inode.kind() == Some(Kind::File) { Use::Data } else { Use::Metadata }
    }
}

impl<B: Blocks> Transaction<'_, B> {
    /// Where the file's block `at` would lie best: after the one before it, else in the inode's group.
    pub(crate) fn goal(&self, inode: &Inode, at: u32) -> Result<u64> {
        if at > 0
            && let Mapping::Blocks { start, .. } = self.fs().map(self, inode, at - 1)?
        {
            return Ok(start + 1);
        }
        let group = (inode.number() - 1) / self.fs().superblock().inodes_per_group;
        Ok(self.fs().group_start(group) + 1)
    }

    /// Gives a file blocks in a hole, from its block `at` on: up to `count`, as many as lie together. Where there are blocks already, it tells which.
    /// `Written::No` needs extents; elsewhere blocks are always written. The size stays.
    ///
    /// Blocks that are `Written::Yes` are visible when the transaction is; their contents are the caller's to write before that
    /// ([`Changes::new_data`](crate::Changes)). Beyond the size there must be none of these: the size is set in the same transaction, or the
    /// blocks are allocated as unwritten.
    ///
    /// # Errors
    /// `NoSpace`, `CommitFirst`, `TooLarge`, `Invalid`, `Corrupt`, `Absent`.
    pub fn allocate(&mut self, inode: &mut Inode, at: u32, count: u32, written: Written) -> Result<Mapping> {
        let usage = match (self.fs().usage_of(inode), written) {
            (Use::Data, Written::No) if inode.has_flag(flag::EXTENTS) => Use::Unwritten,
            (usage, _) => usage,
        };
        let hole = match self.fs().map(self, inode, at)? {
            Mapping::Hole { count } => count,
            found => return Ok(found),
        };
        let size = u64::from(self.fs().block_size());
        let most = (self.fs().max_file_size(inode) / size).saturating_sub(at.into());
        if most == 0 {
            return Err(Error::TooLarge);
        }
        let count = count.min(hole).min(most.min(u32::MAX.into()) as u32).max(1);
        let found = if inode.has_flag(flag::EXTENTS) {
            self.allocate_extent(inode, at, count, usage)?
        } else {
            self.allocate_indirect(inode, at, count, usage)?
        };
        self.put_inode(inode)?;
        Ok(found)
    }

    /// Makes unwritten blocks of a file visible, from block `at` on; what they are to hold is on the disk, and the size is set in the same
    /// transaction if they are beyond it. Tells how many blocks of
    /// the file it has seen to: the caller goes on after them.
    pub fn convert(&mut self, inode: &mut Inode, at: u32, count: u32) -> Result<u32> {
        let (seen, written) = match self.fs().map(self, inode, at)? {
            Mapping::Blocks { count, written, .. } => (count, written),
            Mapping::Hole { count } => (count, Written::Yes),
        };
        let seen = seen.min(count);
        if written == Written::No && seen > 0 {
            self.convert_extent(inode, at, seen)?;
            self.put_inode(inode)?;
        }
        Ok(seen)
    }

    /// Takes blocks from a file, `from` to before `end`: a hole is punched, from its end on. The first block from which on it has none any more, up to `end`; if that is not `from`, to be called again with it as `end`, in another
    /// transaction. Bytes of blocks that are only partly in the hole are the caller's to clear.
    pub fn punch(&mut self, inode: &mut Inode, from: u32, end: u32) -> Result<u32> {
        self.fs().check_mapped(inode)?;
        let usage = self.fs().usage_of(inode);
        let gone_from = if from >= end {
            from
        } else if inode.has_flag(flag::EXTENTS) {
            self.remove_extents(inode, from, end, usage)?
        } else {
            self.remove_indirect(inode, from, end, usage)?
        };
        self.put_inode(inode)?;
        Ok(gone_from)
    }

    /// Prepares a new inode's 60 bytes for having blocks.
    pub(crate) fn start_mapping(&self, inode: &mut Inode) {
        use crate::superblock::feature;
        if self.fs().superblock().has_incompat(feature::EXTENTS) {
            inode.set_flags(inode.flags() | flag::EXTENTS);
            extent::init_root(inode.block_field_mut());
        }
    }
}
