//! The list of orphans: inodes that have no name any more, or that are being cut. It is on the disk, so that what was begun before a crash is
//! brought to its end at the next mount. The superblock names the first; each names the next in its time of deletion.

use crate::alloc::Use;
use crate::blocks::{Blocks, Run};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::inode::{Inode, Kind};
use crate::superblock::counts;
use crate::transaction::Transaction;

/// Whether long work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is not: to be called again in another transaction.
    More,
    /// It is.
    Done,
}

impl FileSystem {
    /// The first inode on the list of orphans.
    pub fn first_orphan(&self, blocks: &impl Blocks) -> Result<Option<u32>> {
        let (block, at) = self.superblock_place();
        let first = blocks.read(block, |bytes| counts::last_orphan(bytes.get(at..).unwrap_or_default()))?;
        Ok((first != 0).then_some(first))
    }

    /// Whether an inode is on the list, and the one before it.
    fn find_orphan(&self, blocks: &impl Blocks, number: u32) -> Result<Option<Option<u32>>> {
        let mut before = None;
        let mut at = self.first_orphan(blocks)?.unwrap_or(0);
        for _ in 0..self.superblock().inodes_count {
            if at == 0 {
                return Ok(None);
            }
            if at == number {
                return Ok(Some(before));
            }
            before = Some(at);
            at = self.next_orphan(blocks, at)?;
        }
        Err(Error::Corrupt("list of orphans"))
    }

    fn next_orphan(&self, blocks: &impl Blocks, number: u32) -> Result<u32> {
        let orphan = self.inode(blocks, number).map_err(|error| match error {
            Error::NotFound => Error::Corrupt("list of orphans"),
            other => other,
        })?;
        Ok(orphan.deleted())
    }

    fn has_blocks(&self, inode: &Inode) -> bool {
        match inode.kind() {
            Some(Kind::File | Kind::Directory) => true,
            Some(Kind::Symlink) => !self.is_fast_symlink(inode),
            _ => false,
        }
    }
}

impl<B: Blocks> Transaction<'_, B> {
    /// Puts an inode on the list, if it is not there.
    pub(crate) fn add_orphan(&mut self, inode: &mut Inode) -> Result<()> {
        if self.fs().find_orphan(self, inode.number())?.is_none() {
            let number = inode.number();
            let next = self.modify_superblock(|raw| {
                let next = counts::last_orphan(raw);
                counts::set_last_orphan(raw, number);
                next
            })?;
            inode.set_deleted(next);
        }
        self.put_inode(inode)
    }

    /// Takes an inode off the list, if it is there.
    pub(crate) fn remove_orphan(&mut self, inode: &mut Inode) -> Result<()> {
        let Some(before) = self.fs().find_orphan(self, inode.number())? else { return self.put_inode(inode) };
        let next = inode.deleted();
        match before {
            None => self.modify_superblock(|raw| counts::set_last_orphan(raw, next))?,
            Some(before) => {
                let mut other = self.fs().inode(self, before)?;
                other.set_deleted(next);
                self.put_inode(&other)?;
            }
        }
        inode.set_deleted(0);
        self.put_inode(inode)
    }

    /// Begins to cut a file (or lets it grow): its size is changed now, blocks beyond it are freed by [`truncate_step`](Self::truncate_step) if
    /// this says `More`. Bytes of the last block that are beyond the size are the caller's to clear.
    ///
    /// # Errors
    /// `TooLarge`, `Invalid` (not a file), `Corrupt`, `Absent`.
    pub fn truncate(&mut self, inode: &mut Inode, size: u64) -> Result<Step> {
        if inode.kind() != Some(Kind::File) {
            return Err(Error::Invalid);
        }
        self.set_size(inode, size)?;
        inode.set_mtime(self.now());
        inode.set_ctime(self.now());
        // Blocks may lie beyond the old size as well: those that were allocated ahead.
        if inode.sectors(self.fs()) == 0 {
            self.put_inode(inode)?;
            return Ok(Step::Done);
        }
        self.add_orphan(inode)?;
        Ok(Step::More)
    }

    /// Frees blocks beyond a file's size.
    pub fn truncate_step(&mut self, inode: &mut Inode) -> Result<Step> {
        let first = inode.size().div_ceil(self.fs().block_size().into()).min(u32::MAX.into()) as u32;
        let step = if self.punch(inode, first, u32::MAX)? == first { Step::Done } else { Step::More };
        if step == Step::Done && inode.links() > 0 {
            self.remove_orphan(inode)?;
        }
        Ok(step)
    }

    /// Frees what an inode has that has no name and that nobody uses; `Done` when the inode is free.
    ///
    /// # Errors
    /// `Invalid` if it has a name.
    pub fn delete_step(&mut self, number: u32) -> Result<Step> {
        let mut inode = self.fs().inode(self, number)?;
        if inode.links() > 0 {
            return Err(Error::Invalid);
        }
        if self.fs().has_blocks(&inode) && self.punch(&mut inode, 0, u32::MAX)? > 0 {
            return Ok(Step::More);
        }
        self.drop_attributes(&mut inode)?;
        self.remove_orphan(&mut inode)?;
        self.free_inode(&mut inode)?;
        Ok(Step::Done)
    }

    /// One step of what is done at mount: brings what was begun with the first orphan nearer to its end. `Done` when there is none left.
    pub fn orphan_step(&mut self) -> Result<Step> {
        let Some(number) = self.fs().first_orphan(self)? else { return Ok(Step::Done) };
        if !self.fs().is_inode_used(self, number)? {
            return Err(Error::Corrupt("list of orphans"));
        }
        self.fs().next_orphan(self, number)?;
        let mut inode = self.fs().inode(self, number)?;
        if inode.links() == 0 {
            self.delete_step(number)?;
        } else if self.fs().has_blocks(&inode) {
            self.truncate_step(&mut inode)?;
        } else {
            self.remove_orphan(&mut inode)?;
        }
        Ok(Step::More)
    }

    /// Frees one block of metadata that an inode has.
    pub(crate) fn give_back_block(&mut self, inode: &mut Inode, block: u64) -> Result<()> {
        self.give_back(Run { start: block, count: 1 }, Use::Metadata)?;
        inode.add_blocks(self.fs(), -1)
    }
}
