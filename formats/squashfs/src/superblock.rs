//! The superblock: what an image says of itself.

use decompress::Algorithm;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Cache, Error, Reader, Source};

/// The magic number, with which an image begins.
pub const MAGIC: u32 = 0x7371_7368;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Superblock {
    magic: U32,
    inodes: U32,
    mtime: U32,
    block_bytes: U32,
    fragments: U32,
    compression: U16,
    block_bits: U16,
    flags: U16,
    ids: U16,
    major: U16,
    minor: U16,
    root: U64,
    bytes: U64,
    id_table: U64,
    xattr_table: U64,
    inode_table: U64,
    directory_table: U64,
    fragment_table: U64,
    export_table: U64,
}

/// Where a table is that there is not.
pub(crate) const NONE: u64 = u64::MAX;

/// An image that was opened: what its superblock says. It borrows nothing and never changes.
#[derive(Clone, Debug)]
pub struct Image {
    /// Bytes of the image on the device.
    pub(crate) bytes: u64,
    pub(crate) block_bits: u32,
    pub(crate) inode_table: u64,
    pub(crate) directory_table: u64,
    pub(crate) fragment_table: u64,
    pub(crate) id_table: u64,
    pub(crate) xattr_table: u64,
    pub(crate) fragments: u32,
    pub(crate) ids: u16,
    algorithm: Algorithm,
    root: u64,
    inodes: u32,
}

impl Image {
    /// Reads and checks the superblock of a device of `device_bytes` bytes.
    ///
    /// # Errors
    /// `Corrupt` for what is no squashfs, or is longer than its device; `Unsupported` for what the table of the crate says is refused; `Absent`.
    pub fn open(source: &impl Source, device_bytes: u64) -> Result<Self, Error> {
        let mut superblock = Superblock::new_zeroed();
        if device_bytes < size_of::<Superblock>() as u64 {
            return Err(Error::Corrupt("no squashfs superblock"));
        }
        source.copy(0, superblock.as_mut_bytes())?;
        if superblock.magic != MAGIC {
            return Err(Error::Corrupt("no squashfs superblock"));
        }
        if (superblock.major.get(), superblock.minor.get()) != (4, 0) {
            return Err(Error::Unsupported("squashfs of another version than 4.0"));
        }
        let algorithm = match superblock.compression.get() {
            1 => Algorithm::Zlib,
            4 => Algorithm::Xz,
            5 => Algorithm::Lz4,
            6 => Algorithm::Zstd,
            2 | 3 => return Err(Error::Unsupported("squashfs with LZMA or LZO")),
            _ => return Err(Error::Corrupt("a kind of compression")),
        };
        let block_bits = u32::from(superblock.block_bits.get());
        if !(12..=20).contains(&block_bits) || superblock.block_bytes.get() != 1 << block_bits {
            return Err(Error::Corrupt("the size of blocks"));
        }
        let bytes = superblock.bytes.get();
        if bytes > device_bytes {
            return Err(Error::Corrupt("the image is longer than its device"));
        }
        let image = Self {
            bytes,
            block_bits,
            inode_table: superblock.inode_table.get(),
            directory_table: superblock.directory_table.get(),
            fragment_table: superblock.fragment_table.get(),
            id_table: superblock.id_table.get(),
            xattr_table: superblock.xattr_table.get(),
            fragments: superblock.fragments.get(),
            ids: superblock.ids.get(),
            algorithm,
            // As of all inodes.
            root: superblock.root.get().wrapping_add(1),
            inodes: superblock.inodes.get(),
        };
        if image.inode_table >= image.directory_table || image.directory_table > bytes || image.id_table >= bytes {
            return Err(Error::Corrupt("where the tables are"));
        }
        Ok(image)
    }

    /// Reads from the image.
    pub fn reader<'a, S: Source>(&'a self, source: &'a S) -> Reader<'a, S> {
        Reader { image: self, source }
    }

    /// An empty cache for this image.
    pub fn cache(&self) -> Cache {
        Cache::new(self.algorithm, self.block_bytes())
    }

    /// The number of the root directory's inode.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Bytes of a block of content: a power of two from 4 KiB to 1 MiB.
    pub fn block_bytes(&self) -> u32 {
        1 << self.block_bits
    }

    /// Bytes of the image.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Inodes of the image, as its superblock says.
    pub fn inodes(&self) -> u64 {
        self.inodes.into()
    }
}

const _: () = assert!(size_of::<Superblock>() == 96);
