//! Descriptors of groups: where a group's bitmaps and its part of the inode table are, and what is free in it.

use crate::blocks::Blocks;
use crate::bytes::{halves, le16, le32, put16};
use crate::checksum::{crc16, crc32c};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::superblock::{Superblock, feature};

/// The inode bitmap is not written yet: no inode is used.
pub const INODE_UNINIT: u16 = 1;
/// Nor is the block bitmap: only metadata is used.
pub const BLOCK_UNINIT: u16 = 2;

/// A group's descriptor, with its own copy of the bytes.
#[derive(Clone, Debug)]
pub struct Descriptor {
    raw: [u8; 64],
    wide: bool,
}

impl Descriptor {
    /// From its bytes: 32, or at least 64.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut raw = [0; 64];
        let wide = bytes.len() >= 64;
        let len = if wide { 64 } else { 32 };
        raw[..len].copy_from_slice(&bytes[..len]);
        Self { raw, wide }
    }

    /// Its bytes, as many as are kept of it here.
    pub fn bytes(&self) -> &[u8] {
        &self.raw[..if self.wide { 64 } else { 32 }]
    }

    fn wide32(&self, low: usize, high: usize) -> u64 {
        halves(le32(&self.raw, low), if self.wide { le32(&self.raw, high) } else { 0 })
    }

    fn wide16(&self, low: usize, high: usize) -> u32 {
        u32::from(le16(&self.raw, low)) | if self.wide { u32::from(le16(&self.raw, high)) << 16 } else { 0 }
    }

    fn set_wide16(&mut self, low: usize, high: usize, value: u32) {
        put16(&mut self.raw, low, value as u16);
        if self.wide {
            put16(&mut self.raw, high, (value >> 16) as u16);
        }
    }

    pub fn block_bitmap(&self) -> u64 {
        self.wide32(0, 0x20)
    }

    pub fn inode_bitmap(&self) -> u64 {
        self.wide32(4, 0x24)
    }

    pub fn inode_table(&self) -> u64 {
        self.wide32(8, 0x28)
    }

    pub fn free_blocks(&self) -> u32 {
        self.wide16(0xc, 0x2c)
    }

    pub fn set_free_blocks(&mut self, count: u32) {
        self.set_wide16(0xc, 0x2c, count);
    }

    pub fn free_inodes(&self) -> u32 {
        self.wide16(0xe, 0x2e)
    }

    pub fn set_free_inodes(&mut self, count: u32) {
        self.set_wide16(0xe, 0x2e, count);
    }

    pub fn used_dirs(&self) -> u32 {
        self.wide16(0x10, 0x30)
    }

    pub fn set_used_dirs(&mut self, count: u32) {
        self.set_wide16(0x10, 0x30, count);
    }

    pub fn flags(&self) -> u16 {
        le16(&self.raw, 0x12)
    }

    pub fn set_flags(&mut self, flags: u16) {
        put16(&mut self.raw, 0x12, flags);
    }

    /// How many inodes at the table's end were never used.
    pub fn unused_inodes(&self) -> u32 {
        self.wide16(0x1c, 0x32)
    }

    pub fn set_unused_inodes(&mut self, count: u32) {
        self.set_wide16(0x1c, 0x32, count);
    }

    /// Whether this is the block bitmap's checksum. Short descriptors keep half of it.
    pub fn is_block_bitmap_checksum(&self, sum: u32) -> bool {
        self.wide16(0x18, 0x38) == if self.wide { sum } else { sum & 0xffff }
    }

    pub fn set_block_bitmap_checksum(&mut self, sum: u32) {
        self.set_wide16(0x18, 0x38, sum);
    }

    /// The same for the inode bitmap.
    pub fn is_inode_bitmap_checksum(&self, sum: u32) -> bool {
        self.wide16(0x1a, 0x3a) == if self.wide { sum } else { sum & 0xffff }
    }

    pub fn set_inode_bitmap_checksum(&mut self, sum: u32) {
        self.set_wide16(0x1a, 0x3a, sum);
    }
}

/// The checksum of a descriptor's bytes, or `None` where the file system has none.
pub fn descriptor_checksum(sup: &Superblock, group: u32, raw: &[u8]) -> Option<u16> {
    const AT: usize = 0x1e;
    let number = group.to_le_bytes();
    if sup.has_ro(feature::METADATA_CSUM) {
        let sum = crc32c(sup.checksum_seed, &number);
        let sum = crc32c(crc32c(sum, &raw[..AT]), &[0; 2]);
        Some(crc32c(sum, &raw[AT + 2..]) as u16)
    } else if sup.has_ro(feature::GDT_CSUM) {
        let sum = crc16(crc16(!0, &sup.uuid), &number);
        Some(crc16(crc16(sum, &raw[..AT]), &raw[AT + 2..]))
    } else {
        None
    }
}

impl FileSystem {
    /// The block that a group's descriptor is in, and where in it.
    pub(crate) fn descriptor_place(&self, group: u32) -> (u64, usize) {
        let sup = self.superblock();
        let per_block = sup.block_size / sup.descriptor_size;
        let (index, at) = (group / per_block, group % per_block * sup.descriptor_size);
        let block = if sup.has_incompat(feature::META_BG) && index >= sup.first_meta_group {
            let first = index * per_block;
            self.group_start(first) + u64::from(self.has_superblock(first))
        } else {
            u64::from(sup.first_data_block) + 1 + u64::from(index)
        };
        (block, at as usize)
    }

    /// Reads a group's descriptor and checks it.
    pub(crate) fn descriptor(&self, blocks: &impl Blocks, group: u32) -> Result<Descriptor> {
        let sup = self.superblock();
        if group >= self.groups() {
            return Err(Error::Corrupt("group number"));
        }
        let (block, at) = self.descriptor_place(group);
        let verified = blocks.is_verified(block);
        let len = sup.descriptor_size as usize;
        let found = blocks.read_part(block, at..at + len, |raw| {
            if raw.len() != len {
                return None;
            }
            let sum = if verified { None } else { descriptor_checksum(sup, group, raw) };
            (sum.is_none() || sum == Some(le16(raw, 0x1e))).then(|| Descriptor::parse(raw))
        })?;
        let found = found.ok_or(Error::Corrupt("group descriptor checksum"))?;
        let inside = |start: u64, count: u64| {
            start > u64::from(sup.first_data_block) && start < sup.blocks_count && sup.blocks_count - start >= count
        };
        let sound = inside(found.block_bitmap(), 1)
            && inside(found.inode_bitmap(), 1)
            && inside(found.inode_table(), self.table_blocks().into())
            && found.free_blocks() <= sup.blocks_per_group
            && found.free_inodes() <= sup.inodes_per_group
            && found.unused_inodes() <= sup.inodes_per_group
            && found.used_dirs() <= sup.inodes_per_group;
        if sound { Ok(found) } else { Err(Error::Corrupt("group descriptor")) }
    }

    /// Makes a descriptor's checksum in the bytes of the block that it is in.
    pub(crate) fn seal_descriptor(&self, group: u32, at: usize, block: &mut [u8]) {
        let sup = self.superblock();
        let Some(raw) = block.get_mut(at..at + sup.descriptor_size as usize) else { return };
        if let Some(sum) = descriptor_checksum(sup, group, raw) {
            put16(raw, 0x1e, sum);
        }
    }
}

/// Puts a descriptor, without its checksum, into the bytes of the block that it is in.
pub(crate) fn store_descriptor(at: usize, descriptor: &Descriptor, block: &mut [u8]) {
    let bytes = descriptor.bytes();
    if let Some(raw) = block.get_mut(at..at + bytes.len()) {
        raw.copy_from_slice(bytes);
    }
}
