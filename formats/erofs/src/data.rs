//! Content: where it is on the device, and reading it.

use alloc::vec::Vec;

use zerocopy::little_endian::U32;

use crate::blocks::Blocks;
use crate::inode::{ChunkEntry, Layout};
use crate::{Error, FileKind, Inode, Reader};

/// Where a part of a file's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The part's first byte, as an offset in the file. It is what was asked for, but for compressed parts, which are told whole.
    pub start: u64,
    /// The part's bytes; at least 1, and not beyond the file's end. What the device holds after the file's end means nothing.
    pub bytes: u64,
    /// Where it is.
    pub place: Place,
}

/// Where a part of a file's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the device at this address, in bytes, as it is. All of it is inside the image. Its address is a multiple of the image's block size if the
    /// offset in the file is one.
    Device(u64),
    /// Beside the inode, less than a block: [`Reader::read`] copies it. The address, in bytes, of the first.
    Inline(u64),
    /// Nowhere: it is all zeros.
    Hole,
    /// Compressed: [`Reader::read`] decompresses it, all or the first bytes of it at once for the price of once.
    Compressed,
}

impl<B: Blocks> Reader<'_, B> {
    /// Where the content from `offset` on is.
    ///
    /// # Errors
    /// `NotFound` at or beyond the file's end; `WrongKind` for what has no content (devices, pipes, sockets); `Corrupt`, `Unsupported`, `Absent`.
    pub fn map(&self, inode: &Inode, offset: u64) -> Result<Mapping, Error> {
        check_kind(inode)?;
        if offset >= inode.size {
            return Err(Error::NotFound);
        }
        match inode.layout {
            Layout::Plain(u32::MAX) => Ok(Mapping { start: offset, bytes: inode.size - offset, place: Place::Hole }),
            Layout::Plain(block) => self.map_blocks(block, inode.size, offset),
            Layout::InlineTail(block) => self.map_with_inline_tail(inode, block, offset),
            Layout::Chunks { chunk_bits, entry } => self.map_chunk(inode, chunk_bits, entry, offset),
            Layout::CompressedFull | Layout::CompressedCompact => {
                let extent = self.extent(inode, offset)?;
                Ok(Mapping { start: extent.start, bytes: extent.end - extent.start, place: Place::Compressed })
            }
        }
    }

    /// Copies content from `offset` on; how many bytes, fewer than `to` has only at the file's end. After an error what is in `to` means nothing.
    ///
    /// # Errors
    /// `WrongKind` for what has no content (devices, pipes, sockets); `Corrupt`, `Unsupported`, `NoMemory`, `Absent`.
    pub fn read(&self, inode: &Inode, offset: u64, to: &mut [u8]) -> Result<usize, Error> {
        check_kind(inode)?;
        let len = inode.size.saturating_sub(offset).min(to.len() as u64) as usize;
        let to = &mut to[..len];
        match inode.layout {
            Layout::CompressedFull | Layout::CompressedCompact => self.read_compressed(inode, offset, to)?,
            _ => self.read_plain(inode, offset, to)?,
        }
        Ok(len)
    }

    /// What a symbolic link leads to: 1 to 4,095 bytes without a zero.
    ///
    /// # Errors
    /// `WrongKind` (no symbolic link), `Corrupt`, `Unsupported`, `NoMemory`, `Absent`.
    pub fn symlink(&self, inode: &Inode) -> Result<Vec<u8>, Error> {
        if inode.kind != FileKind::Symlink {
            return Err(Error::WrongKind);
        }
        if !(1..=LONGEST_SYMLINK).contains(&inode.size) {
            return Err(Error::Corrupt("a symbolic link's length"));
        }
        let mut target = zeros(inode.size as usize)?;
        self.read(inode, 0, &mut target)?;
        if target.contains(&0) { Err(Error::Corrupt("a symbolic link's target")) } else { Ok(target) }
    }

    /// Reads content that is not compressed and does not end before `to` is full.
    pub(crate) fn read_plain(&self, inode: &Inode, mut offset: u64, mut to: &mut [u8]) -> Result<(), Error> {
        while !to.is_empty() {
            let mapping = self.map(inode, offset)?;
            let len = mapping.bytes.min(to.len() as u64) as usize;
            let (now, later) = to.split_at_mut(len);
            match mapping.place {
                Place::Device(address) | Place::Inline(address) => self.device.copy(address, now)?,
                Place::Hole => now.fill(0),
                // Only compressed layouts have compressed parts.
                Place::Compressed => return Err(Error::Corrupt("compressed data in a plain file")),
            }
            offset += len as u64;
            to = later;
        }
        Ok(())
    }

    /// `offset..end` of content whose blocks stand in a row.
    fn map_blocks(&self, block: u32, end: u64, offset: u64) -> Result<Mapping, Error> {
        let bytes = end - offset;
        let address = self.block_address(block).checked_add(offset).ok_or(OUTSIDE)?;
        self.device.check(address, bytes)?;
        Ok(Mapping { start: offset, bytes, place: Place::Device(address) })
    }

    fn map_with_inline_tail(&self, inode: &Inode, block: u32, offset: u64) -> Result<Mapping, Error> {
        // Not 0: the offset is below it.
        let tail = (inode.size - 1) >> self.image.block_bits << self.image.block_bits;
        if offset < tail {
            return self.map_blocks(block, tail, offset);
        }
        self.check_inline(inode.end, inode.size - tail)?;
        // Fits: the whole tail is on the device.
        Ok(Mapping { start: offset, bytes: inode.size - offset, place: Place::Inline(inode.end + (offset - tail)) })
    }

    fn map_chunk(&self, inode: &Inode, chunk_bits: u32, entry: ChunkEntry, offset: u64) -> Result<Mapping, Error> {
        let chunk = offset >> chunk_bits;
        let within = offset & ((1 << chunk_bits) - 1);
        let entry_bytes = match entry {
            ChunkEntry::Block => 4,
            ChunkEntry::Index => 8,
        };
        let table = inode.end.next_multiple_of(entry_bytes);
        let entry_at = chunk.checked_mul(entry_bytes).and_then(|at| at.checked_add(table)).ok_or(OUTSIDE)?;
        // Both kinds of entries end with the block.
        let block: U32 = self.device.get(entry_at.checked_add(entry_bytes - 4).ok_or(OUTSIDE)?)?;
        let bytes = ((1 << chunk_bits) - within).min(inode.size - offset);
        if block == u32::MAX {
            return Ok(Mapping { start: offset, bytes, place: Place::Hole });
        }
        let address = self.block_address(block.get()).checked_add(within).ok_or(OUTSIDE)?;
        self.device.check(address, bytes)?;
        Ok(Mapping { start: offset, bytes, place: Place::Device(address) })
    }

    /// That what is stored beside an inode lies in one block of the image.
    pub(crate) fn check_inline(&self, address: u64, bytes: u64) -> Result<(), Error> {
        let block_bytes = u64::from(self.image.block_bytes());
        self.device.check(address, bytes)?;
        if address % block_bytes + bytes > block_bytes {
            return Err(Error::Corrupt("data beside an inode crosses the end of its block"));
        }
        Ok(())
    }

    pub(crate) fn block_address(&self, block: u32) -> u64 {
        u64::from(block) << self.image.block_bits
    }
}

/// Linux's `PATH_MAX`, without the zero at its end.
const LONGEST_SYMLINK: u64 = 4095;

const OUTSIDE: Error = Error::Corrupt("content beyond the image's end");

fn check_kind(inode: &Inode) -> Result<(), Error> {
    match inode.kind {
        FileKind::Regular | FileKind::Directory | FileKind::Symlink => Ok(()),
        _ => Err(Error::WrongKind),
    }
}

/// So many zeros, or an error.
pub(crate) fn zeros(len: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| Error::NoMemory)?;
    bytes.resize(len, 0);
    Ok(bytes)
}
