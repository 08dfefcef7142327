//! Directories: blocks of entries. Entries follow each other without gaps up to the block's end (or the tail with its checksum); what is free
//! belongs to the entry before it.
//!
//! # Listing
//!
//! A [`Position`] stays valid while the directory changes: an entry that is there all the time is told once, whatever is made and removed meanwhile. In a
//! plain directory a position is a byte's place: entries do not move there. Where names are (or will be) indexed entries move when a block is
//! split, so the order is that of hashes, 31 bits of the name's and 32 of a checksum of the name. Were two names equal in all 63, a listing that
//! stops between them would tell the first twice.

use crate::blocks::Blocks;
use crate::bytes::{le16, le32, put16, put32};
use crate::checksum::crc32c;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::htree;
use crate::inode::{Inode, Kind, flag};
use crate::map::{Mapping, Written};
use crate::superblock::feature;
use crate::transaction::{Seal, Transaction};
use core::ops::ControlFlow;
use std_alloc::vec::Vec;

/// The longest name.
pub const NAME_MAX: usize = 255;
/// Bytes of an entry before its name.
const HEAD: usize = 8;
/// Bytes of the tail that has a block's checksum.
const TAIL: usize = 12;
/// Blocks that a call of `list` looks at.
const BLOCKS_AT_ONCE: u32 = 64;

/// A place in a directory's listing, which stays valid: 0 is its start, the value can be given to programs as a cookie (63 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

impl Position {
    /// Before the first entry.
    pub const START: Self = Self(0);
    /// After the last.
    pub const END: Self = Self(i64::MAX as u64);
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The inode's number.
    pub inode: u32,
    /// What it is, where the directory says that.
    pub kind: Option<Kind>,
    /// Its name.
    pub name: &'a [u8],
    /// Where a listing goes on after it.
    pub next: Position,
}

/// An entry with its place in its block.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    pub at: usize,
    pub len: usize,
    pub inode: u32,
    pub kind: Option<Kind>,
    pub name: &'a [u8],
}

impl Slot<'_> {
    /// Checks that the name can be told: nobody looks for one that is none.
    fn check(self) -> Result<Self> {
        if self.inode != 0 && self.name.iter().any(|byte| matches!(byte, 0 | b'/')) { Err(WRONG) } else { Ok(self) }
    }
}

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The block of the disk.
    pub block: u64,
    /// The directory's block.
    pub index: u32,
    pub at: usize,
    pub inode: u32,
    pub kind: Option<Kind>,
}

/// Bytes that an entry takes with a name of this length.
pub fn entry_len(name: usize) -> usize {
    (HEAD + name).next_multiple_of(4)
}

fn kind_of(value: u8) -> Option<Kind> {
    Some(match value {
        1 => Kind::File,
        2 => Kind::Directory,
        3 => Kind::CharDevice,
        4 => Kind::BlockDevice,
        5 => Kind::Fifo,
        6 => Kind::Socket,
        7 => Kind::Symlink,
        _ => return None,
    })
}

fn value_of(kind: Option<Kind>) -> u8 {
    match kind {
        None => 0,
        Some(Kind::File) => 1,
        Some(Kind::Directory) => 2,
        Some(Kind::CharDevice) => 3,
        Some(Kind::BlockDevice) => 4,
        Some(Kind::Fifo) => 5,
        Some(Kind::Socket) => 6,
        Some(Kind::Symlink) => 7,
    }
}

const WRONG: Error = Error::Corrupt("entry of a directory");

/// The entry at a place of a block's usable bytes. Its name may have bytes in it that none has.
pub fn slot(bytes: &[u8], at: usize, typed: bool) -> Result<Slot<'_>> {
    let head = bytes.get(at..at + HEAD).ok_or(WRONG)?;
    let len = match le16(head, 4) {
        // What a block of 64 KiB needs more than 16 bits for.
        0 | 0xffff if bytes.len() > 0xfff0 => 0x1_0000 - at,
        len => len.into(),
    };
    let name_len = if typed { usize::from(head[6]) } else { le16(head, 6).into() };
    let len = if at + len > bytes.len() && bytes.len() > 0xff00 { bytes.len() - at } else { len };
    if !len.is_multiple_of(4) || len < entry_len(name_len) || len > bytes.len() - at {
        return Err(WRONG);
    }
    let inode = le32(head, 0);
    let name = &bytes[at + HEAD..at + HEAD + name_len];
    if inode != 0 && (name.is_empty() || name_len > NAME_MAX) {
        return Err(WRONG);
    }
    Ok(Slot { at, len, inode, kind: if typed { kind_of(head[7]) } else { None }, name })
}

/// The entries of a block's usable bytes, free ones (inode 0) among them.
pub fn slots(bytes: &[u8], typed: bool) -> impl Iterator<Item = Result<Slot<'_>>> {
    let mut at = 0;
    core::iter::from_fn(move || {
        if at >= bytes.len() {
            return None;
        }
        let found = slot(bytes, at, typed);
        at = found.as_ref().map_or(bytes.len(), |slot| at + slot.len);
        Some(found)
    })
}

/// Writes an entry of `len` bytes.
pub fn write_slot(bytes: &mut [u8], at: usize, len: usize, inode: u32, kind: Option<Kind>, name: &[u8]) {
    put32(bytes, at, inode);
    put16(bytes, at + 4, if len > 0xffff { 0 } else { len as u16 });
    bytes[at + 6] = name.len() as u8;
    bytes[at + 7] = value_of(kind);
    bytes[at + HEAD..at + HEAD + name.len()].copy_from_slice(name);
}

/// Puts an entry where there is room for it; whether there is.
pub fn insert_slot(bytes: &mut [u8], typed: bool, inode: u32, kind: Option<Kind>, name: &[u8]) -> Result<bool> {
    let need = entry_len(name.len());
    let mut place = None;
    for slot in slots(bytes, typed) {
        let slot = slot?;
        let used = if slot.inode == 0 { 0 } else { entry_len(slot.name.len()) };
        if slot.len - used >= need {
            place = Some((slot.at, used, slot.len));
            break;
        }
    }
    let Some((at, used, len)) = place else { return Ok(false) };
    if used > 0 {
        put16(bytes, at + 4, used as u16);
    }
    write_slot(bytes, at + used, len - used, inode, kind, name);
    Ok(true)
}

/// Checks a name that is to be made.
pub fn check_name(name: &[u8]) -> Result<()> {
    if name.len() > NAME_MAX {
        return Err(Error::NameTooLong);
    }
    let special = name.is_empty() || name == b"." || name == b"..";
    if special || name.iter().any(|byte| matches!(byte, 0 | b'/')) { Err(Error::Invalid) } else { Ok(()) }
}

impl FileSystem {
    /// Whether entries say what their inodes are.
    pub(crate) fn entries_are_typed(&self) -> bool {
        self.superblock().has_incompat(feature::FILETYPE)
    }

    /// Bytes of a block that entries can have.
    pub(crate) fn entry_bytes(&self) -> usize {
        self.block_size() as usize - if self.has_checksums() { TAIL } else { 0 }
    }

    /// How many blocks a directory has.
    pub(crate) fn dir_blocks(&self, dir: &Inode) -> Result<u32> {
        let size = u64::from(self.block_size());
        if !dir.is_dir() {
            return Err(Error::NotDirectory);
        }
        let whole = dir.size().is_multiple_of(size) && dir.size() > 0;
        whole
            .then(|| dir.size() / size)
            .and_then(|blocks| u32::try_from(blocks).ok())
            .ok_or(Error::Corrupt("size of a directory"))
    }

    /// Whether a directory is listed in the order of hashes.
    fn is_hashed(&self, dir: &Inode) -> Result<bool> {
        let blocks = self.dir_blocks(dir)?;
        Ok(self.superblock().has_compat(feature::DIR_INDEX) && (dir.has_flag(flag::INDEX) || blocks == 1))
    }

    /// Whether a directory has an index.
    pub(crate) fn is_indexed(&self, dir: &Inode) -> bool {
        self.superblock().has_compat(feature::DIR_INDEX) && dir.has_flag(flag::INDEX)
    }

    /// Calls `with` with the block of the disk and the usable bytes of a directory's block of entries.
    pub(crate) fn read_entries<R>(
        &self,
        blocks: &impl Blocks,
        dir: &Inode,
        index: u32,
        with: impl FnOnce(u64, &[u8]) -> Result<R>,
    ) -> Result<R> {
        let block = self.map_metadata(blocks, dir, index)?;
        let check = self.has_checksums() && !blocks.is_verified(block);
        let usable = self.entry_bytes();
        let found = blocks.read(block, |bytes| {
            if check && crc32c(self.seed_of(dir), &bytes[..usable]) != le32(bytes, usable + 8) {
                return Err(Error::Corrupt("checksum of a directory"));
            }
            with(block, &bytes[..usable])
        })??;
        if check {
            blocks.mark_verified(block);
        }
        Ok(found)
    }

    /// Finds a name.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`, `NameTooLong`, `Corrupt`, `Absent`.
    pub fn lookup(&self, blocks: &impl Blocks, dir: &Inode, name: &[u8]) -> Result<u32> {
        self.find(blocks, dir, name).map(|found| found.inode)
    }

    pub(crate) fn find(&self, blocks: &impl Blocks, dir: &Inode, name: &[u8]) -> Result<Found> {
        if name.len() > NAME_MAX {
            return Err(Error::NameTooLong);
        }
        let count = self.dir_blocks(dir)?;
        if self.is_indexed(dir) {
            return match name {
                b"." | b".." => self.find_dots(blocks, dir, name),
                _ => self.find_indexed(blocks, dir, name),
            };
        }
        self.want_entries(blocks, dir, 0, count);
        for index in 0..count {
            if let Some(found) = self.find_in(blocks, dir, index, name)? {
                return Ok(found);
            }
        }
        Err(Error::NotFound)
    }

    /// Asks for a directory's blocks ahead, as far as they lie together.
    fn want_entries(&self, blocks: &impl Blocks, dir: &Inode, index: u32, count: u32) {
        if let Ok(Mapping::Blocks { start, count: together, written: Written::Yes }) = self.map(blocks, dir, index) {
            let count = together.min(count).min(BLOCKS_AT_ONCE);
            if count > 1 {
                blocks.want(start, count);
            }
        }
    }

    /// The entry with this name in one block.
    pub(crate) fn find_in(&self, blocks: &impl Blocks, dir: &Inode, index: u32, name: &[u8]) -> Result<Option<Found>> {
        let typed = self.entries_are_typed();
        self.read_entries(blocks, dir, index, |block, bytes| {
            for slot in slots(bytes, typed) {
                let slot = slot?;
                if slot.inode != 0 && slot.name == name {
                    return self.found(block, index, &slot).map(Some);
                }
            }
            Ok(None)
        })
    }

    pub(crate) fn found(&self, block: u64, index: u32, slot: &Slot) -> Result<Found> {
        if !self.may_be_named(slot.inode) {
            return Err(Error::Corrupt("inode number in a directory"));
        }
        Ok(Found { block, index, at: slot.at, inode: slot.inode, kind: slot.kind })
    }

    /// Whether a directory has no entries but its own two.
    pub fn is_empty(&self, blocks: &impl Blocks, dir: &Inode) -> Result<bool> {
        let mut empty = true;
        let mut from = Position::START;
        loop {
            let at = self.list(blocks, dir, from, |entry| {
                empty &= matches!(entry.name, b"." | b"..");
                if empty { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            if !empty || at == Position::END {
                return Ok(empty);
            }
            from = at;
        }
    }

    /// Tells entries of a directory from a position on, until `tell` says that it has enough (the entry that it says so of counts as told). Returns where
    /// to go on, `Position::END` if nothing is left; a call may also end early, so as not to take long. Where this fails with `Absent` some
    /// entries may have been told: whoever collects them goes on after the last, or starts over.
    pub fn list(
        &self,
        blocks: &impl Blocks,
        dir: &Inode,
        from: Position,
        mut tell: impl FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<Position> {
        if from >= Position::END {
            return Ok(Position::END);
        }
        if self.is_hashed(dir)? {
            return self.list_hashed(blocks, dir, from, &mut tell);
        }
        let size = u64::from(self.block_size());
        let count = self.dir_blocks(dir)?;
        let first = from.0 / size;
        let typed = self.entries_are_typed();
        if first < count.into() {
            self.want_entries(blocks, dir, first as u32, count - first as u32);
        }
        for index in first..u64::from(count).min(first + u64::from(BLOCKS_AT_ONCE)) {
            let base = index * size;
            let stop = self.read_entries(blocks, dir, index as u32, |_, bytes| {
                for slot in slots(bytes, typed) {
                    let slot = slot?.check()?;
                    let next =
                        base + if slot.at + slot.len >= bytes.len() { size } else { (slot.at + slot.len) as u64 };
                    if slot.inode == 0 || base + (slot.at as u64) < from.0 {
                        continue;
                    }
                    let next = if next >= dir.size() { Position::END } else { Position(next) };
                    let entry = Entry { inode: slot.inode, kind: slot.kind, name: slot.name, next };
                    if tell(entry).is_break() {
                        return Ok(Some(next));
                    }
                }
                Ok(None)
            })?;
            if let Some(next) = stop {
                return Ok(next);
            }
        }
        let next = (first + u64::from(BLOCKS_AT_ONCE)).min(count.into());
        Ok(if next >= count.into() { Position::END } else { Position(next * size) })
    }
}

impl<B: Blocks> Transaction<'_, B> {
    /// How a directory's block gets its checksum.
    pub(crate) fn entries_seal(&self, dir: &Inode) -> Seal {
        Seal::Directory(self.fs().seed_of(dir))
    }

    /// Enters a name that is not there.
    pub(crate) fn add_entry(&mut self, dir: &mut Inode, name: &[u8], inode: u32, kind: Option<Kind>) -> Result<()> {
        check_name(name)?;
        let fs = self.fs();
        let count = fs.dir_blocks(dir)?;
        let entry = htree::NewEntry { name, inode, kind };
        if fs.is_indexed(dir) {
            return self.add_indexed(dir, &entry);
        }
        if dir.has_flag(flag::INDEX) {
            // Without the feature the index is not kept.
            return Err(Error::Corrupt("indexed directory"));
        }
        fs.want_entries(self, dir, 0, count);
        for index in 0..count {
            if self.insert_into(dir, index, &entry)? {
                return Ok(());
            }
        }
        if count == 1 && fs.superblock().has_compat(feature::DIR_INDEX) {
            self.make_index(dir)?;
            return self.add_indexed(dir, &entry);
        }
        let index = self.append_entries(dir)?;
        if self.insert_into(dir, index, &entry)? { Ok(()) } else { Err(Error::Corrupt("empty block of a directory")) }
    }

    /// Puts an entry into one block, if it has room.
    pub(crate) fn insert_into(&mut self, dir: &Inode, index: u32, entry: &htree::NewEntry) -> Result<bool> {
        let fs = self.fs();
        let typed = fs.entries_are_typed();
        let need = entry_len(entry.name.len());
        let found = fs.read_entries(self, dir, index, |block, bytes| {
            for slot in slots(bytes, typed) {
                let slot = slot?;
                let used = if slot.inode == 0 { 0 } else { entry_len(slot.name.len()) };
                if slot.len - used >= need {
                    return Ok(Some(block));
                }
            }
            Ok(None)
        })?;
        let Some(block) = found else { return Ok(false) };
        let usable = fs.entry_bytes();
        let kind = if typed { entry.kind } else { None };
        self.modify(block, self.entries_seal(dir), |bytes| {
            insert_slot(&mut bytes[..usable], typed, entry.inode, kind, entry.name)
        })?
    }

    /// Gives a directory one more block, which has no entries.
    pub(crate) fn append_entries(&mut self, dir: &mut Inode) -> Result<u32> {
        let fs = self.fs();
        let size = u64::from(fs.block_size());
        let index = u32::try_from(dir.size() / size).map_err(|_| Error::TooLarge)?;
        // Beyond 2 GiB only with large_dir.
        if dir.size() + size > 1 << 31 && !fs.superblock().has_incompat(feature::LARGE_DIR) {
            return Err(Error::NoSpace);
        }
        let block = match self.allocate(dir, index, 1, Written::Yes)? {
            Mapping::Blocks { start, count: 1, written: Written::Yes } => start,
            _ => return Err(Error::Corrupt("blocks beyond a directory's end")),
        };
        let usable = fs.entry_bytes();
        let bytes = self.zeroed(block, Seal::Directory(fs.seed_of(dir)));
        write_slot(bytes, 0, usable, 0, None, b"");
        dir.set_size(dir.size() + size);
        self.put_inode(dir)?;
        Ok(index)
    }

    /// Removes an entry.
    pub(crate) fn remove_entry(&mut self, dir: &Inode, found: &Found) -> Result<()> {
        let fs = self.fs();
        let (typed, usable) = (fs.entries_are_typed(), fs.entry_bytes());
        self.modify(found.block, self.entries_seal(dir), |bytes| {
            let bytes = &mut bytes[..usable];
            let mut before = None;
            let mut len = 0;
            for slot in slots(bytes, typed) {
                let slot = slot?;
                len = slot.len;
                if slot.at == found.at {
                    break;
                }
                before = Some((slot.at, slot.len));
            }
            put32(bytes, found.at, 0);
            if let Some((at, before)) = before {
                let joined = before + len;
                put16(bytes, at + 4, if joined > 0xffff { 0 } else { joined as u16 });
            }
            Ok(())
        })?
    }

    /// Lets an entry name another inode.
    pub(crate) fn change_entry(&mut self, dir: &Inode, found: &Found, inode: u32, kind: Option<Kind>) -> Result<()> {
        let typed = self.fs().entries_are_typed();
        // The entries of an index's root are its own two.
        let seal = if self.fs().is_indexed(dir) && found.index == 0 {
            Seal::Index(self.fs().seed_of(dir))
        } else {
            self.entries_seal(dir)
        };
        self.modify(found.block, seal, |bytes| {
            put32(bytes, found.at, inode);
            if typed {
                bytes[found.at + 7] = value_of(kind);
            }
        })
    }

    /// Makes a new directory's first block.
    pub(crate) fn start_dir(&mut self, dir: &mut Inode, parent: u32) -> Result<()> {
        self.append_entries(dir)?;
        let fs = self.fs();
        let block = fs.map_metadata(self, dir, 0)?;
        let usable = fs.entry_bytes();
        let kind = fs.entries_are_typed().then_some(Kind::Directory);
        let number = dir.number();
        self.modify(block, self.entries_seal(dir), |bytes| {
            write_slot(bytes, 0, 12, number, kind, b".");
            write_slot(bytes, 12, usable - 12, parent, kind, b"..");
        })
    }
}

/// An entry's inode, kind and name.
pub type OwnedEntry = (u32, Option<Kind>, Vec<u8>);

/// The entries of a block, for whoever moves them.
pub fn owned_slots(bytes: &[u8], typed: bool) -> Result<Vec<OwnedEntry>> {
    let mut all = Vec::new();
    for slot in slots(bytes, typed) {
        let slot = slot?.check()?;
        if slot.inode != 0 {
            all.push((slot.inode, slot.kind, slot.name.into()));
        }
    }
    Ok(all)
}
