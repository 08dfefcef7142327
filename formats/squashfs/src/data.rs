//! Content: blocks in a row, each compressed for itself, and the tail, which shares a block (a *fragment*) with those of other files.

use alloc::vec::Vec;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::inode::{Content, Tail};
use crate::metadata::{Metadata, Position};
use crate::{Error, FileKind, Inode, Packed, Reader, Source};

/// Where a part of a file's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The part's first byte, as an offset in the file: a multiple of the size of blocks.
    pub start: u64,
    /// The part's bytes; at least 1, and not beyond the file's end.
    pub bytes: u64,
    /// Where it is.
    pub place: Place,
}

/// Where a part of a file's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the device at this address, in bytes, as it is.
    Device(u64),
    /// Nowhere: it is all zeros.
    Hole,
    /// In a block that is compressed, from this byte of it on.
    Packed(Packed, usize),
}

/// Where a file's blocks are, as far as that was found out: their sizes stand in the image, and must be added up. It grows by what is read, and keeps 24 bytes for each 2,048 blocks.
#[derive(Debug, Default)]
pub struct BlockIndex {
    steps: Vec<Step>,
}

/// Of every so many blocks it is known where they are.
const STRIDE: u64 = 2048;
/// No index is longer.
const MOST_STEPS: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Step {
    /// Where the block's size stands.
    size: Position,
    /// Where the block is.
    address: u64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Fragment {
    start: U64,
    size: U32,
    unused: U32,
}

/// Said of the size of a block that is not compressed.
const IS_PLAIN: u32 = 1 << 24;

impl<S: Source> Reader<'_, S> {
    /// Where the content of the block with `offset` is.
    ///
    /// # Errors
    /// `NotFound` at or beyond the file's end; `WrongKind` for what is no regular file; `Corrupt`, `Unsupported`, `NoMemory`, `Absent`.
    pub fn map(&self, inode: &Inode, index: &mut BlockIndex, offset: u64) -> Result<Mapping, Error> {
        let Content::File { start, sizes, blocks, tail } = inode.content else { return Err(Error::WrongKind) };
        if offset >= inode.size {
            return Err(Error::NotFound);
        }
        let block = offset >> self.image.block_bits;
        let first = block << self.image.block_bits;
        let bytes = (inode.size - first).min(self.image.block_bytes().into());
        let place = match tail {
            Some(tail) if block == blocks => self.tail(tail, bytes)?,
            _ => {
                let (address, size) = self.block(Step { size: sizes, address: start }, index, block)?;
                let place = self.place(address, size)?;
                if u64::from(size & !IS_PLAIN) < bytes && matches!(place, Place::Device(_)) {
                    return Err(TOO_SHORT);
                }
                place
            }
        };
        Ok(Mapping { start: first, bytes, place })
    }

    /// Copies content from `offset` on; how many bytes, fewer than `to` has only at the file's end. After an error what is in `to` means nothing.
    ///
    /// # Errors
    /// As for [`map`](Self::map), and what [`Work::step`](crate::Work::step) says.
    pub fn read(&self, inode: &Inode, index: &mut BlockIndex, mut offset: u64, to: &mut [u8]) -> Result<usize, Error> {
        if inode.kind != FileKind::Regular {
            return Err(Error::WrongKind);
        }
        let len = inode.size.saturating_sub(offset).min(to.len() as u64) as usize;
        let mut to = &mut to[..len];
        while !to.is_empty() {
            let mapping = self.map(inode, index, offset)?;
            let within = (offset - mapping.start) as usize;
            let (now, later) = to.split_at_mut((mapping.bytes as usize - within).min(to.len()));
            match mapping.place {
                Place::Device(address) => self.copy(address + within as u64, now)?,
                Place::Hole => now.fill(0),
                Place::Packed(packed, from) => {
                    if self.source.unpack(packed, from + within, now)? < now.len() {
                        return Err(TOO_SHORT);
                    }
                }
            }
            offset += now.len() as u64;
            to = later;
        }
        Ok(len)
    }

    /// What a symbolic link leads to: 1 to 4,095 bytes without a zero.
    ///
    /// # Errors
    /// `WrongKind` (no symbolic link), `Corrupt`, `NoMemory`, `Absent`.
    pub fn symlink(&self, inode: &Inode) -> Result<Vec<u8>, Error> {
        let Content::Symlink(position) = inode.content else { return Err(Error::WrongKind) };
        let target = Metadata::new(*self, position).bytes(inode.size as usize)?;
        if target.contains(&0) { Err(Error::Corrupt("a symbolic link's target")) } else { Ok(target) }
    }

    /// Where a block is, and what is said of its size. `first` is the file's first.
    fn block(&self, first: Step, index: &mut BlockIndex, block: u64) -> Result<(u64, u32), Error> {
        let step = usize::try_from(block / STRIDE).unwrap_or(usize::MAX);
        if step >= MOST_STEPS {
            return Err(Error::Unsupported("a file of more than 134 million blocks"));
        }
        if index.steps.is_empty() {
            index.steps.push(first);
        }
        while index.steps.len() <= step {
            let next = self.add_up(index.steps[index.steps.len() - 1], STRIDE as usize)?;
            index.steps.try_reserve(1).map_err(|_| Error::NoMemory)?;
            index.steps.push(next);
            self.source.pause()?;
        }
        let here = self.add_up(index.steps[step], (block % STRIDE) as usize)?;
        let size: U32 = Metadata::new(*self, here.size).get()?;
        Ok((here.address, size.get()))
    }

    /// Where the block is that comes so many blocks after another.
    fn add_up(&self, mut step: Step, blocks: usize) -> Result<Step, Error> {
        let mut metadata = Metadata::new(*self, step.size);
        for size in metadata.bytes(4 * blocks)?.chunks_exact(4) {
            let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]);
            step.address = step.address.checked_add((size & !IS_PLAIN).into()).ok_or(BAD_SIZE)?;
        }
        step.size = metadata.position();
        Ok(step)
    }

    /// What is at an address, of which that size is said.
    fn place(&self, address: u64, size: u32) -> Result<Place, Error> {
        let bytes = size & !IS_PLAIN;
        if bytes > self.image.block_bytes() {
            return Err(BAD_SIZE);
        }
        if size == 0 {
            return Ok(Place::Hole);
        }
        let packed = self.packed(address, bytes, self.image.block_bytes())?;
        Ok(if size & IS_PLAIN != 0 { Place::Device(address) } else { Place::Packed(packed, 0) })
    }

    /// Where so many bytes of a tail are.
    fn tail(&self, tail: Tail, bytes: u64) -> Result<Place, Error> {
        if tail.fragment >= self.image.fragments {
            return Err(Error::Corrupt("a fragment's number"));
        }
        let fragment: Fragment = self.table_entry(self.image.fragment_table, tail.fragment)?;
        if u64::from(tail.offset) + bytes > self.image.block_bytes().into() {
            return Err(Error::Corrupt("a tail is longer than its fragment"));
        }
        match self.place(fragment.start.get(), fragment.size.get())? {
            Place::Packed(packed, _) => Ok(Place::Packed(packed, tail.offset as usize)),
            Place::Device(_) if u64::from(tail.offset) + bytes > u64::from(fragment.size.get() & !IS_PLAIN) => {
                Err(TOO_SHORT)
            }
            Place::Device(address) => Ok(Place::Device(address + u64::from(tail.offset))),
            Place::Hole => Err(Error::Corrupt("an empty fragment")),
        }
    }
}

const TOO_SHORT: Error = Error::Corrupt("a block ends too early");
const BAD_SIZE: Error = Error::Corrupt("the size of a block");
