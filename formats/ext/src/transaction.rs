//! Changes that happen together or not at all.
//!
//! A transaction is made, used by one function (or several that belong together), and finished. Once a function has failed on it, it is only
//! good for being dropped, and so is the `Inode` that the function was given: after `Absent` all of it is done again, from the start. An
//! `Inode` is a copy: it is read anew after anything that was not given it (names, orphans) may have changed the inode.

use crate::alloc::Bitmaps;
use crate::blocks::{Absent, Blocks, Run};
use crate::bytes::{put16, put32};
use crate::checksum::crc32c;
use crate::error::{Error, Result};
use crate::fs::{Access, FileSystem};
use crate::group::{Descriptor, store_descriptor};
use crate::htree;
use crate::inode::Time;
use crate::superblock::{self, SUPERBLOCK_BYTES, counts};
use core::ops::Range;
use std_alloc::collections::{BTreeMap, BTreeSet};
use std_alloc::sync::Arc;
use std_alloc::vec::Vec;

/// Long work stops after a step that has changed this many blocks. A transaction changes some more at most: less than twice as many.
pub const STEP_BLOCKS: usize = 48;

/// And after one that has freed this many: each is a bit that was cleared.
const STEP_FREED_BLOCKS: u64 = 1 << 17;

/// How a block's checksum is made when the transaction is finished.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seal {
    /// It has none, or it was made already.
    None,
    /// A directory's block of entries, whose inode's checksums start from this.
    Directory(u32),
    /// A block of a directory's index.
    Index(u32),
    /// A node of a tree of extents.
    Extents(u32),
    /// Extended attributes.
    Attributes,
}

#[derive(Debug)]
struct Changed {
    bytes: Arc<[u8]>,
    seal: Seal,
}

/// Changes on top of the blocks that are there. It reads as if they were made.
#[derive(Debug)]
pub struct Transaction<'a, B> {
    fs: &'a FileSystem,
    below: &'a B,
    changed: BTreeMap<u64, Changed>,
    /// Groups of which bitmaps were changed.
    pub(crate) bitmaps: BTreeMap<u32, Bitmaps>,
    /// Groups of which the descriptor was changed: its checksum is made at the end.
    descriptors: BTreeSet<u32>,
    pub(crate) freed: Vec<Run>,
    pub(crate) freed_blocks: u64,
    pub(crate) revoked: BTreeSet<u64>,
    pub(crate) new_data: Vec<Run>,
    now: Time,
    pub(crate) may_use_reserve: bool,
    /// So many free blocks are promised to others.
    pub(crate) promised: u64,
    /// There was no room for something that had begun.
    pub(crate) has_failed: bool,
}

/// What a transaction has changed.
#[derive(Debug, Default)]
pub struct Changes {
    /// Metadata: numbers of blocks, and what is in them now. A cache and a journal can share the bytes.
    pub blocks: Vec<(u64, Arc<[u8]>)>,
    /// Blocks of files that became visible: what they are to hold must be on the disk before the journal commits this.
    pub new_data: Vec<Run>,
    /// Blocks that were freed. What a cache has of them is void, and they are not used again before the journal commits this.
    pub freed: Vec<Run>,
    /// Those that held metadata: the journal's older copies of them are void.
    pub revoked: Vec<u64>,
}

impl<B: Blocks> Blocks for Transaction<'_, B> {
    fn read<R>(&self, block: u64, with: impl FnOnce(&[u8]) -> R) -> core::result::Result<R, Absent> {
        match self.changed.get(&block) {
            Some(changed) => Ok(with(&changed.bytes)),
            None => self.below.read(block, with),
        }
    }

    fn read_part<R>(
        &self,
        block: u64,
        part: Range<usize>,
        with: impl FnOnce(&[u8]) -> R,
    ) -> core::result::Result<R, Absent> {
        match self.changed.get(&block) {
            Some(changed) => Ok(with(changed.bytes.get(part).unwrap_or_default())),
            None => self.below.read_part(block, part, with),
        }
    }

    fn want(&self, first: u64, count: u32) {
        self.below.want(first, count);
    }

    fn is_verified(&self, block: u64) -> bool {
        self.changed.contains_key(&block) || self.below.is_verified(block)
    }

    fn mark_verified(&self, block: u64) {
        if !self.changed.contains_key(&block) {
            self.below.mark_verified(block);
        }
    }

    fn pinned_in(&self, run: Run) -> Option<Run> {
        let own = self.freed.iter().filter_map(|freed| freed.common(run));
        own.chain(self.below.pinned_in(run)).min()
    }
}

impl<'a, B: Blocks> Transaction<'a, B> {
    /// Starts one. `now` goes into the times of inodes that are changed.
    ///
    /// # Errors
    /// `ReadOnly`.
    pub fn new(fs: &'a FileSystem, below: &'a B, now: Time) -> Result<Self> {
        if fs.access() == Access::ReadOnly {
            return Err(Error::ReadOnly);
        }
        Ok(Self {
            fs,
            below,
            changed: BTreeMap::new(),
            bitmaps: BTreeMap::new(),
            descriptors: BTreeSet::new(),
            freed: Vec::new(),
            freed_blocks: 0,
            revoked: BTreeSet::new(),
            new_data: Vec::new(),
            now,
            may_use_reserve: false,
            promised: 0,
            has_failed: false,
        })
    }

    /// Lets it take the blocks that are kept for the superuser.
    pub fn use_reserve(&mut self) {
        self.may_use_reserve = true;
    }

    /// Leaves so many of the free blocks for others, to whom they are promised.
    pub fn leave_free(&mut self, blocks: u64) {
        self.promised = blocks;
    }

    /// The file system.
    pub fn fs(&self) -> &'a FileSystem {
        self.fs
    }

    /// The time that it was started with.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many blocks it has changed.
    pub fn changed_blocks(&self) -> usize {
        self.changed.len()
    }

    /// Whether long work has to stop here and go on in another transaction.
    pub(crate) fn is_full(&self) -> bool {
        self.changed.len() >= STEP_BLOCKS
            || self.freed.len() >= 8 * STEP_BLOCKS
            || self.freed_blocks >= STEP_FREED_BLOCKS
    }

    /// Changes a block of metadata.
    pub(crate) fn modify<R>(&mut self, block: u64, seal: Seal, with: impl FnOnce(&mut [u8]) -> R) -> Result<R> {
        if !self.changed.contains_key(&block) {
            let bytes = self.below.read(block, |bytes| Arc::from(bytes))?;
            self.changed.insert(block, Changed { bytes, seal });
        }
        let changed = self.changed.get_mut(&block).ok_or(Error::Corrupt("block"))?;
        if !matches!(seal, Seal::None) {
            changed.seal = seal;
        }
        Ok(with(Arc::make_mut(&mut changed.bytes)))
    }

    /// Makes a block of metadata that is all zeros, whatever is there.
    pub(crate) fn zeroed(&mut self, block: u64, seal: Seal) -> &mut [u8] {
        let bytes: Arc<[u8]> = core::iter::repeat_n(0, self.fs.block_size() as usize).collect();
        let entry = self.changed.entry(block);
        let changed = entry.or_insert_with(|| Changed { bytes: Arc::default(), seal });
        *changed = Changed { bytes, seal };
        Arc::make_mut(&mut changed.bytes)
    }

    /// Forgets a block that was freed.
    pub(crate) fn forget(&mut self, block: u64) {
        self.changed.remove(&block);
    }

    /// Changes the superblock.
    pub(crate) fn modify_superblock<R>(&mut self, with: impl FnOnce(&mut [u8]) -> R) -> Result<R> {
        let (block, at) = self.fs.superblock_place();
        let seconds = self.now.seconds;
        let done = self.modify(block, Seal::None, |bytes| {
            let raw = bytes.get_mut(at..at + SUPERBLOCK_BYTES)?;
            counts::set_written(raw, seconds.max(0) as u64);
            Some(with(raw))
        })?;
        done.ok_or(Error::Corrupt("superblock"))
    }

    /// Changes a group's descriptor.
    pub(crate) fn put_descriptor(&mut self, group: u32, descriptor: &Descriptor) -> Result<()> {
        let (block, at) = self.fs.descriptor_place(group);
        self.descriptors.insert(group);
        self.modify(block, Seal::None, |bytes| store_descriptor(at, descriptor, bytes))
    }

    /// Ends it: what is in the result is now true, once the caller has put it into its cache and journal.
    pub fn finish(mut self) -> Result<Changes> {
        if self.has_failed {
            return Err(Error::NoSpace);
        }
        for (group, bitmaps) in core::mem::take(&mut self.bitmaps) {
            self.seal_bitmaps(group, bitmaps)?;
        }
        for group in core::mem::take(&mut self.descriptors) {
            let (block, at) = self.fs.descriptor_place(group);
            let fs = self.fs;
            self.modify(block, Seal::None, |bytes| fs.seal_descriptor(group, at, bytes))?;
        }
        let (super_block, at) = self.fs.superblock_place();
        let fs = self.fs;
        let mut blocks = Vec::with_capacity(self.changed.len());
        for (block, mut changed) in core::mem::take(&mut self.changed) {
            if fs.has_checksums() {
                let bytes = Arc::make_mut(&mut changed.bytes);
                seal(fs, block, changed.seal, bytes);
                if block == super_block
                    && let Some(raw) = bytes.get_mut(at..at + SUPERBLOCK_BYTES)
                {
                    let sum = superblock::checksum(raw);
                    put32(raw, 0x3fc, sum);
                }
            }
            blocks.push((block, changed.bytes));
        }
        let revoked = self.revoked.iter().copied().collect();
        Ok(Changes { blocks, new_data: self.new_data, freed: self.freed, revoked })
    }

    fn seal_bitmaps(&mut self, group: u32, bitmaps: Bitmaps) -> Result<()> {
        if !self.fs.has_checksums() {
            return Ok(());
        }
        let mut descriptor = self.fs.descriptor(self, group)?;
        if bitmaps.blocks {
            let sum = self.fs.block_bitmap_checksum(self, &descriptor)?;
            descriptor.set_block_bitmap_checksum(sum);
        }
        if bitmaps.inodes {
            let sum = self.fs.inode_bitmap_checksum(self, &descriptor)?;
            descriptor.set_inode_bitmap_checksum(sum);
        }
        self.put_descriptor(group, &descriptor)
    }
}

fn seal(fs: &FileSystem, number: u64, seal: Seal, bytes: &mut [u8]) {
    let len = bytes.len();
    match seal {
        Seal::None => {}
        Seal::Directory(seed) => {
            let sum = crc32c(seed, &bytes[..len - 12]);
            put32(bytes, len - 12, 0);
            put16(bytes, len - 8, 12);
            put16(bytes, len - 6, 0xde00);
            put32(bytes, len - 4, sum);
        }
        Seal::Index(seed) => htree::seal(seed, bytes),
        Seal::Extents(seed) => {
            let at = crate::extent::tail_at(bytes);
            let sum = crc32c(seed, &bytes[..at]);
            put32(bytes, at, sum);
        }
        Seal::Attributes => {
            let sum = crate::xattr::block_checksum(fs, number, bytes);
            put32(bytes, 0x10, sum);
        }
    }
}

impl<B: Blocks> Transaction<'_, B> {
    /// Notes in the superblock that the file system is mounted for writing. What comes of this is to be written to its place and flushed before
    /// anything else is, not given to the journal.
    pub fn mark_mounted(&mut self, has_journal: bool) -> Result<()> {
        let seconds = self.now.seconds.max(0) as u64;
        self.modify_superblock(|raw| {
            counts::set_mounted(raw, seconds);
            counts::set_recovery(raw, has_journal);
            if !has_journal {
                counts::set_state(raw, counts::state(raw) & !superblock::STATE_VALID);
            }
        })
    }

    /// Notes that it is unmounted: everything else is on the disk, and the log is empty. What comes of this is not given to the journal either.
    pub fn mark_unmounted(&mut self) -> Result<()> {
        self.modify_superblock(|raw| {
            counts::set_recovery(raw, false);
            if counts::state(raw) & superblock::STATE_ERROR == 0 {
                counts::set_state(raw, counts::state(raw) | superblock::STATE_VALID);
            }
        })
    }

    /// Notes that the file system contradicts itself, so that it is checked.
    pub fn mark_error(&mut self) -> Result<()> {
        self.modify_superblock(|raw| counts::set_state(raw, counts::state(raw) | superblock::STATE_ERROR))
    }
}
