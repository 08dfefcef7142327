//! Directories: blocks of entries, all sorted by name. A block begins with its entries of 12 bytes; the names follow.

use core::cmp::Ordering;
use core::ops::ControlFlow;

use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::blocks::{Blocks, is_in_one_block};
use crate::data::{Place, zeros};
use crate::{Error, FileKind, Inode, Reader};

/// The longest name, in bytes.
pub const LONGEST_NAME: usize = 255;

/// The position of the first entry; 1 and 2 are left for `.` and `..`.
pub const FIRST_POSITION: u64 = 3;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Entry {
    nid: U64,
    name_offset: U16,
    kind: u8,
    reserved: u8,
}

/// A name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// The name: not empty, without `/` and zero bytes.
    pub name: &'a [u8],
    /// The number of its inode.
    pub nid: u64,
    /// The kind that the directory says it has; `None` if it does not say.
    pub kind: Option<FileKind>,
    /// Where a listing goes on after this entry.
    pub next: u64,
}

impl<B: Blocks> Reader<'_, B> {
    /// Finds a name, which may be `.` or `..`; the inode's number. Reads as many blocks as a binary search does.
    ///
    /// # Errors
    /// `NotFound`, `WrongKind` (no directory), `Corrupt`, `Unsupported`, `Absent`.
    pub fn lookup(&self, directory: &Inode, name: &[u8]) -> Result<u64, Error> {
        let (mut low, mut high) = (0, self.blocks_of(directory)?);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.with_directory_block(directory, middle, |block| block.search(name))? {
                Found::Here(nid) => return Ok(nid),
                Found::Before => high = middle,
                Found::After => low = middle + 1,
                Found::Nowhere => return Err(Error::NotFound),
            }
        }
        Err(Error::NotFound)
    }

    /// Tells the entries of one block of the directory from `position` on, without `.` and `..`, until `each` breaks; where to go on, `None` at the
    /// directory's end. Positions are at least [`FIRST_POSITION`] and mean the same for ever. Either the call fails, or `each` was called for all there is: an
    /// entry is never told by a call that fails. An entry that `each` breaks at counts as not told.
    ///
    /// # Errors
    /// `WrongKind` (no directory), `Corrupt`, `Unsupported`, `Absent`.
    pub fn list(
        &self,
        directory: &Inode,
        position: u64,
        mut each: impl FnMut(DirectoryEntry<'_>) -> ControlFlow<()>,
    ) -> Result<Option<u64>, Error> {
        let per_block = u64::from(self.image.block_bytes()) / ENTRY_BYTES as u64;
        let place = position.saturating_sub(FIRST_POSITION);
        let (number, index) = (place / per_block, (place % per_block) as usize);
        let blocks = self.blocks_of(directory)?;
        if number >= blocks {
            return Ok(None);
        }
        // Fits: the number of blocks times their size is the directory's size.
        let first = FIRST_POSITION + number * per_block;
        self.with_directory_block(directory, number, |block| {
            // All are checked before the first is told.
            for at in index..block.count {
                block.entry(at)?;
            }
            for at in index..block.count {
                let (name, entry) = block.entry(at)?;
                if name == b"." || name == b".." {
                    continue;
                }
                let here = first + at as u64;
                let told = DirectoryEntry { name, nid: entry.nid.get(), kind: kind(entry.kind), next: here + 1 };
                if each(told).is_break() {
                    return Ok(Some(here));
                }
            }
            Ok((number + 1 < blocks).then_some(first + per_block))
        })
    }

    fn blocks_of(&self, directory: &Inode) -> Result<u64, Error> {
        if directory.kind != FileKind::Directory {
            return Err(Error::WrongKind);
        }
        Ok(directory.size.div_ceil(u64::from(self.image.block_bytes())))
    }

    /// Calls `with` with a block of a directory, in the cache itself where it is not compressed.
    fn with_directory_block<R>(
        &self,
        directory: &Inode,
        number: u64,
        with: impl FnOnce(Block<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let start = number << self.image.block_bits;
        let len = (directory.size - start).min(u64::from(self.image.block_bytes())) as usize;
        let mapping = self.map(directory, start)?;
        if let Place::Device(address) | Place::Inline(address) = mapping.place
            && mapping.bytes >= len as u64
            && is_in_one_block(address, len)
        {
            return self.device.view(address, len, |bytes| with(Block::new(bytes)?));
        }
        let mut bytes = zeros(len)?;
        self.read(directory, start, &mut bytes)?;
        with(Block::new(&bytes)?)
    }
}

const ENTRY_BYTES: usize = size_of::<Entry>();

/// Where a name is, as a block can tell.
enum Found {
    Here(u64),
    Before,
    After,
    Nowhere,
}

/// A block of a directory. `count` is at least 1, and as many entries are in `bytes`.
struct Block<'a> {
    bytes: &'a [u8],
    count: usize,
}

impl<'a> Block<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let (first, _) = Entry::read_from_prefix(bytes).map_err(|_| MALFORMED)?;
        // The names begin where the entries end.
        let names = usize::from(first.name_offset.get());
        if names < ENTRY_BYTES || names % ENTRY_BYTES != 0 || names >= bytes.len() {
            return Err(MALFORMED);
        }
        Ok(Self { bytes, count: names / ENTRY_BYTES })
    }

    fn entry(&self, index: usize) -> Result<(&'a [u8], Entry), Error> {
        let entry = self.raw(index)?;
        let start = usize::from(entry.name_offset.get());
        let name = if index + 1 < self.count {
            self.bytes.get(start..usize::from(self.raw(index + 1)?.name_offset.get())).ok_or(MALFORMED)?
        } else {
            // The last name ends where the block does, or at a zero.
            let rest = self.bytes.get(start..).ok_or(MALFORMED)?;
            &rest[..rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len())]
        };
        if name.is_empty() || name.len() > LONGEST_NAME || name.iter().any(|byte| matches!(byte, 0 | b'/')) {
            return Err(MALFORMED);
        }
        Ok((name, entry))
    }

    fn raw(&self, index: usize) -> Result<Entry, Error> {
        let bytes = self.bytes.get(index * ENTRY_BYTES..).ok_or(MALFORMED)?;
        Entry::read_from_prefix(bytes).map(|(entry, _)| entry).map_err(|_| MALFORMED)
    }

    fn search(&self, name: &[u8]) -> Result<Found, Error> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let (here, entry) = self.entry(middle)?;
            match name.cmp(here) {
                Ordering::Equal => return Ok(Found::Here(entry.nid.get())),
                Ordering::Less => high = middle,
                Ordering::Greater => low = middle + 1,
            }
        }
        Ok(match low {
            0 => Found::Before,
            all if all == self.count => Found::After,
            _ => Found::Nowhere,
        })
    }
}

const MALFORMED: Error = Error::Corrupt("a block of a directory");

fn kind(number: u8) -> Option<FileKind> {
    Some(match number {
        1 => FileKind::Regular,
        2 => FileKind::Directory,
        3 => FileKind::CharacterDevice,
        4 => FileKind::BlockDevice,
        5 => FileKind::Fifo,
        6 => FileKind::Socket,
        7 => FileKind::Symlink,
        _ => return None,
    })
}
