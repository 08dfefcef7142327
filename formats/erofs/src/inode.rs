//! Inodes: 32 bytes (compact) or 64 (extended), at 32 times their number in the metadata area.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::blocks::Blocks;
use crate::superblock::NANOSECONDS;
use crate::{Error, Reader};

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Compact {
    format: U16,
    xattr_units: U16,
    mode: U16,
    nlink: U16,
    size: U32,
    mtime: U32,
    location: U32,
    ino: U32,
    uid: U16,
    gid: U16,
    reserved: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Extended {
    format: U16,
    xattr_units: U16,
    mode: U16,
    reserved: U16,
    size: U64,
    location: U32,
    ino: U32,
    uid: U32,
    gid: U32,
    mtime: U64,
    mtime_nanoseconds: U32,
    nlink: U32,
    reserved_too: [u8; 16],
}

/// The kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A symbolic link.
    Symlink,
}

impl FileKind {
    fn of_mode(mode: u16) -> Option<Self> {
        Some(match mode >> 12 {
            1 => Self::Fifo,
            2 => Self::CharacterDevice,
            4 => Self::Directory,
            6 => Self::BlockDevice,
            8 => Self::Regular,
            10 => Self::Symlink,
            12 => Self::Socket,
            _ => return None,
        })
    }
}

/// Where an inode's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Blocks in a row, from this one on; none (a hole) if `u32::MAX`.
    Plain(u32),
    /// The same, but for the rest after the last full block, which follows the inode.
    InlineTail(u32),
    /// Chunks of this many bytes (a power of two), whose addresses follow the inode.
    Chunks { chunk_bits: u32, entry: ChunkEntry },
    /// Compressed, with indexes of 8 bytes after the inode.
    CompressedFull,
    /// Compressed, with indexes of 2 or 4 bytes after the inode.
    CompressedCompact,
}

/// What says where a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkEntry {
    /// 4 bytes: a block.
    Block,
    /// 8 bytes: a device and a block.
    Index,
}

/// An inode: what `stat` says of it, and where its content is. It borrows nothing and never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its number in the image: the inode number that Linux shows.
    pub nid: u64,
    /// The serial number that `mkfs.erofs` gave it, for programs with 32-bit inode numbers.
    pub ino: u32,
    /// The kind and the permissions, as `st_mode`.
    pub mode: u16,
    /// The kind, as in `mode`.
    pub kind: FileKind,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Bytes of content; at most `i64::MAX`.
    pub size: u64,
    /// How many names it has.
    pub nlink: u32,
    /// When its content changed last: seconds since 1970.
    pub mtime: i64,
    /// And nanoseconds, less than 1,000,000,000.
    pub mtime_nanoseconds: u32,
    /// The major and minor number of a device; 0 and 0 for all other kinds.
    pub device: (u32, u32),
    pub(crate) layout: Layout,
    /// Where its extended attributes begin, right after it.
    pub(crate) xattr_start: u64,
    /// Where they end, and what belongs to its content begins.
    pub(crate) end: u64,
}

impl<B: Blocks> Reader<'_, B> {
    /// Reads an inode.
    ///
    /// # Errors
    /// `Corrupt` (no such number, no such kind of file), `Unsupported` (its layout), `Absent`.
    pub fn inode(&self, nid: u64) -> Result<Inode, Error> {
        let address = nid
            .checked_mul(32)
            .and_then(|offset| offset.checked_add(self.image.metadata))
            .ok_or(Error::Corrupt("an inode's number is too large"))?;
        let format: U16 = self.device.get(address)?;
        let format = format.get();
        if format & !0xf != 0 {
            return Err(Error::Unsupported("an inode's format"));
        }
        let (fields, len) = if format & 1 == 0 {
            (Extended::from_compact(&self.device.get(address)?, self.image.epoch_nanoseconds), size_of::<Compact>())
        } else {
            (self.device.get(address)?, size_of::<Extended>())
        };
        let epoch = if format & 1 == 0 { self.image.epoch } else { 0 };
        self.decode(nid, &fields, format, epoch, address + len as u64)
    }

    fn decode(&self, nid: u64, fields: &Extended, format: u16, epoch: i64, xattr_start: u64) -> Result<Inode, Error> {
        let mode = fields.mode.get();
        let kind = FileKind::of_mode(mode).ok_or(Error::Corrupt("an inode's kind"))?;
        if fields.size > i64::MAX as u64 || fields.mtime_nanoseconds >= NANOSECONDS {
            return Err(Error::Corrupt("an inode's size or time"));
        }
        let location = fields.location.get();
        let has_content = matches!(kind, FileKind::Regular | FileKind::Directory | FileKind::Symlink);
        let is_device = matches!(kind, FileKind::CharacterDevice | FileKind::BlockDevice);
        Ok(Inode {
            nid,
            ino: fields.ino.get(),
            mode,
            kind,
            uid: fields.uid.get(),
            gid: fields.gid.get(),
            size: fields.size.get(),
            nlink: fields.nlink.get(),
            mtime: epoch.checked_add(fields.mtime.get().cast_signed()).ok_or(Error::Corrupt("an inode's time"))?,
            mtime_nanoseconds: fields.mtime_nanoseconds.get(),
            device: if is_device { device_numbers(location) } else { (0, 0) },
            // The location of what has no content means something else.
            layout: if has_content { self.layout(format >> 1, location)? } else { Layout::Plain(u32::MAX) },
            xattr_start,
            // An inode that could be read ends far below 2^64.
            end: xattr_start + xattr_bytes(fields.xattr_units.get()),
        })
    }

    fn layout(&self, layout: u16, location: u32) -> Result<Layout, Error> {
        Ok(match layout {
            0 => Layout::Plain(location),
            1 => Layout::CompressedFull,
            2 => Layout::InlineTail(location),
            3 => Layout::CompressedCompact,
            4 => {
                let format = location & 0xffff;
                if format & !0x3f != 0 {
                    return Err(Error::Unsupported("a format of chunks"));
                }
                let entry = if format & 0x20 == 0 { ChunkEntry::Block } else { ChunkEntry::Index };
                Layout::Chunks { chunk_bits: self.image.block_bits + (format & 0x1f), entry }
            }
            _ => return Err(Error::Unsupported("a layout of data")),
        })
    }
}

impl Extended {
    /// The same inode in the large form, but for its time: the compact one counts from the image's epoch.
    fn from_compact(compact: &Compact, mtime_nanoseconds: u32) -> Self {
        Self {
            format: compact.format,
            xattr_units: compact.xattr_units,
            mode: compact.mode,
            reserved: U16::ZERO,
            size: u64::from(compact.size).into(),
            location: compact.location,
            ino: compact.ino,
            uid: u32::from(compact.uid).into(),
            gid: u32::from(compact.gid).into(),
            mtime: u64::from(compact.mtime).into(),
            mtime_nanoseconds: mtime_nanoseconds.into(),
            nlink: u32::from(compact.nlink).into(),
            reserved_too: [0; 16],
        }
    }
}

/// Bytes of the extended attributes that follow an inode: a header of 12 bytes and the rest in units of 4.
fn xattr_bytes(units: u16) -> u64 {
    if units == 0 { 0 } else { 12 + 4 * (u64::from(units) - 1) }
}

/// Linux's encoding of device numbers in 32 bits: 12 bits of major number between the parts of the minor one.
fn device_numbers(encoded: u32) -> (u32, u32) {
    ((encoded & 0xf_ff00) >> 8, (encoded & 0xff) | ((encoded >> 12) & 0xf_ff00))
}
