//! A file system that was opened: its shape, and which blocks are its own.

use crate::blocks::{Blocks, Run};
use crate::bytes::bit;
use crate::checksum::crc32c;
use crate::error::{Error, Result};
use crate::superblock::{SUPERBLOCK_BYTES, SUPERBLOCK_OFFSET, Superblock, counts, feature};
use std_alloc::boxed::Box;
use std_alloc::vec::Vec;

/// Whether a file system is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is not.
    ReadOnly,
    /// It is.
    ReadWrite,
}

/// A file system's shape: what does not change while it is mounted. All else is in its blocks.
#[derive(Clone, Debug)]
pub struct FileSystem {
    superblock: Superblock,
    access: Access,
    groups: u32,
    /// Where each group's part of the inode table starts.
    inode_tables: Box<[u64]>,
    /// Blocks of superblocks, descriptors, bitmaps and inode tables, in order; none touches another.
    metadata: Box<[Run]>,
    metadata_blocks: u64,
}

/// Where each group's part of the inode table starts, and the blocks of all metadata.
type Metadata = (Box<[u64]>, Box<[Run]>);

/// What statfs tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes in a block.
    pub block_size: u32,
    /// Blocks that files can have: all but the metadata's.
    pub blocks: u64,
    /// Those that are free.
    pub free_blocks: u64,
    /// Those that are free for everybody.
    pub available_blocks: u64,
    /// Inodes.
    pub inodes: u32,
    /// Those that are free.
    pub free_inodes: u32,
    /// f_fsid: made of the UUID.
    pub id: u64,
}

impl FileSystem {
    /// Opens what is on a disk of `device_blocks` blocks (in the size that [`Superblock::parse`] tells). A journal that has to be replayed
    /// is the caller's to see to before ([`Superblock::needs_recovery`], [`Replay`](crate::Replay)).
    ///
    /// # Errors
    /// `ReadOnly` if it is to be written and a feature does not let that; `Corrupt`, `Unsupported`, `Absent`.
    pub fn open(blocks: &impl Blocks, device_blocks: u64, access: Access) -> Result<Self> {
        let sup = Self::read_superblock(blocks)?;
        if sup.blocks_count > device_blocks {
            return Err(Error::Corrupt("more blocks than the disk has"));
        }
        if access == Access::ReadWrite && !sup.is_writable() {
            return Err(Error::ReadOnly);
        }
        let groups = sup.group_count() as u32;
        let (inode_tables, metadata) = Metadata::default();
        let mut this = Self { superblock: sup, access, groups, inode_tables, metadata, metadata_blocks: 0 };
        (this.inode_tables, this.metadata) = this.find_metadata(blocks)?;
        this.metadata_blocks = this.metadata.iter().map(|run| u64::from(run.count)).sum();
        Ok(this)
    }

    fn read_superblock(blocks: &impl Blocks) -> Result<Superblock> {
        let (raw, size) = Self::read_raw_superblock(blocks)?;
        let sup = Superblock::parse(&raw)?;
        if sup.block_size as usize == size { Ok(sup) } else { Err(Error::Corrupt("blocks of the wrong size")) }
    }

    /// The superblock's bytes, and whether they have a checksum.
    pub(crate) fn raw_superblock(blocks: &impl Blocks) -> Result<([u8; SUPERBLOCK_BYTES], bool)> {
        let (raw, _) = Self::read_raw_superblock(blocks)?;
        Ok((raw, Superblock::parse(&raw)?.has_ro(feature::METADATA_CSUM)))
    }

    /// The superblock's bytes, and how many a block has.
    fn read_raw_superblock(blocks: &impl Blocks) -> Result<([u8; SUPERBLOCK_BYTES], usize)> {
        // Where it is depends on the block size, which it says: a block of 1024 bytes shows that it is in block 1.
        let first = blocks.read(0, |bytes| (bytes.len(), superblock_bytes(bytes)))?;
        let (size, raw) = match first {
            (SUPERBLOCK_BYTES, _) => (SUPERBLOCK_BYTES, blocks.read(1, |bytes| bytes.first_chunk().copied())?),
            (size, raw) => (size, raw),
        };
        Ok((raw.ok_or(Error::Corrupt("blocks of the wrong size"))?, size))
    }

    /// What the superblock says.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Bytes in a block.
    pub fn block_size(&self) -> u32 {
        self.superblock.block_size
    }

    /// How it was opened.
    pub fn access(&self) -> Access {
        self.access
    }

    /// How many groups there are.
    pub(crate) fn groups(&self) -> u32 {
        self.groups
    }

    /// The block that the superblock is in, and where in it.
    pub(crate) fn superblock_place(&self) -> (u64, usize) {
        if self.block_size() == 1024 { (1, 0) } else { (0, SUPERBLOCK_OFFSET) }
    }

    /// Whether numbers of blocks have more than 32 bits.
    pub(crate) fn is_wide(&self) -> bool {
        self.superblock.has_incompat(feature::BIT64)
    }

    /// Whether metadata has checksums.
    pub(crate) fn has_checksums(&self) -> bool {
        self.superblock.has_ro(feature::METADATA_CSUM)
    }

    /// A group's first block.
    pub(crate) fn group_start(&self, group: u32) -> u64 {
        u64::from(self.superblock.first_data_block) + u64::from(group) * u64::from(self.superblock.blocks_per_group)
    }

    /// How many blocks a group has: the last may have fewer.
    pub(crate) fn group_len(&self, group: u32) -> u32 {
        let start = self.group_start(group);
        (self.superblock.blocks_count.saturating_sub(start)).min(self.superblock.blocks_per_group.into()) as u32
    }

    /// The group that a block is in.
    pub(crate) fn group_of(&self, block: u64) -> u32 {
        let at = block.saturating_sub(self.superblock.first_data_block.into());
        (at / u64::from(self.superblock.blocks_per_group)) as u32
    }

    /// Blocks of a group's inode table.
    pub(crate) fn table_blocks(&self) -> u32 {
        let bytes = u64::from(self.superblock.inodes_per_group) * u64::from(self.superblock.inode_size);
        bytes.div_ceil(self.superblock.block_size.into()) as u32
    }

    /// Whether a group starts with a copy of the superblock.
    pub(crate) fn has_superblock(&self, group: u32) -> bool {
        let sup = &self.superblock;
        let power_of = |base: u32| {
            let mut value = group;
            while value > 1 && value.is_multiple_of(base) {
                value /= base;
            }
            value == 1
        };
        if sup.has_compat(feature::SPARSE_SUPER2) {
            return group == 0 || sup.backup_groups.contains(&group);
        }
        let sparse = sup.has_ro(feature::SPARSE_SUPER);
        group <= 1 || !sparse || power_of(3) || power_of(5) || power_of(7)
    }

    /// How many blocks at a group's start hold the superblock and descriptors.
    fn head_blocks(&self, group: u32) -> u32 {
        let sup = &self.superblock;
        let per_block = sup.block_size / sup.descriptor_size;
        let has_super = self.has_superblock(group);
        let in_meta = sup.has_incompat(feature::META_BG) && group / per_block >= sup.first_meta_group;
        if in_meta {
            let at = group % per_block;
            u32::from(has_super) + u32::from(at <= 1 || at == per_block - 1)
        } else if has_super {
            let all = self.groups.div_ceil(per_block);
            let here = if sup.has_incompat(feature::META_BG) { all.min(sup.first_meta_group) } else { all };
            1 + here + sup.reserved_descriptor_blocks
        } else {
            0
        }
    }

    /// Where a group's part of the inode table starts.
    pub(crate) fn inode_table(&self, group: u32) -> Result<u64> {
        self.inode_tables.get(group as usize).copied().ok_or(Error::Corrupt("group number"))
    }

    /// Where the metadata is.
    fn find_metadata(&self, blocks: &impl Blocks) -> Result<Metadata> {
        let per_block = self.superblock.block_size / self.superblock.descriptor_size;
        for first in (0..self.groups).step_by(per_block as usize) {
            let (block, _) = self.descriptor_place(first);
            blocks.want(block, 1);
        }
        let mut found = Vec::new();
        let mut tables = Vec::new();
        for group in 0..self.groups {
            let descriptor = self.descriptor(blocks, group)?;
            let head = self.head_blocks(group).min(self.group_len(group));
            found.push(Run { start: self.group_start(group), count: head });
            found.push(Run { start: descriptor.block_bitmap(), count: 1 });
            found.push(Run { start: descriptor.inode_bitmap(), count: 1 });
            found.push(Run { start: descriptor.inode_table(), count: self.table_blocks() });
            tables.push(descriptor.inode_table());
        }
        found.retain(|run| run.count > 0);
        found.sort_unstable();
        let mut joined: Vec<Run> = Vec::new();
        for run in found {
            match joined.last_mut() {
                Some(last) if run.start < last.start + u64::from(last.count) => {
                    return Err(Error::Corrupt("metadata of groups overlaps"));
                }
                Some(last)
                    if run.start == last.start + u64::from(last.count)
                        && last.count.checked_add(run.count).is_some() =>
                {
                    last.count += run.count;
                }
                _ => joined.push(run),
            }
        }
        Ok((tables.into(), joined.into()))
    }

    /// The runs of metadata that have blocks in here.
    pub(crate) fn metadata_in(&self, start: u64, count: u32) -> impl Iterator<Item = Run> {
        let from = self.metadata.partition_point(|run| run.start + u64::from(run.count) <= start);
        self.metadata[from..].iter().copied().take_while(move |run| run.start < start + u64::from(count))
    }

    /// Whether a file may have these blocks: they are there, and no metadata of the file system is among them.
    pub(crate) fn may_be_data(&self, start: u64, count: u32) -> bool {
        let end = start.checked_add(count.into());
        start > u64::from(self.superblock.first_data_block)
            && end.is_some_and(|end| end <= self.superblock.blocks_count)
            && count > 0
            && self.metadata_in(start, count).next().is_none()
    }

    /// What statfs tells.
    pub fn statistics(&self, blocks: &impl Blocks) -> Result<Statistics> {
        let sup = &self.superblock;
        let (block, at) = self.superblock_place();
        let wide = self.is_wide();
        let (free_blocks, free_inodes) = blocks.read(block, |bytes| {
            let raw = bytes.get(at..).unwrap_or_default();
            (counts::free_blocks(raw, wide), counts::free_inodes(raw))
        })?;
        let half = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| sup.uuid[at + i]));
        Ok(Statistics {
            block_size: sup.block_size,
            blocks: sup.blocks_count.saturating_sub(self.metadata_blocks),
            free_blocks,
            available_blocks: free_blocks.saturating_sub(sup.reserved_blocks),
            inodes: sup.inodes_count,
            free_inodes,
            id: half(0) ^ half(8),
        })
    }

    /// Whether it was unmounted, and no errors were found in it, when it was last written.
    pub fn is_clean(&self, blocks: &impl Blocks) -> Result<bool> {
        let (block, at) = self.superblock_place();
        let state = blocks.read(block, |bytes| counts::state(bytes.get(at..).unwrap_or_default()))?;
        Ok(state & 3 == 1)
    }

    /// Where checksums of what belongs to an inode start from.
    pub(crate) fn inode_seed(&self, inode: u32, generation: u32) -> u32 {
        let sum = crc32c(self.superblock.checksum_seed, &inode.to_le_bytes());
        crc32c(sum, &generation.to_le_bytes())
    }

    /// Whether an inode is marked as used.
    pub fn is_inode_used(&self, blocks: &impl Blocks, number: u32) -> Result<bool> {
        let per_group = self.superblock.inodes_per_group;
        if number == 0 || number > self.superblock.inodes_count {
            return Err(Error::Corrupt("inode number"));
        }
        let (group, at) = ((number - 1) / per_group, (number - 1) % per_group);
        let descriptor = self.descriptor(blocks, group)?;
        if descriptor.flags() & crate::group::INODE_UNINIT != 0 && self.has_group_checksums() {
            return Ok(false);
        }
        self.check_inode_bitmap(blocks, &descriptor)?;
        Ok(blocks.read(descriptor.inode_bitmap(), |map| bit(map, at))?)
    }

    /// Whether descriptors have checksums, so that their flags count.
    pub(crate) fn has_group_checksums(&self) -> bool {
        self.superblock.has_ro(feature::METADATA_CSUM | feature::GDT_CSUM)
    }
}

fn superblock_bytes(block: &[u8]) -> Option<[u8; SUPERBLOCK_BYTES]> {
    block.get(SUPERBLOCK_OFFSET..)?.first_chunk().copied()
}
