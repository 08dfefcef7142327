//! The superblock, 1,024 bytes after the device's start: what an image says of itself.

use alloc::vec::Vec;

use bitflags::bitflags;
use crc32c::crc32c;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::blocks::{BLOCK_BYTES, Blocks, Device};
use crate::xattr::LongPrefix;
use crate::{Error, Reader};

const OFFSET: u64 = 1024;
const MAGIC: u32 = 0xE0F5_E1E2;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Superblock {
    magic: U32,
    checksum: U32,
    compatible: U32,
    block_bits: u8,
    extension_slots: u8,
    root: U16,
    inodes: U64,
    epoch: U64,
    epoch_nanoseconds: U32,
    blocks: U32,
    metadata_block: U32,
    xattr_block: U32,
    uuid: [u8; 16],
    volume_name: [u8; 16],
    incompatible: U32,
    compression: U16,
    extra_devices: U16,
    device_slot: U16,
    directory_block_bits: u8,
    xattr_prefixes: u8,
    xattr_prefix_start: U32,
    packed_inode: U64,
    xattr_filter: u8,
    reserved: [u8; 23],
}

bitflags! {
    /// What a reader may ignore.
    #[derive(Clone, Copy)]
    struct Compatible: u32 {
        const CHECKSUM = 1;
        const PLAIN_XATTR_PREFIXES = 0x10;
    }

    /// What a reader must know of. Two features share a bit where the one that is meant is clear from elsewhere.
    #[derive(Clone, Copy)]
    struct Incompatible: u32 {
        const ZERO_PADDING = 1;
        const COMPRESSION_CONFIGURATION_OR_BIG_CLUSTERS = 2;
        const CHUNKS = 4;
        const DEVICE_TABLE_OR_HEAD2 = 8;
        const INLINE_TAILS = 0x10;
        const FRAGMENTS_OR_DEDUPLICATION = 0x20;
        const XATTR_PREFIXES = 0x40;
    }
}

/// An image that was opened: what its superblock says. It borrows nothing and never changes.
#[derive(Clone, Debug)]
pub struct Image {
    /// Bytes of the image on the device.
    pub(crate) bytes: u64,
    pub(crate) block_bits: u32,
    pub(crate) metadata: u64,
    pub(crate) shared_xattrs: u64,
    pub(crate) epoch: i64,
    pub(crate) epoch_nanoseconds: u32,
    pub(crate) packed: Option<u64>,
    pub(crate) long_prefixes: Vec<LongPrefix>,
    root: u64,
    inodes: u64,
    uuid: [u8; 16],
    volume_name: [u8; 16],
}

impl Image {
    /// Reads and checks the superblock of a device of `device_bytes` bytes.
    ///
    /// # Errors
    /// `Corrupt` for what is no EROFS image, whose checksum is wrong, or which is longer than its device; `Unsupported` for what the table of the crate says is
    /// refused; `Absent`.
    pub fn open(blocks: &impl Blocks, device_bytes: u64) -> Result<Self, Error> {
        let device = Device { blocks, bytes: device_bytes };
        let superblock: Superblock = device.get(OFFSET)?;
        if superblock.magic != MAGIC {
            return Err(Error::Corrupt("no EROFS superblock"));
        }
        let block_bits = u32::from(superblock.block_bits);
        if !(9..=BLOCK_BYTES.ilog2()).contains(&block_bits) {
            return Err(Error::Unsupported("blocks of other than 512 to 4096 bytes"));
        }
        let compatible = Compatible::from_bits_retain(superblock.compatible.get());
        if compatible.contains(Compatible::CHECKSUM) {
            check_checksum(device, superblock.checksum.get(), 1 << block_bits)?;
        }
        let incompatible = Incompatible::from_bits(superblock.incompatible.get())
            .ok_or(Error::Unsupported("an incompatible feature"))?;
        if superblock.extra_devices != 0 {
            return Err(Error::Unsupported("data on further devices"));
        }
        if superblock.directory_block_bits != 0 {
            return Err(Error::Unsupported("directory blocks of another size"));
        }
        if superblock.epoch_nanoseconds >= NANOSECONDS {
            return Err(Error::Corrupt("nanoseconds out of range"));
        }
        let bytes = u64::from(superblock.blocks) << block_bits;
        device.check(0, bytes)?;
        let packed = superblock.packed_inode.get();
        let has_packed = packed != 0 && incompatible.contains(Incompatible::FRAGMENTS_OR_DEDUPLICATION);
        let mut image = Self {
            bytes,
            block_bits,
            metadata: u64::from(superblock.metadata_block) << block_bits,
            shared_xattrs: u64::from(superblock.xattr_block) << block_bits,
            epoch: superblock.epoch.get().cast_signed(),
            epoch_nanoseconds: superblock.epoch_nanoseconds.get(),
            packed: has_packed.then_some(packed),
            long_prefixes: Vec::new(),
            root: u64::from(superblock.root),
            inodes: superblock.inodes.get(),
            uuid: superblock.uuid,
            volume_name: superblock.volume_name,
        };
        if incompatible.contains(Incompatible::XATTR_PREFIXES) {
            let inode = if compatible.contains(Compatible::PLAIN_XATTR_PREFIXES) { None } else { image.packed };
            let start = u64::from(superblock.xattr_prefix_start) * 4;
            image.long_prefixes = image.reader(blocks).long_prefixes(inode, start, superblock.xattr_prefixes)?;
        }
        Ok(image)
    }

    /// Reads from the image, through a cache of its device.
    pub fn reader<'a, B: Blocks>(&'a self, blocks: &'a B) -> Reader<'a, B> {
        Reader { image: self, device: Device { blocks, bytes: self.bytes } }
    }

    /// The number of the root directory's inode.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Bytes of a block of the image: a power of two from 512 to 4096.
    pub fn block_bytes(&self) -> u32 {
        1 << self.block_bits
    }

    /// Blocks of the image.
    pub fn blocks(&self) -> u64 {
        self.bytes >> self.block_bits
    }

    /// Inodes of the image, as its superblock says.
    pub fn inodes(&self) -> u64 {
        self.inodes
    }

    /// The image's UUID.
    pub fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    /// The volume's name, without the zeros after it.
    pub fn volume_name(&self) -> &[u8] {
        let len = self.volume_name.iter().position(|byte| *byte == 0).unwrap_or(self.volume_name.len());
        &self.volume_name[..len]
    }
}

/// Nanoseconds of a second.
pub(crate) const NANOSECONDS: u32 = 1_000_000_000;

/// The checksum counts the superblock and what follows it in its block, itself as zero.
fn check_checksum(device: Device<'_, impl Blocks>, expected: u32, block_bytes: usize) -> Result<(), Error> {
    let len = if block_bytes > OFFSET as usize { block_bytes - OFFSET as usize } else { block_bytes };
    let found = device.view(OFFSET, len, |bytes| {
        let (magic, rest) = bytes.split_at(4);
        let (_, rest) = rest.split_at(4);
        Ok([magic, &[0; 4], rest].into_iter().fold(u32::MAX, crc32c))
    })?;
    if found == expected { Ok(()) } else { Err(Error::Corrupt("the superblock's checksum is wrong")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_superblock_has_the_size_of_the_format() {
        assert_eq!(size_of::<Superblock>(), 128);
    }
}
