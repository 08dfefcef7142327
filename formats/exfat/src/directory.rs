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
const LOOKED_AT_ONCE: u32 = 512;
/// An index keeps so many names.
const MOST_NAMES: usize = 1 << 17;
/// Entries behind the first of a set: where, and the names of 15 units; vendors' besides.
const FEWEST_SECONDARY: u8 = 2;
const MOST_SECONDARY: u8 = 18;
/// Units of a name in one entry.
const UNITS: usize = 15;

/// Kinds of entries that are in use.
const FILE: u8 = 0x85;
const STREAM: u8 = 0xc0;
const NAME: u8 = 0xc1;
/// Behind this there are none.
const END: u8 = 0;

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

/// What is known of a directory: where its clusters are, and which names it has, as far as it was looked through. It keeps 8 bytes for each name.
#[derive(Debug, Default)]
pub struct DirectoryIndex {
    chain: ChainIndex,
    /// Hashes of names, and where their sets begin.
    names: Vec<(u16, u32)>,
    /// The first entry that was not looked at.
    next: u32,
    is_complete: bool,
    /// Where no name begins, for listings: from an entry to another.
    gap: (u32, u32),
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
const PART: usize = 512;
const ENTRIES: u32 = (PART / ENTRY_BYTES) as u32;

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
        let slot = address / ENTRY_BYTES as u64 + u64::from(entry - first);
        slot << 1 | u64::from(self.chain.is_contiguous)
    }

    /// The set that begins with an entry, which was read.
    fn set(&mut self, index: &mut ChainIndex, number: u32, first: &Entry) -> Result<Set, Error> {
        Set::read(first, |secondary| self.get(index, number + 1 + secondary)?.ok_or(TORN))
    }
}

const TORN: Error = Error::Corrupt("a set of entries is not whole");

/// What a set says.
pub(crate) struct Set {
    pub first: Entry,
    pub stream: Entry,
    pub name: Vec<u16>,
    secondary: u8,
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

fn add(sum: u16, byte: u8) -> u16 {
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
        let chain = directory.listing()?;
        let wanted = self.upcase.fold(&units(name).ok_or(Error::NotFound)?);
        let wanted_hash = hash(&wanted);
        let mut entries = self.entries(source, chain);
        while !index.is_complete {
            self.look_through(&mut entries, index)?;
            source.pause()?;
        }
        let DirectoryIndex { chain, names, .. } = index;
        for (_, at) in names.iter().filter(|(hash, _)| *hash == wanted_hash) {
            let first = entries.get(chain, *at)?.ok_or(TORN)?;
            let number = entries.number(*at);
            let set = entries.set(chain, *at, &first)?;
            if self.upcase.fold(&set.name) == wanted {
                return Ok(number);
            }
        }
        Err(Error::NotFound)
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
            match entries.get(&mut index.chain, at)? {
                None => index.is_complete = true,
                Some(entry) if entry[0] == END => index.is_complete = true,
                Some(entry) if entry[0] == FILE => {
                    // Its hash is in the entry behind it.
                    let stream = entries.get(&mut index.chain, at + 1)?.ok_or(TORN)?;
                    if stream[0] != STREAM {
                        return Err(TORN);
                    }
                    if index.names.len() == MOST_NAMES {
                        return Err(Error::Unsupported("a directory with more than 131,072 names"));
                    }
                    index.names.try_reserve(1).map_err(|_| Error::NoMemory)?;
                    index.names.push((le16(&stream, 4), at));
                    index.next += 2;
                    continue;
                }
                Some(_) => {}
            }
            if index.is_complete {
                break;
            }
            index.next += 1;
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
        let (slot, is_contiguous) = (number >> 1, number & 1 != 0);
        let address = slot.checked_mul(ENTRY_BYTES as u64).and_then(|address| address.checked_sub(self.heap));
        let within = address.ok_or(Error::Corrupt("a file's number"))?;
        let cluster = u32::try_from(within >> self.cluster_bits).ok().and_then(|cluster| cluster.checked_add(2));
        let mut cluster = cluster.ok_or(Error::Corrupt("a file's number"))?;
        self.check_cluster(cluster)?;
        let mut within = within & (u64::from(self.cluster_bytes()) - 1);
        let mut next = || {
            if within == self.cluster_bytes().into() {
                cluster = self.next_cluster(source, cluster, is_contiguous)?.ok_or(TORN)?;
                within = 0;
            }
            let mut entry = [0; ENTRY_BYTES];
            source.copy(self.address(cluster) + within, &mut entry)?;
            within += ENTRY_BYTES as u64;
            Ok(entry)
        };
        let first = next()?;
        Node::of(self, number, &Set::read(&first, |_| next())?)
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
