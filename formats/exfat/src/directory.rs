//! Directories: rows of entries of 32 bytes. A file is a *set* of them: one that says when, one that says where, and some with its name.

use alloc::string::String;
use alloc::vec::Vec;

use crate::boot::FileSystem;
use crate::chain::{Chain, ChainIndex};
use crate::file::Node;
use crate::name::{LONGEST_NAME, hash, text, units};
use crate::{Error, Source, le16, le32, le64};

pub(crate) const ENTRY_BYTES: usize = 32;
pub(crate) type Entry = [u8; ENTRY_BYTES];

/// The position of the first entry; 1 and 2 are left for `.` and `..`.
pub const FIRST_POSITION: u64 = 3;

/// The longest directory has so many entries: 256 MiB.
const MOST_ENTRIES: u32 = 8 << 20;
/// So many entries are looked at before others may have their turn.
const LOOKED_AT_ONCE: u32 = 128;
/// An index keeps so many names.
const MOST_NAMES: u32 = 1 << 17;
/// The names of an index stand in so many rows.
const ROWS: usize = 256;
/// No more names than that have one hash.
const MOST_ALIKE: usize = 16;
/// Entries behind the first of a set: where, and the names of 15 units; vendors' besides.
const FEWEST_SECONDARY: u8 = 2;
const MOST_SECONDARY: u8 = 18;
/// Units of a name in one entry.
pub(crate) const UNITS: usize = 15;

/// Kinds of entries that are in use.
pub(crate) const FILE: u8 = 0x85;
pub(crate) const STREAM: u8 = 0xc0;
pub(crate) const NAME: u8 = 0xc1;
pub(crate) const IS_USED: u8 = 0x80;
/// Behind this there are none.
pub(crate) const END: u8 = 0;

/// A name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// The name: not empty, without `/` and zero bytes; up to 765 bytes.
    pub name: &'a str,
    /// The number of its file.
    pub number: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Where a listing goes on after this entry.
    pub next: u64,
}

/// What is known of a directory: where its clusters are, and which names it has and where there is room for more, as far as it was looked through. It keeps 8 bytes for each name, and one for each 16 entries.
#[derive(Debug, Default)]
pub struct DirectoryIndex {
    pub(crate) chain: ChainIndex,
    /// Hashes of names, and where their sets begin; in rows, by the lowest bits of the hash.
    rows: Vec<Vec<(u32, u32)>>,
    names: u32,
    /// Of each 16 entries: how many are free one after another.
    pub(crate) rooms: Vec<u8>,
    /// For each number of entries: before which 16 there is no room for them.
    room_from: [u32; ENTRIES as usize + 1],
    /// The first entry that was not looked at.
    next: u32,
    is_complete: bool,
    /// There is something that is no set: nobody knows what its name was.
    is_damaged: bool,
    /// Where no name begins, for listings: from an entry to another.
    gap: (u32, u32),
}

/// How a directory has changed.
#[derive(Debug, Default)]
pub struct IndexChange {
    /// The hash of a name that it has not any more, and where its set was.
    pub(crate) removed: Option<(u32, u32)>,
    /// The same of one that another has taken the place of.
    pub(crate) replaced: Option<(u32, u32)>,
    /// The same of one that it has now.
    pub(crate) added: Option<(u32, u32)>,
    /// How many are free one after another of these 16 entries.
    pub(crate) rooms: Vec<(u32, u8)>,
}

impl DirectoryIndex {
    fn add(&mut self, hash: u32, at: u32) -> Result<(), Error> {
        if self.rows.is_empty() {
            self.rows.try_reserve_exact(ROWS).map_err(|_| Error::NoMemory)?;
            self.rows.resize(ROWS, Vec::new());
        }
        let row = &mut self.rows[hash as usize % ROWS];
        row.try_reserve(1).map_err(|_| Error::NoMemory)?;
        row.push((hash, at));
        self.names += 1;
        Ok(())
    }

    fn remove(&mut self, hash: u32, at: u32) {
        if let Some(row) = self.rows.get_mut(hash as usize % ROWS)
            && let Some(index) = row.iter().position(|name| *name == (hash, at))
        {
            row.swap_remove(index);
            self.names -= 1;
        }
    }

    fn with_hash(&self, hash: u32) -> impl Iterator<Item = u32> {
        let row = self.rows.get(hash as usize % ROWS).map_or(&[][..], |row| row);
        row.iter().filter(move |name| name.0 == hash).map(|name| name.1)
    }

    /// Whether there is no name, in a directory that was looked through.
    pub(crate) fn is_empty(&self) -> bool {
        self.names == 0 && !self.is_damaged
    }

    fn set_room(&mut self, number: u32, room: u8) -> Result<(), Error> {
        let number_of = number as usize;
        while self.rooms.len() <= number_of {
            self.rooms.try_reserve(1).map_err(|_| Error::NoMemory)?;
            self.rooms.push(0);
        }
        self.rooms[number_of] = room;
        for from in &mut self.room_from[..=usize::from(room)] {
            *from = (*from).min(number);
        }
        Ok(())
    }

    /// The first 16 entries of which so many are free one after another.
    pub(crate) fn room(&mut self, entries: u32) -> Option<u32> {
        let from = &mut self.room_from[entries as usize];
        let rest = self.rooms.get(*from as usize..).unwrap_or(&[]);
        let found = rest.iter().position(|room| u32::from(*room) >= entries);
        *from += found.unwrap_or(rest.len()) as u32;
        found.map(|_| *from)
    }

    /// What was changed is true. `false`: there is no memory for it, and the directory is looked through again.
    pub fn change(&mut self, change: &IndexChange) -> bool {
        if !self.is_complete {
            return true;
        }
        for (hash, at) in change.removed.into_iter().chain(change.replaced) {
            self.remove(hash, at);
        }
        let added = change.added.is_none_or(|(hash, at)| self.add(hash, at).is_ok());
        let is_done = added && change.rooms.iter().all(|(number, room)| self.set_room(*number, *room).is_ok());
        self.gap = (0, 0);
        if !is_done {
            *self = DirectoryIndex::default();
        }
        is_done
    }
}

/// How many of these entries are free one after another at most, and from which on.
pub(crate) fn longest_room(part: &[u8]) -> (u8, u32) {
    let (mut longest, mut start, mut now) = (0, 0, 0);
    for (number, entry) in part.chunks_exact(ENTRY_BYTES).enumerate() {
        now = if entry[0] & IS_USED == 0 { now + 1 } else { 0 };
        if now > longest {
            (longest, start) = (now, number as u32 + 1 - u32::from(now));
        }
    }
    (longest, start)
}

/// Entries of a directory, of which the part that was read last is kept.
pub(crate) struct Entries<'a, S> {
    file_system: &'a FileSystem,
    source: &'a S,
    chain: Chain,
    part: [u8; PART],
    /// Of which entry on it is, and where it is on the device.
    at: Option<(u32, u64)>,
}

/// No cluster is smaller.
pub(crate) const PART: usize = 512;
pub(crate) const ENTRIES: u32 = (PART / ENTRY_BYTES) as u32;

impl<S: Source> Entries<'_, S> {
    /// The entry of that index; `None` behind the last cluster.
    pub fn get(&mut self, index: &mut ChainIndex, number: u32) -> Result<Option<Entry>, Error> {
        let bytes = u64::from(number) * ENTRY_BYTES as u64;
        if bytes + ENTRY_BYTES as u64 > self.chain.bytes {
            return Ok(None);
        }
        if number >= MOST_ENTRIES {
            return Err(Error::Corrupt("a directory is too long"));
        }
        let first = number / ENTRIES * ENTRIES;
        if self.at.is_none_or(|(at, _)| at != first) {
            let start = u64::from(first) * ENTRY_BYTES as u64;
            let cluster = (start >> self.file_system.cluster_bits) as u32;
            let Some((cluster, _)) = self.file_system.cluster(self.source, self.chain, index, cluster)? else {
                return Ok(None);
            };
            let within = start & (u64::from(self.file_system.cluster_bytes()) - 1);
            let address = self.file_system.address(cluster) + within;
            self.source.copy(address, &mut self.part)?;
            self.at = Some((first, address));
        }
        let within = (number - first) as usize * ENTRY_BYTES;
        Ok(self.part[within..].first_chunk().copied())
    }

    /// The number of the file whose set begins with the entry that was read last.
    fn number(&self, entry: u32) -> u64 {
        let (first, address) = self.at.unwrap_or_default();
        address / ENTRY_BYTES as u64 + u64::from(entry - first)
    }

    /// The set that begins with an entry, which was read.
    fn set(&mut self, index: &mut ChainIndex, number: u32, first: &Entry) -> Result<Set, Error> {
        Set::read(first, |secondary| self.get(index, number + 1 + secondary)?.ok_or(TORN))
    }
}

pub(crate) const TORN: Error = Error::Corrupt("a set of entries is not whole");

/// What a set says.
pub(crate) struct Set {
    pub first: Entry,
    pub stream: Entry,
    pub name: Vec<u16>,
    pub secondary: u8,
}

/// A name of a directory, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The number of its file.
    pub number: u64,
    /// Its hash in the index, and the index of its first entry.
    pub(crate) name: (u32, u32),
    /// Entries of its set.
    pub(crate) entries: u32,
}

impl Set {
    /// Puts a set together from its first entry and those behind it.
    fn read(first: &Entry, mut next: impl FnMut(u32) -> Result<Entry, Error>) -> Result<Self, Error> {
        let secondary = first[1];
        if first[0] != FILE || !(FEWEST_SECONDARY..=MOST_SECONDARY).contains(&secondary) {
            return Err(TORN);
        }
        let stream = next(0)?;
        let name_len = usize::from(stream[3]);
        if stream[0] != STREAM || name_len == 0 || name_len.div_ceil(UNITS) >= usize::from(secondary) {
            return Err(TORN);
        }
        let mut sum =
            first.iter().enumerate().filter(|(at, _)| !matches!(at, 2 | 3)).fold(0, |sum, (_, byte)| add(sum, *byte));
        sum = stream.iter().fold(sum, |sum, byte| add(sum, *byte));
        let mut name = Vec::with_capacity(LONGEST_NAME);
        for number in 1..secondary {
            let entry = next(number.into())?;
            sum = entry.iter().fold(sum, |sum, byte| add(sum, *byte));
            let left = name_len - name.len();
            if left > 0 {
                if entry[0] != NAME {
                    return Err(TORN);
                }
                name.extend((0..left.min(UNITS)).map(|unit| le16(&entry, 2 + 2 * unit)));
            } else if entry[0] & 0xc0 != 0xc0 {
                return Err(TORN);
            }
        }
        if sum != le16(first, 2) {
            return Err(Error::Corrupt("the checksum of a set of entries"));
        }
        Ok(Set { first: *first, stream, name, secondary })
    }

    fn text(&self) -> Result<String, Error> {
        let text = text(&self.name);
        if text.contains(['\0', '/']) || text == "." || text == ".." {
            return Err(Error::Corrupt("a name"));
        }
        Ok(text)
    }
}

pub(crate) fn add(sum: u16, byte: u8) -> u16 {
    sum.rotate_right(1).wrapping_add(byte.into())
}

impl FileSystem {
    pub(crate) fn entries<'a, S: Source>(&'a self, source: &'a S, chain: Chain) -> Entries<'a, S> {
        Entries { file_system: self, source, chain, part: [0; PART], at: None }
    }

    /// The number of the root directory.
    pub fn root(&self) -> u64 {
        // No set is in the boot sector.
        1
    }

    /// Finds a name, without regard to case; the file's number. The first time the whole directory is looked through.
    ///
    /// # Errors
    /// `NotFound`, `WrongKind` (no directory), `Corrupt`, `Unsupported`, `NoMemory`, `Absent`.
    pub fn look_up(
        &self,
        source: &impl Source,
        directory: &Node,
        index: &mut DirectoryIndex,
        name: &[u8],
    ) -> Result<u64, Error> {
        Ok(self.find(source, directory, index, &units(name).ok_or(Error::NotFound)?)?.number)
    }

    /// The same, and where its entries are.
    pub(crate) fn find(
        &self,
        source: &impl Source,
        directory: &Node,
        index: &mut DirectoryIndex,
        name: &[u16],
    ) -> Result<Found, Error> {
        let wanted = self.upcase.fold(name);
        let hash = self.index_hash(&wanted);
        self.complete(source, directory, index)?;
        let mut entries = self.entries(source, directory.listing()?);
        // A few at most; they are copied since the index is needed.
        let mut alike = [0; MOST_ALIKE];
        let mut count = 0;
        for (to, at) in alike.iter_mut().zip(index.with_hash(hash)) {
            (*to, count) = (at, count + 1);
        }
        for at in &alike[..count] {
            let first = entries.get(&mut index.chain, *at)?.ok_or(TORN)?;
            let number = entries.number(*at);
            let set = entries.set(&mut index.chain, *at, &first)?;
            if self.upcase.fold(&set.name) == wanted {
                return Ok(Found { number, name: (hash, *at), entries: 1 + u32::from(set.secondary) });
            }
        }
        if index.is_damaged { Err(TORN) } else { Err(Error::NotFound) }
    }

    /// Looks through a directory, as far as that was not done.
    ///
    /// # Errors
    /// As for [`look_up`](Self::look_up).
    pub(crate) fn complete(
        &self,
        source: &impl Source,
        directory: &Node,
        index: &mut DirectoryIndex,
    ) -> Result<(), Error> {
        let mut entries = self.entries(source, directory.listing()?);
        while !index.is_complete {
            self.look_through(&mut entries, index)?;
            source.pause()?;
        }
        Ok(())
    }

    /// Whether two names lead to the same file of a directory.
    pub fn is_same_name(&self, one: &[u8], other: &[u8]) -> bool {
        let fold = |name| units(name).map(|units| self.upcase.fold(&units));
        fold(one).is_some_and(|one| fold(other) == Some(one))
    }

    /// Looks through some more entries of a directory.
    fn look_through<S: Source>(&self, entries: &mut Entries<'_, S>, index: &mut DirectoryIndex) -> Result<(), Error> {
        let end = index.next + LOOKED_AT_ONCE;
        while index.next < end {
            let at = index.next;
            let Some(entry) = entries.get(&mut index.chain, at)? else {
                index.is_complete = true;
                break;
            };
            while index.rooms.len() as u32 <= at / ENTRIES {
                let number = index.rooms.len() as u32;
                entries.get(&mut index.chain, number * ENTRIES)?;
                index.set_room(number, longest_room(&entries.part).0)?;
            }
            match entry[0] {
                END => {
                    index.is_complete = true;
                    break;
                }
                FILE => match entries.set(&mut index.chain, at, &entry) {
                    Ok(set) => {
                        let folded = self.upcase.fold(&set.name);
                        if hash(&folded) != le16(&set.stream, 4) {
                            return Err(Error::Corrupt("the hash of a name"));
                        }
                        if index.names == MOST_NAMES {
                            return Err(Error::Unsupported("a directory with more than 131,072 names"));
                        }
                        let hash = self.index_hash(&folded);
                        if index.with_hash(hash).nth(MOST_ALIKE - 1).is_some() {
                            return Err(Error::Corrupt("a name that is there again and again"));
                        }
                        index.add(hash, at)?;
                        index.next += 1 + u32::from(set.secondary);
                    }
                    Err(Error::Corrupt(_)) => {
                        index.is_damaged = true;
                        index.next += 1;
                    }
                    Err(error) => return Err(error),
                },
                _ => index.next += 1,
            }
        }
        Ok(())
    }

    /// Tells the names of a directory from `position` on until `each` says false. What was told before an error is true.
    ///
    /// # Errors
    /// `WrongKind` (no directory), `Corrupt`, `Unsupported`, `NoMemory`, `Absent`.
    pub fn list(
        &self,
        source: &impl Source,
        directory: &Node,
        index: &mut DirectoryIndex,
        position: u64,
        mut each: impl FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<(), Error> {
        let chain = directory.listing()?;
        let mut entries = self.entries(source, chain);
        let mut at = u32::try_from(position.saturating_sub(FIRST_POSITION)).unwrap_or(MOST_ENTRIES);
        // Entries that are not in use may be many.
        let mut gap = at;
        if (index.gap.0..index.gap.1).contains(&at) {
            (gap, at) = index.gap;
        }
        while at < MOST_ENTRIES {
            let Some(entry) = entries.get(&mut index.chain, at)? else { break };
            match entry[0] {
                END => break,
                FILE => {
                    let number = entries.number(at);
                    let set = entries.set(&mut index.chain, at, &entry)?;
                    at += 1 + u32::from(set.secondary);
                    gap = at;
                    let is_directory = Node::of(self, number, &set)?.is_directory;
                    let next = u64::from(at) + FIRST_POSITION;
                    if !each(DirectoryEntry { name: &set.text()?, number, is_directory, next }) {
                        break;
                    }
                }
                // Such as those of a set that a program has sought the middle of.
                _ => {
                    at += 1;
                    if (at - gap).is_multiple_of(LOOKED_AT_ONCE) {
                        index.gap = (gap, at);
                        source.pause()?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// `Corrupt` (no such number), `Absent`.
    pub fn node(&self, source: &impl Source, number: u64) -> Result<Node, Error> {
        if number == self.root() {
            return Ok(Node::root(self));
        }
        let (set, _) = self.set_at(source, number)?;
        Node::of(self, number, &set)
    }

    /// The set that begins at a place, and where its entries are, in bytes.
    pub(crate) fn set_at(&self, source: &impl Source, slot: u64) -> Result<(Set, Vec<u64>), Error> {
        let address = slot.checked_mul(ENTRY_BYTES as u64).and_then(|address| address.checked_sub(self.heap));
        let within = address.ok_or(Error::Corrupt("a file's number"))?;
        let cluster = u32::try_from(within >> self.cluster_bits).ok().and_then(|cluster| cluster.checked_add(2));
        let cluster = cluster.ok_or(Error::Corrupt("a file's number"))?;
        self.check_cluster(cluster)?;
        let within = within & (u64::from(self.cluster_bytes()) - 1);
        // Whether the directory is a chain nobody has said; only of one of the two the checksum is true.
        match self.set_from(source, (cluster, within), false) {
            Err(Error::Corrupt(_)) => self.set_from(source, (cluster, within), true),
            other => other,
        }
    }

    fn set_from(
        &self,
        source: &impl Source,
        (mut cluster, mut within): (u32, u64),
        is_contiguous: bool,
    ) -> Result<(Set, Vec<u64>), Error> {
        let mut places = Vec::with_capacity(usize::from(MOST_SECONDARY) + 1);
        let mut next = || {
            if within == self.cluster_bytes().into() {
                cluster = self.next_cluster(source, cluster, is_contiguous)?.ok_or(TORN)?;
                within = 0;
            }
            let mut entry = [0; ENTRY_BYTES];
            places.push(self.address(cluster) + within);
            source.copy(self.address(cluster) + within, &mut entry)?;
            within += ENTRY_BYTES as u64;
            Ok(entry)
        };
        let first = next()?;
        let set = Set::read(&first, |_| next())?;
        Ok((set, places))
    }
}

impl Set {
    /// Where the content is, which flags say so, and how much of it was written.
    pub fn content(&self) -> (Chain, u64) {
        let chain = Chain {
            first: le32(&self.stream, 20),
            is_contiguous: self.stream[1] & 2 != 0,
            bytes: le64(&self.stream, 24),
        };
        (chain, le64(&self.stream, 8))
    }
}
