//! Changes of directories: making, removing and renaming.
//!
//! A set of up to 16 entries lies within 512 bytes, which a disk writes as a whole or not at all. Longer ones, of names of more than 210 units, do not: a power cut may leave a part of one that was being made.

use alloc::vec::Vec;

use crate::chain::{Chain, END as LAST};
use crate::directory::{
    DirectoryIndex, END, ENTRIES, ENTRY_BYTES, Entry, FILE, Found, IS_USED, IndexChange, NAME, PART, STREAM, TORN,
    UNITS, add, longest_room,
};
use crate::file::{DIRECTORY, LONGEST_DIRECTORY, READ_ONLY};
use crate::name::{hash, new_units, units};
use crate::transaction::{Stage, Transaction, When};
use crate::{Error, Node, Source, Store, Time};

/// A directory that is to be changed.
#[derive(Debug)]
pub struct Directory<'i> {
    /// Where its entries are; `None`: it is the root directory.
    pub place: Option<u64>,
    /// What it is.
    pub node: Node,
    /// Which names it has.
    pub index: &'i mut DirectoryIndex,
    /// How it has changed: to be told to the index when that is true.
    pub change: IndexChange,
    /// Clusters that it gets: which of its own, and where. What its index knows does not depend on them, as they may never be true.
    grown: Vec<(u32, u32)>,
}

impl<'i> Directory<'i> {
    /// A directory with the number of its file.
    pub fn new(place: Option<u64>, node: Node, index: &'i mut DirectoryIndex) -> Self {
        Directory { place, node, index, change: IndexChange::default(), grown: Vec::new() }
    }

    /// The same, for a shorter time.
    fn again(&mut self) -> Directory<'_> {
        Directory::new(self.place, self.node.clone(), self.index)
    }
}

/// A kind of entries that are not in use, but do not end a directory either.
const REMOVED: u8 = FILE & !IS_USED;
/// A directory whose clusters stand one after another gets a chain of at most so many.
const MOST_UNFOLDED: u32 = 1 << 15;
/// Said of files that a backup is to copy.
const ARCHIVE: u16 = 0x20;

/// What a set says of a file besides its name.
pub(crate) fn describe(node: &Node, first: &mut Entry, stream: &mut Entry) {
    let attributes = u16::from_le_bytes([first[4], first[5]]) & !(READ_ONLY | DIRECTORY);
    let attributes =
        attributes | if node.is_read_only { READ_ONLY } else { 0 } | if node.is_directory { DIRECTORY } else { 0 };
    first[4..6].copy_from_slice(&attributes.to_le_bytes());
    // What was not changed keeps its distance to UTC.
    let before = |stamp: usize, hundredths: Option<usize>, zone: usize| {
        let stamp = u32::from_le_bytes([first[stamp], first[stamp + 1], first[stamp + 2], first[stamp + 3]]);
        Time::read(stamp, hundredths.map_or(0, |at| first[at]), first[zone])
    };
    let keep = [
        before(8, Some(20), 22) == node.created,
        before(12, Some(21), 23) == node.modified,
        before(16, None, 24) == node.accessed,
    ];
    for (time, keep, at, hundredths_at, zone_at) in [
        (node.created, keep[0], 8, Some(20), 22),
        (node.modified, keep[1], 12, Some(21), 23),
        (node.accessed, keep[2], 16, None, 24),
    ] {
        if keep {
            continue;
        }
        let (stamp, hundredths, zone) = time.write();
        first[at..at + 4].copy_from_slice(&stamp.to_le_bytes());
        if let Some(hundredths_at) = hundredths_at {
            first[hundredths_at] = hundredths;
        }
        first[zone_at] = zone;
    }
    // Bit 0: it may have clusters.
    stream[1] = 1 | if node.chain.is_contiguous && node.chain.first != 0 { 2 } else { 0 };
    stream[8..16].copy_from_slice(&node.written.to_le_bytes());
    stream[20..24].copy_from_slice(&node.chain.first.to_le_bytes());
    stream[24..32].copy_from_slice(&node.size.to_le_bytes());
}

/// The checksum of a set.
pub(crate) fn seal(set: &mut [Entry]) {
    let bytes = set.as_flattened().iter().enumerate().filter(|(at, _)| !matches!(at, 2 | 3));
    let sum = bytes.fold(0, |sum, (_, byte)| add(sum, *byte));
    if let Some(first) = set.first_mut() {
        first[2..4].copy_from_slice(&sum.to_le_bytes());
    }
}

/// A set of entries with a name; `first` and `stream` say the rest.
fn named(first: Entry, stream: Entry, name: &[u16], folded: &[u16]) -> Vec<Entry> {
    let mut set = Vec::with_capacity(2 + name.len().div_ceil(UNITS));
    set.extend([first, stream]);
    set[0][0] = FILE;
    set[0][1] = 1 + name.len().div_ceil(UNITS) as u8;
    set[1][0] = STREAM;
    set[1][3] = name.len() as u8;
    set[1][4..6].copy_from_slice(&hash(folded).to_le_bytes());
    for part in name.chunks(UNITS) {
        let mut entry = [0; ENTRY_BYTES];
        entry[0] = NAME;
        for (to, unit) in entry[2..].chunks_exact_mut(2).zip(part) {
            to.copy_from_slice(&unit.to_le_bytes());
        }
        set.push(entry);
    }
    seal(&mut set);
    set
}

/// Where so many entries of a sector are.
fn places(sector: u64, from: u32, count: u32) -> impl Iterator<Item = u64> {
    (from..from + count).map(move |entry| sector + u64::from(entry) * ENTRY_BYTES as u64)
}

/// Where a set is to be.
struct Room {
    /// The index of its first entry.
    at: u32,
    /// Where its entries are, in bytes.
    places: Vec<u64>,
}

impl<S: Store> Transaction<'_, S> {
    /// Makes an empty file or directory; its number.
    ///
    /// # Errors
    /// `Exists`, `Invalid`, `NameTooLong`, `NoSpace`, `CommitFirst`; as for [`FileSystem::look_up`](crate::FileSystem::look_up).
    pub fn create(
        &mut self,
        directory: &mut Directory<'_>,
        name: &[u8],
        is_directory: bool,
        is_read_only: bool,
    ) -> Result<Node, Error> {
        let name = new_units(name)?;
        self.check_new(directory, &name)?;
        let now = self.now;
        let mut node = Node {
            number: 0,
            is_directory,
            is_read_only,
            size: 0,
            created: now,
            modified: now,
            accessed: now,
            chain: Chain { first: 0, is_contiguous: false, bytes: 0 },
            written: 0,
        };
        if is_directory {
            let (cluster, _) = self.take(None, 1)?;
            self.clear(cluster)?;
            self.link(cluster, LAST, When::Early)?;
            node.chain = Chain { first: cluster, is_contiguous: false, bytes: self.fs.cluster_bytes().into() };
            (node.size, node.written) = (node.chain.bytes, node.chain.bytes);
        }
        let (mut first, mut stream) = ([0; ENTRY_BYTES], [0; ENTRY_BYTES]);
        first[4..6].copy_from_slice(&if is_directory { 0 } else { ARCHIVE }.to_le_bytes());
        describe(&node, &mut first, &mut stream);
        let folded = self.fs.upcase.fold(&name);
        let set = named(first, stream, &name, &folded);
        let room = self.make_room(directory, set.len() as u32)?;
        self.write_set(&room.places, &set, When::Early)?;
        self.note_rooms(directory, room.at, set.len() as u32)?;
        directory.change.added = Some((self.fs.index_hash(&folded), room.at));
        node.number = number_at(&room.places)?;
        Ok(node)
    }

    fn check_new(&self, directory: &mut Directory<'_>, name: &[u16]) -> Result<(), Error> {
        match self.fs.find(self, &directory.node, directory.index, name) {
            Err(Error::NotFound) => Ok(()),
            Ok(_) => Err(Error::Exists),
            Err(error) => Err(error),
        }
    }

    /// Takes the name of a file out of a directory; what the file is. Its clusters stay in use.
    ///
    /// # Errors
    /// As for [`FileSystem::look_up`](crate::FileSystem::look_up).
    pub fn unlink(&mut self, directory: &mut Directory<'_>, name: &[u8]) -> Result<Node, Error> {
        let name = units(name).ok_or(Error::NotFound)?;
        let found = self.fs.find(self, &directory.node, directory.index, &name)?;
        let node = self.fs.node(self, found.number)?;
        self.remove(directory, &found)?;
        Ok(node)
    }

    /// That a directory has no names.
    ///
    /// # Errors
    /// `NotEmpty`; as for [`FileSystem::look_up`](crate::FileSystem::look_up).
    pub fn check_empty(&self, node: &Node, index: &mut DirectoryIndex) -> Result<(), Error> {
        self.fs.complete(self, node, index)?;
        if index.is_empty() { Ok(()) } else { Err(Error::NotEmpty) }
    }

    /// Removes a set.
    fn remove(&mut self, directory: &mut Directory<'_>, found: &Found) -> Result<(), Error> {
        let (_, places) = self.fs.set_at(self, found.number)?;
        let when = self.when(&places, When::Early)?;
        for place in &places {
            let mut kind = [0];
            self.copy(*place, &mut kind)?;
            self.put(*place, &[kind[0] & !IS_USED], Stage::Directory, when)?;
        }
        directory.change.removed = Some(found.name);
        self.note_rooms(directory, found.name.1, found.entries)
    }

    /// Gives a file another name, in this directory or `to`. What has that name there is replaced, if that is `existing`; it keeps its clusters. The file's number is another one after that.
    ///
    /// # Errors
    /// As for [`create`](Self::create), and `NotFound`.
    pub fn rename(
        &mut self,
        from: &mut Directory<'_>,
        name: &[u8],
        to: Option<&mut Directory<'_>>,
        new: &[u8],
    ) -> Result<Renamed, Error> {
        let mut to = to;
        let mut here = from.again();
        let mut there = to.as_deref_mut().map(Directory::again);
        let renamed = self.rename_between(&mut here, name, there.as_mut(), new)?;
        let there = there.map(|there| (there.node, there.change));
        (from.node, from.change) = (here.node, here.change);
        if let (Some(to), Some(there)) = (to, there) {
            (to.node, to.change) = there;
        }
        Ok(renamed)
    }

    fn rename_between<'i>(
        &mut self,
        from: &mut Directory<'i>,
        name: &[u8],
        mut to: Option<&mut Directory<'i>>,
        new: &[u8],
    ) -> Result<Renamed, Error> {
        let old = units(name).ok_or(Error::NotFound)?;
        let new = new_units(new)?;
        let folded = self.fs.upcase.fold(&new);
        let moved = self.fs.find(self, &from.node, from.index, &old)?;
        let target = match &mut to {
            Some(to) => &mut **to,
            None => &mut *from,
        };
        let existing = match self.fs.find(self, &target.node, target.index, &new) {
            Ok(found) => Some(found),
            Err(Error::NotFound) => None,
            Err(error) => return Err(error),
        };
        let (set, places) = self.fs.set_at(self, moved.number)?;
        let renamed = named(set.first, set.stream, &new, &folded);
        let hash = self.fs.index_hash(&folded);
        let is_in_place = renamed.len() == places.len();
        let stays = match &existing {
            Some(other) => other.number == moved.number,
            None => to.is_none(),
        };
        if stays && is_in_place {
            self.write_set(&places, &renamed, When::Early)?;
            from.change.removed = Some(moved.name);
            from.change.added = Some((hash, moved.name.1));
            return Ok(Renamed { moved: moved.number, number: moved.number, replaced: None });
        }
        let existing = existing.filter(|other| other.number != moved.number);
        // It is gone from where it was before it is anywhere else, so that it is never in two places.
        let leaves = self.when(&places, When::Early)?;
        self.remove(from, &moved)?;
        let is_same_directory = to.is_none();
        let target = to.unwrap_or(from);
        let replaced = match &existing {
            Some(other) => Some(self.fs.node(self, other.number)?),
            None => None,
        };
        let (room, when) = match &existing {
            Some(other) => {
                let (_, places) = self.fs.set_at(self, other.number)?;
                if places.len() != renamed.len() {
                    // Vendors have something of theirs behind the name, which goes with it.
                    self.remove_rest(&places, renamed.len())?;
                }
                (Room { at: other.name.1, places }, When::Late)
            }
            None => {
                // What is in the same sector is written at once: when the old entries go.
                let sector = moved.name.1 / ENTRIES;
                let is_in_one = (moved.name.1 + moved.entries - 1) / ENTRIES == sector;
                let near = match is_same_directory && is_in_one {
                    true => self.room_in(target, sector, renamed.len() as u32)?,
                    false => None,
                };
                match near {
                    Some(room) => (room, leaves),
                    None => (self.make_room(target, renamed.len() as u32)?, When::Late),
                }
            }
        };
        self.write_set(&room.places, &renamed, when)?;
        let entries = existing.as_ref().map_or(0, |other| other.entries).max(renamed.len() as u32);
        self.note_rooms(target, room.at, entries)?;
        if let Some(other) = &existing {
            target.change.replaced = Some(other.name);
        }
        target.change.added = Some((hash, room.at));
        Ok(Renamed { moved: moved.number, number: number_at(&room.places)?, replaced })
    }

    /// Entries behind what is written of a set are not in use.
    fn remove_rest(&mut self, places: &[u64], from: usize) -> Result<(), Error> {
        for place in places.get(from..).ok_or(TORN)? {
            self.put(*place, &[REMOVED], Stage::Directory, When::Late)?;
        }
        Ok(())
    }

    fn write_set(&mut self, places: &[u64], set: &[Entry], when: When) -> Result<(), Error> {
        if places.len() < set.len() {
            return Err(TORN);
        }
        let when = self.when(&places[..set.len()], when)?;
        for (place, entry) in places.iter().zip(set) {
            self.put(*place, entry, Stage::Directory, when)?;
        }
        Ok(())
    }

    /// When entries can be on the disk: what is late in a part is so as a whole.
    fn when(&mut self, places: &[u64], when: When) -> Result<When, Error> {
        for place in places {
            if self.is_late(*place, ENTRY_BYTES, Stage::Directory)? {
                return Ok(When::Late);
            }
        }
        Ok(when)
    }

    /// Writes what a file is to its set.
    ///
    /// # Errors
    /// `Corrupt`, `NoMemory`, `Absent`.
    pub fn save(&mut self, number: u64, node: &Node) -> Result<(), Error> {
        let (set, places) = self.fs.set_at(self, number)?;
        let mut entries = Vec::with_capacity(places.len());
        for place in &places {
            let mut entry = [0; ENTRY_BYTES];
            self.copy(*place, &mut entry)?;
            entries.push(entry);
        }
        let (mut first, mut stream) = (set.first, set.stream);
        describe(node, &mut first, &mut stream);
        (entries[0], entries[1]) = (first, stream);
        seal(&mut entries);
        let when = self.when(&places, When::Early)?;
        for (place, entry) in places.iter().zip(&entries).take(2) {
            self.put(*place, entry, Stage::Directory, when)?;
        }
        Ok(())
    }

    /// Notes how much room there is now in the sectors with these entries.
    fn note_rooms(&mut self, directory: &mut Directory<'_>, at: u32, entries: u32) -> Result<(), Error> {
        for sector in at / ENTRIES..=(at + entries - 1) / ENTRIES {
            let Some(address) = self.sector(directory, sector)? else { return Err(TORN) };
            let mut part = [0; PART];
            self.copy(address, &mut part)?;
            let room = longest_room(&part).0;
            directory.change.rooms.retain(|(other, _)| *other != sector);
            directory.change.rooms.push((sector, room));
        }
        Ok(())
    }

    /// Where 16 entries of a directory are, in bytes; `None` behind its last cluster.
    fn sector(&mut self, directory: &mut Directory<'_>, sector: u32) -> Result<Option<u64>, Error> {
        let offset = u64::from(sector) * PART as u64;
        let (number, within) =
            ((offset >> self.fs.cluster_bits) as u32, offset & (u64::from(self.fs.cluster_bytes()) - 1));
        let bytes = directory.node.chain.bytes;
        if bytes != u64::MAX && offset >= bytes {
            return Ok(None);
        }
        let cluster = match directory.grown.iter().find(|grown| grown.0 == number) {
            Some(grown) => Some(grown.1),
            None => {
                self.fs.cluster(&*self, directory.node.chain, &mut directory.index.chain, number)?.map(|found| found.0)
            }
        };
        Ok(cluster.map(|cluster| self.fs.address(cluster) + within))
    }

    /// Room for so many entries in a sector, if there is some.
    fn room_in(&mut self, directory: &mut Directory<'_>, sector: u32, entries: u32) -> Result<Option<Room>, Error> {
        let address = self.sector(directory, sector)?.ok_or(TORN)?;
        let mut part = [0; PART];
        self.copy(address, &mut part)?;
        let (room, start) = longest_room(&part);
        let places = places(address, start, entries).collect();
        Ok((u32::from(room) >= entries).then_some(Room { at: sector * ENTRIES + start, places }))
    }

    /// Finds room for so many entries, or makes it.
    fn make_room(&mut self, directory: &mut Directory<'_>, entries: u32) -> Result<Room, Error> {
        self.fs.complete(self, &directory.node, directory.index)?;
        if entries <= ENTRIES
            && let Some(sector) = directory.index.room(entries)
        {
            return self.room_in(directory, sector, entries)?.ok_or(TORN);
        }
        let first = directory.index.rooms.len() as u32;
        let mut all = Vec::with_capacity(entries as usize);
        if let Some(last) = first.checked_sub(1) {
            // What follows is seen only if nothing before it says that there is no more.
            let address = self.sector(directory, last)?.ok_or(TORN)?;
            for place in places(address, 0, ENTRIES) {
                let mut kind = [0];
                self.copy(place, &mut kind)?;
                if kind[0] == END {
                    self.put(place, &[REMOVED], Stage::Directory, When::Early)?;
                }
            }
        }
        for sector in first..first + entries.div_ceil(ENTRIES) {
            let address = match self.sector(directory, sector)? {
                Some(address) => address,
                None => self.grow(directory, sector)?,
            };
            self.put(address, &[0; PART], Stage::Directory, When::Early)?;
            let left = entries - all.len() as u32;
            all.extend(places(address, 0, left.min(ENTRIES)));
        }
        Ok(Room { at: first * ENTRIES, places: all })
    }

    /// Gives a directory a cluster that begins with a sector; where that is.
    fn grow(&mut self, directory: &mut Directory<'_>, sector: u32) -> Result<u64, Error> {
        let offset = u64::from(sector) * PART as u64;
        let have = (offset >> self.fs.cluster_bits) as u32;
        let bytes = u64::from(have + 1) << self.fs.cluster_bits;
        if bytes > LONGEST_DIRECTORY {
            return Err(Error::NoSpace);
        }
        let chain = directory.node.chain;
        let last = match directory.grown.last() {
            Some(grown) => grown.1,
            None => {
                let before = have.checked_sub(1).ok_or(TORN)?;
                self.fs.cluster(&*self, chain, &mut directory.index.chain, before)?.ok_or(TORN)?.0
            }
        };
        self.check_pinned(last)?;
        let (cluster, _) = self.take(Some(last), 1)?;
        self.clear(cluster)?;
        directory.grown.push((have, cluster));
        let chain = &mut directory.node.chain;
        if chain.is_contiguous && cluster != last + 1 {
            if have > MOST_UNFOLDED {
                return Err(Error::NoSpace);
            }
            chain.is_contiguous = false;
            self.unfold(chain.first, 0, have)?;
        }
        let chain = &mut directory.node.chain;
        if !chain.is_contiguous {
            self.link(last, cluster, When::Early)?;
            self.link(cluster, LAST, When::Early)?;
        }
        if let Some(place) = directory.place {
            chain.bytes = bytes;
            (directory.node.size, directory.node.written) = (bytes, bytes);
            let node = directory.node.clone();
            self.save(place, &node)?;
        }
        Ok(self.fs.address(cluster))
    }

    /// Writes a chain for clusters that stand one after another, of which `from` have one already. The last is the end.
    pub(crate) fn unfold(&mut self, first: u32, from: u32, count: u32) -> Result<(), Error> {
        for number in from..count {
            let next = if number + 1 == count { LAST } else { first + number + 1 };
            self.link(first + number, next, When::Early)?;
        }
        Ok(())
    }
}

/// What a renaming has done.
#[derive(Debug)]
pub struct Renamed {
    /// The number that the file had.
    pub moved: u64,
    /// The one that it has.
    pub number: u64,
    /// What has lost its name.
    pub replaced: Option<Node>,
}

/// The number of the file whose set begins at a place.
fn number_at(places: &[u64]) -> Result<u64, Error> {
    Ok(places.first().ok_or(TORN)? / ENTRY_BYTES as u64)
}
