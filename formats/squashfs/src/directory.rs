//! Directories: runs of up to 256 names, sorted, each behind a header that says in which block of metadata their inodes are. Large ones have an index behind their inode: of each block of the listing its first name.

use core::ops::ControlFlow;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::inode::{Content, number_of};
use crate::metadata::{Metadata, Position};
use crate::{Error, FileKind, Inode, Reader, Source};

/// The longest name, in bytes.
pub const LONGEST_NAME: usize = 255;

/// The position of the first entry; 1 and 2 are left for `.` and `..`.
pub const FIRST_POSITION: u64 = 3;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    /// Less 1.
    count: U32,
    block: U32,
    ino: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Entry {
    offset: U16,
    ino: U16,
    kind: U16,
    /// Less 1.
    name_len: U16,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct IndexEntry {
    /// Bytes of the listing before it.
    at: U32,
    block: U32,
    /// Less 1.
    name_len: U32,
}

/// The most entries of a run.
const LONGEST_RUN: u32 = 256;
/// So much of a listing is looked through, at most, to find a place in it.
const FARTHEST: u64 = 128 << 10;
/// An index of the longest directory has fewer entries.
const LONGEST_INDEX: u16 = 4096;

/// A name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// The name: not empty, without `/` and zero bytes.
    pub name: &'a [u8],
    /// The number of its inode.
    pub number: u64,
    /// The kind that the directory says it has.
    pub kind: FileKind,
    /// Where a listing goes on after this entry.
    pub next: u64,
}

/// A listing, from somewhere on.
struct Listing<'a, S> {
    metadata: Metadata<'a, S>,
    /// Bytes before, and bytes in all.
    at: u64,
    size: u64,
    /// Of the run: how many are left, and in which block their inodes are.
    left: u32,
    block: u32,
    name: [u8; LONGEST_NAME],
}

impl<S: Source> Listing<'_, S> {
    /// The next entry, and where it begins.
    fn next(&mut self) -> Result<Option<(u64, DirectoryEntry<'_>)>, Error> {
        while self.left == 0 {
            if self.at >= self.size {
                return Ok(None);
            }
            let header: Header = self.get()?;
            let count = header.count.get();
            if count >= LONGEST_RUN {
                return Err(Error::Corrupt("a run of names is too long"));
            }
            (self.left, self.block) = (count + 1, header.block.get());
        }
        let start = self.at;
        let entry: Entry = self.get()?;
        let len = usize::from(entry.name_len.get()) + 1;
        let name = self.name.get_mut(..len).ok_or(Error::Corrupt("a name is too long"))?;
        self.metadata.read(name)?;
        self.at += len as u64;
        self.left -= 1;
        if self.at > self.size {
            return Err(Error::Corrupt("a directory ends within a name"));
        }
        if name.iter().any(|byte| matches!(byte, 0 | b'/')) || name == b"." || name == b".." {
            return Err(Error::Corrupt("a name"));
        }
        let entry = DirectoryEntry {
            name,
            number: number_of(self.block, entry.offset.get()),
            kind: FileKind::of(entry.kind.get()).ok_or(Error::Corrupt("a directory entry's kind"))?,
            next: self.at + FIRST_POSITION,
        };
        Ok(Some((start, entry)))
    }

    fn get<T: FromBytes + IntoBytes>(&mut self) -> Result<T, Error> {
        self.at += size_of::<T>() as u64;
        self.metadata.get()
    }
}

/// What a place in a listing is looked for by.
#[derive(Clone, Copy)]
enum Target<'a> {
    Name(&'a [u8]),
    /// Bytes before it.
    Offset(u64),
}

impl<'a, S: Source> Reader<'a, S> {
    /// Finds a name, but for `.` and `..`; the inode's number.
    ///
    /// # Errors
    /// `NotFound`, `WrongKind` (no directory), `Corrupt`, `Unsupported`, `Absent`.
    pub fn lookup(&self, directory: &Inode, name: &[u8]) -> Result<u64, Error> {
        let mut listing = self.listing(directory, Target::Name(name))?;
        let start = listing.at;
        while let Some((at, entry)) = listing.next()? {
            if entry.name == name {
                return Ok(entry.number);
            }
            if entry.name > name {
                break;
            }
            check_distance(start, at)?;
        }
        Err(Error::NotFound)
    }

    /// Tells the entries of a directory from `position` on, without `.` and `..`, until `each` breaks; where to go on, `None` at the end. What was told before an error is true.
    ///
    /// # Errors
    /// `WrongKind` (no directory), `Corrupt`, `Unsupported`, `Absent`.
    pub fn list(
        &self,
        directory: &Inode,
        position: u64,
        mut each: impl FnMut(DirectoryEntry<'_>) -> ControlFlow<()>,
    ) -> Result<Option<u64>, Error> {
        let from = position.saturating_sub(FIRST_POSITION);
        let mut listing = self.listing(directory, Target::Offset(from))?;
        let start = listing.at;
        // An entry is told where the one before it ends: between them a header may stand.
        let mut before = start;
        while let Some((at, entry)) = listing.next()? {
            let (entry_position, next) = (before, entry.next);
            before = next - FIRST_POSITION;
            if entry_position < from {
                check_distance(start, at)?;
            } else if each(entry).is_break() {
                return Ok(Some(entry_position.max(from) + FIRST_POSITION));
            }
        }
        Ok(None)
    }

    /// The listing of a directory from somewhere before its target on.
    fn listing(&self, directory: &Inode, target: Target<'_>) -> Result<Listing<'a, S>, Error> {
        let Content::Directory { listing, index, index_entries } = directory.content else {
            return Err(Error::WrongKind);
        };
        let (at, block) = self.look_in_index(index, index_entries, target)?;
        let position = match block {
            None => listing,
            Some(block) => Position {
                block: self.image.directory_table.saturating_add(block.into()),
                offset: ((listing.offset as u64 + at) % 8192) as usize,
            },
        };
        Ok(Listing {
            metadata: Metadata::new(*self, position),
            at,
            // Of what is counted too much.
            size: directory.size - 3,
            left: 0,
            block: 0,
            name: [0; LONGEST_NAME],
        })
    }

    /// The last place that an index names and that is not behind the target: how much of the listing is before it, and in which block it is.
    fn look_in_index(&self, index: Position, entries: u16, target: Target<'_>) -> Result<(u64, Option<u32>), Error> {
        if entries > LONGEST_INDEX {
            return Err(Error::Corrupt("an index is too long"));
        }
        let mut found = (0, None);
        let mut metadata = Metadata::new(*self, index);
        let mut name = [0; LONGEST_NAME];
        for _ in 0..entries {
            let entry: IndexEntry = metadata.get()?;
            let len = entry.name_len.get() as usize;
            let name = name.get_mut(..=len).ok_or(Error::Corrupt("a name in an index is too long"))?;
            metadata.read(name)?;
            let at = u64::from(entry.at.get());
            let is_behind = match target {
                Target::Name(wanted) => &*name > wanted,
                Target::Offset(wanted) => at > wanted,
            };
            if is_behind {
                break;
            }
            found = (at, Some(entry.block.get()));
        }
        Ok(found)
    }
}

fn check_distance(start: u64, at: u64) -> Result<(), Error> {
    if at - start > FARTHEST {
        return Err(Error::Unsupported("a large directory without an index"));
    }
    Ok(())
}
