//! The superblock: 1024 bytes that start 1024 bytes into the disk.

use crate::bytes::{halves, high32, le16, le32, low32, put16, put32};
use crate::checksum::crc32c;
use crate::error::{Error, Result};

/// Where the superblock starts on the disk, in bytes.
pub const SUPERBLOCK_OFFSET: usize = 1024;
/// How many bytes it has.
pub const SUPERBLOCK_BYTES: usize = 1024;

const MAGIC: u16 = 0xef53;
/// s_state: it was unmounted.
pub const STATE_VALID: u16 = 1;
/// s_state: errors were found.
pub const STATE_ERROR: u16 = 2;

/// The features' bits, by the field they are in.
pub mod feature {
    pub const HAS_JOURNAL: u32 = 0x4;
    pub const EXT_ATTR: u32 = 0x8;
    pub const DIR_INDEX: u32 = 0x20;
    pub const SPARSE_SUPER2: u32 = 0x200;

    pub const FILETYPE: u32 = 0x2;
    pub const RECOVER: u32 = 0x4;
    pub const META_BG: u32 = 0x10;
    pub const EXTENTS: u32 = 0x40;
    pub const BIT64: u32 = 0x80;
    pub const MMP: u32 = 0x100;
    pub const FLEX_BG: u32 = 0x200;
    pub const EA_INODE: u32 = 0x400;
    pub const CSUM_SEED: u32 = 0x2000;
    pub const LARGE_DIR: u32 = 0x4000;
    pub const INLINE_DATA: u32 = 0x8000;
    pub const INCOMPAT_READABLE: u32 =
        FILETYPE | RECOVER | META_BG | EXTENTS | BIT64 | MMP | FLEX_BG | EA_INODE | CSUM_SEED | LARGE_DIR | INLINE_DATA;
    pub const INCOMPAT_WRITABLE: u32 = INCOMPAT_READABLE & !(MMP | EA_INODE | INLINE_DATA);

    pub const SPARSE_SUPER: u32 = 0x1;
    pub const LARGE_FILE: u32 = 0x2;
    pub const HUGE_FILE: u32 = 0x8;
    pub const GDT_CSUM: u32 = 0x10;
    pub const DIR_NLINK: u32 = 0x20;
    pub const EXTRA_ISIZE: u32 = 0x40;
    pub const BIGALLOC: u32 = 0x200;
    pub const METADATA_CSUM: u32 = 0x400;
    pub const RO_WRITABLE: u32 =
        SPARSE_SUPER | LARGE_FILE | HUGE_FILE | GDT_CSUM | DIR_NLINK | EXTRA_ISIZE | METADATA_CSUM;
}

/// What the superblock says of the file system's shape. Figures that change (free blocks, the list of orphans, state) are read from its block
/// each time, through the functions of [`counts`].
#[derive(Clone, Debug)]
pub struct Superblock {
    /// How many inodes there are.
    pub inodes_count: u32,
    /// How many blocks.
    pub blocks_count: u64,
    /// Blocks that only the superuser may fill.
    pub reserved_blocks: u64,
    /// The block with the superblock, where blocks have 1024 bytes; else 0.
    pub first_data_block: u32,
    /// Bytes in a block: 1024 to 65536.
    pub block_size: u32,
    /// Blocks in a group.
    pub blocks_per_group: u32,
    /// Inodes in a group.
    pub inodes_per_group: u32,
    /// Bytes of an inode.
    pub inode_size: u32,
    /// The first inode that is not reserved.
    pub first_inode: u32,
    /// Features that nobody has to know.
    pub compat: u32,
    /// Features that whoever reads has to know.
    pub incompat: u32,
    /// Features that whoever writes has to know.
    pub ro_compat: u32,
    /// The file system's UUID.
    pub uuid: [u8; 16],
    /// Its label, filled up with zeros.
    pub label: [u8; 16],
    /// The journal's inode, or 0.
    pub journal_inode: u32,
    /// Where hashes of names start from.
    pub hash_seed: [u32; 4],
    /// How names are hashed in new indices: 0 to 5.
    pub hash_version: u8,
    /// Whether hashes take bytes of names as unsigned.
    pub hash_unsigned: bool,
    /// Bytes of a group's descriptor.
    pub descriptor_size: u32,
    /// Where checksums start from.
    pub checksum_seed: u32,
    /// The first block of descriptors that is in its own group (meta_bg).
    pub first_meta_group: u32,
    /// Blocks kept after the descriptors, for growing.
    pub reserved_descriptor_blocks: u32,
    /// How many groups keep their bitmaps and tables together.
    pub groups_per_flex: u32,
    /// Which groups have a copy of the superblock (sparse_super2).
    pub backup_groups: [u32; 2],
    /// Bytes of new inodes beyond the first 128.
    pub extra_inode_bytes: u16,
}

impl Superblock {
    /// Reads the 1024 bytes.
    ///
    /// # Errors
    /// `NotFound` if this is none of the family's; `Corrupt`, `Unsupported`.
    pub fn parse(raw: &[u8; SUPERBLOCK_BYTES]) -> Result<Self> {
        if le16(raw, 0x38) != MAGIC {
            return Err(Error::NotFound);
        }
        let dynamic = le32(raw, 0x4c) >= 1;
        let features = |at| if dynamic { le32(raw, at) } else { 0 };
        let (compat, incompat, ro_compat) = (features(0x5c), features(0x60), features(0x64));
        if incompat & !feature::INCOMPAT_READABLE != 0 {
            return Err(Error::Unsupported("an incompat feature that is not known"));
        }
        let wide = incompat & feature::BIT64 != 0;
        let upper = |at| if wide { le32(raw, at) } else { 0 };
        let log = le32(raw, 0x18);
        if log > 6 {
            return Err(Error::Corrupt("block size"));
        }
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&raw[0x68..0x78]);
        let mut label = [0; 16];
        label.copy_from_slice(&raw[0x78..0x88]);
        let checksum_seed = if incompat & feature::CSUM_SEED != 0 { le32(raw, 0x270) } else { crc32c(!0, &uuid) };
        let flex = if incompat & feature::FLEX_BG != 0 { raw[0x174] } else { 0 };
        let this = Self {
            inodes_count: le32(raw, 0),
            blocks_count: halves(le32(raw, 4), upper(0x150)),
            reserved_blocks: halves(le32(raw, 8), upper(0x154)),
            first_data_block: le32(raw, 0x14),
            block_size: 1024 << log,
            blocks_per_group: le32(raw, 0x20),
            inodes_per_group: le32(raw, 0x28),
            inode_size: if dynamic { le16(raw, 0x58).into() } else { 128 },
            first_inode: if dynamic { le32(raw, 0x54) } else { 11 },
            compat,
            incompat,
            ro_compat,
            uuid,
            label,
            journal_inode: if compat & feature::HAS_JOURNAL != 0 { le32(raw, 0xe0) } else { 0 },
            hash_seed: core::array::from_fn(|i| le32(raw, 0xec + 4 * i)),
            hash_version: raw[0xfc],
            hash_unsigned: le32(raw, 0x160) & 2 != 0,
            descriptor_size: if wide { le16(raw, 0xfe).into() } else { 32 },
            checksum_seed,
            first_meta_group: le32(raw, 0x104),
            reserved_descriptor_blocks: le16(raw, 0xce).into(),
            groups_per_flex: 1_u32.checked_shl(flex.into()).unwrap_or(1),
            backup_groups: [le32(raw, 0x24c), le32(raw, 0x250)],
            extra_inode_bytes: le16(raw, 0x15e),
        };
        if this.has_ro(feature::METADATA_CSUM) && le32(raw, 0x3fc) != checksum(raw) {
            return Err(Error::Corrupt("superblock checksum"));
        }
        this.check()?;
        Ok(this)
    }

    fn check(&self) -> Result<()> {
        let bits = self.block_size * 8;
        let sound = self.inode_size.is_power_of_two()
            && (128..=self.block_size).contains(&self.inode_size)
            && self.first_data_block == u32::from(self.block_size == 1024)
            && self.blocks_per_group >= 256
            && (self.blocks_per_group <= bits || self.has_ro(feature::BIGALLOC))
            && self.blocks_per_group.is_multiple_of(8)
            && (8..=bits).contains(&self.inodes_per_group)
            && self.inodes_per_group.is_multiple_of(8)
            && self.blocks_count > u64::from(self.first_data_block)
            && self.blocks_count < 1 << 48
            && self.reserved_blocks <= self.blocks_count
            && self.descriptor_size.is_power_of_two()
            && (32..=1024).contains(&self.descriptor_size)
            && (self.descriptor_size >= 64 || !self.has_incompat(feature::BIT64))
            && self.first_inode >= 11
            && self.group_count() <= u64::from(u32::MAX)
            && u64::from(self.inodes_count) == self.group_count() * u64::from(self.inodes_per_group)
            && self.hash_version <= 5
            && u32::from(self.extra_inode_bytes) <= self.inode_size - 128;
        if sound { Ok(()) } else { Err(Error::Corrupt("superblock")) }
    }

    /// How many groups there are.
    pub fn group_count(&self) -> u64 {
        (self.blocks_count - u64::from(self.first_data_block)).div_ceil(self.blocks_per_group.into())
    }

    pub(crate) fn has_compat(&self, bits: u32) -> bool {
        self.compat & bits != 0
    }

    pub(crate) fn has_incompat(&self, bits: u32) -> bool {
        self.incompat & bits != 0
    }

    pub(crate) fn has_ro(&self, bits: u32) -> bool {
        self.ro_compat & bits != 0
    }

    /// Whether all features let it be written.
    pub fn is_writable(&self) -> bool {
        self.incompat & !feature::INCOMPAT_WRITABLE == 0 && self.ro_compat & !feature::RO_WRITABLE == 0
    }

    /// Whether the journal has to be replayed before anything else is believed.
    pub fn needs_recovery(&self) -> bool {
        self.has_incompat(feature::RECOVER)
    }
}

/// The checksum that belongs in the superblock's last four bytes.
pub fn checksum(raw: &[u8]) -> u32 {
    crc32c(!0, &raw[..0x3fc])
}

/// The figures in the superblock's bytes that change.
pub mod counts {
    use super::*;

    pub fn free_blocks(raw: &[u8], wide: bool) -> u64 {
        halves(le32(raw, 0xc), if wide { le32(raw, 0x158) } else { 0 })
    }

    pub fn set_free_blocks(raw: &mut [u8], wide: bool, count: u64) {
        put32(raw, 0xc, low32(count));
        if wide {
            put32(raw, 0x158, high32(count));
        }
    }

    pub fn free_inodes(raw: &[u8]) -> u32 {
        le32(raw, 0x10)
    }

    pub fn set_free_inodes(raw: &mut [u8], count: u32) {
        put32(raw, 0x10, count);
    }

    pub fn last_orphan(raw: &[u8]) -> u32 {
        le32(raw, 0xe8)
    }

    pub fn set_last_orphan(raw: &mut [u8], inode: u32) {
        put32(raw, 0xe8, inode);
    }

    pub fn state(raw: &[u8]) -> u16 {
        le16(raw, 0x3a)
    }

    pub fn set_state(raw: &mut [u8], state: u16) {
        put16(raw, 0x3a, state);
    }

    pub fn set_recovery(raw: &mut [u8], needed: bool) {
        let others = le32(raw, 0x60) & !feature::RECOVER;
        put32(raw, 0x60, if needed { others | feature::RECOVER } else { others });
    }

    pub fn set_ro_feature(raw: &mut [u8], bit: u32) {
        let others = le32(raw, 0x64);
        put32(raw, 0x64, others | bit);
    }

    pub fn set_compat_feature(raw: &mut [u8], bit: u32) {
        let others = le32(raw, 0x5c);
        put32(raw, 0x5c, others | bit);
    }

    pub fn set_mounted(raw: &mut [u8], seconds: u64) {
        put32(raw, 0x2c, low32(seconds));
        let mounts = le16(raw, 0x34);
        put16(raw, 0x34, mounts.saturating_add(1));
    }

    pub fn set_written(raw: &mut [u8], seconds: u64) {
        put32(raw, 0x30, low32(seconds));
    }
}
