//! Indexed directories. The first block is the root of a tree of hashes, the others are nodes of it or blocks of entries. Each entry of a node
//! names a block and the lowest hash in it; the lowest bit of that says that names with the same hash are in the block before as well.

use crate::blocks::Blocks;
use crate::bytes::{le16, le32, put16, put32};
use crate::checksum::crc32c;
use crate::dir::{Entry, Found, OwnedEntry, Position, entry_len, owned_slots, slot, write_slot};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::hash::{Hash, hash_name};
use crate::inode::{Inode, Kind, flag};
use crate::superblock::feature;
use crate::transaction::{Seal, Transaction};
use core::ops::ControlFlow;
use std_alloc::vec;
use std_alloc::vec::Vec;

/// Where the entries start in the root and in other nodes. The first of each has no hash: there the numbers of entries are.
const ROOT_AT: usize = 32;
const NODE_AT: usize = 8;
const ENTRY: usize = 8;
/// Where the root says how names are hashed, how long this is, and how many levels of nodes are below.
const VERSION_AT: usize = 28;
const INFO_LEN: u8 = 8;
/// Leaves that a call of `list` looks at.
const LEAVES_AT_ONCE: usize = 16;

/// A name that is to be entered.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry<'a> {
    pub name: &'a [u8],
    pub inode: u32,
    pub kind: Option<Kind>,
}

/// A node on the way to a leaf, and which of its entries the way takes.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// The directory's block.
    index: u32,
    slot: usize,
    count: usize,
}

/// The way to a leaf.
#[derive(Debug)]
struct Path {
    levels: Vec<Level>,
    leaf: u32,
}

/// A node's entries: hashes (the first has none) and blocks.
type Entries = Vec<(u32, u32)>;

fn entries_at(bytes: &[u8]) -> usize {
    if le16(bytes, 4) == 12 { ROOT_AT } else { NODE_AT }
}

/// Makes a node's checksum.
pub fn seal(seed: u32, bytes: &mut [u8]) {
    let at = entries_at(bytes);
    let tail = at + usize::from(le16(bytes, at)) * ENTRY;
    if tail + 8 <= bytes.len() {
        let sum = checksum(seed, bytes, at, tail);
        put32(bytes, tail + 4, sum);
    }
}

fn checksum(seed: u32, bytes: &[u8], at: usize, tail: usize) -> u32 {
    let used = (at + usize::from(le16(bytes, at + 2)) * ENTRY).min(bytes.len());
    let sum = crc32c(seed, &bytes[..used]);
    crc32c(crc32c(sum, &bytes[tail..tail + 4]), &[0; 4])
}

fn store(bytes: &mut [u8], at: usize, limit: usize, entries: &Entries) {
    put16(bytes, at, limit as u16);
    put16(bytes, at + 2, entries.len() as u16);
    for (i, (hash, block)) in entries.iter().enumerate() {
        if i > 0 {
            put32(bytes, at + i * ENTRY, *hash);
        }
        put32(bytes, at + i * ENTRY + 4, *block);
    }
}

impl FileSystem {
    /// How many entries a node has room for.
    fn index_limit(&self, is_root: bool) -> usize {
        let tail = if self.has_checksums() { 8 } else { 0 };
        (self.block_size() as usize - if is_root { ROOT_AT } else { NODE_AT } - tail) / ENTRY
    }

    /// Levels of nodes below the root, at most.
    fn most_levels(&self) -> u8 {
        if self.superblock().has_incompat(feature::LARGE_DIR) { 2 } else { 1 }
    }

    /// Calls `with` with a node's bytes, where its entries start and how many they are.
    fn read_index<R>(
        &self,
        blocks: &impl Blocks,
        dir: &Inode,
        index: u32,
        with: impl FnOnce(&[u8], usize, usize) -> R,
    ) -> Result<R> {
        let block = self.map_metadata(blocks, dir, index)?;
        let check = self.has_checksums() && !blocks.is_verified(block);
        let at = if index == 0 { ROOT_AT } else { NODE_AT };
        let limit = self.index_limit(index == 0);
        let found = blocks.read(block, |bytes| {
            let (found, count) = (usize::from(le16(bytes, at)), usize::from(le16(bytes, at + 2)));
            if found != limit || count == 0 || count > limit || entries_at(bytes) != at {
                return Err(Error::Corrupt("index of a directory"));
            }
            let tail = at + limit * ENTRY;
            if check && checksum(self.seed_of(dir), bytes, at, tail) != le32(bytes, tail + 4) {
                return Err(Error::Corrupt("checksum of a directory's index"));
            }
            Ok(with(bytes, at, count))
        })??;
        if check {
            blocks.mark_verified(block);
        }
        Ok(found)
    }

    /// How names are hashed, and how many levels of nodes are below the root.
    fn index_info(&self, blocks: &impl Blocks, dir: &Inode) -> Result<(u8, u8)> {
        let [version, len, levels, flags] =
            self.read_index(blocks, dir, 0, |bytes, _, _| core::array::from_fn(|i| bytes[VERSION_AT + i]))?;
        if version > 2 || len != INFO_LEN || levels > self.most_levels() || flags & 1 != 0 {
            return Err(Error::Corrupt("root of a directory's index"));
        }
        Ok((self.signedness(version), levels))
    }

    fn signedness(&self, version: u8) -> u8 {
        if self.superblock().hash_unsigned && version < 3 { version + 3 } else { version }
    }

    fn hash(&self, name: &[u8], version: u8) -> Result<Hash> {
        hash_name(name, version, &self.superblock().hash_seed).ok_or(Error::Corrupt("hash version"))
    }

    fn index_entries(&self, blocks: &impl Blocks, dir: &Inode, index: u32) -> Result<Entries> {
        self.read_index(blocks, dir, index, |bytes, at, count| {
            (0..count)
                .map(|i| (if i == 0 { 0 } else { le32(bytes, at + i * ENTRY) }, le32(bytes, at + i * ENTRY + 4)))
                .collect()
        })
    }

    /// A node's number of entries, and the hash and block of one.
    fn index_entry(&self, blocks: &impl Blocks, dir: &Inode, index: u32, slot: usize) -> Result<(usize, u32, u32)> {
        let count = self.dir_blocks(dir)?;
        let found = self.read_index(blocks, dir, index, |bytes, at, count| {
            (slot < count).then(|| (count, le32(bytes, at + slot * ENTRY), le32(bytes, at + slot * ENTRY + 4)))
        })?;
        found.filter(|(_, _, block)| *block > 0 && *block < count).ok_or(Error::Corrupt("index of a directory"))
    }

    /// The way to the leaf where names with this hash are, or the first of several.
    fn descend(&self, blocks: &impl Blocks, dir: &Inode, hash: u32, levels: u8) -> Result<Path> {
        let mut path = Vec::with_capacity(3);
        let mut index = 0;
        for _ in 0..=levels {
            let slot = self.read_index(blocks, dir, index, |bytes, at, count| {
                let (mut low, mut high) = (1, count);
                while low < high {
                    let middle = low.midpoint(high);
                    if le32(bytes, at + middle * ENTRY) <= hash { low = middle + 1 } else { high = middle }
                }
                low - 1
            })?;
            let (count, _, next) = self.index_entry(blocks, dir, index, slot)?;
            path.push(Level { index, slot, count });
            index = next;
        }
        Ok(Path { levels: path, leaf: index })
    }

    /// Goes on to the next leaf, and tells the lowest hash in it.
    fn next_leaf(&self, blocks: &impl Blocks, dir: &Inode, path: &mut Path) -> Result<Option<u32>> {
        let Some(level) = path.levels.iter().rposition(|level| level.slot + 1 < level.count) else { return Ok(None) };
        path.levels[level].slot += 1;
        let (_, hash, mut next) = self.index_entry(blocks, dir, path.levels[level].index, path.levels[level].slot)?;
        for lower in level + 1..path.levels.len() {
            let (count, _, below) = self.index_entry(blocks, dir, next, 0)?;
            path.levels[lower] = Level { index: next, slot: 0, count };
            next = below;
        }
        path.leaf = next;
        Ok(Some(hash))
    }

    pub(crate) fn find_indexed(&self, blocks: &impl Blocks, dir: &Inode, name: &[u8]) -> Result<Found> {
        let (version, levels) = self.index_info(blocks, dir)?;
        let hash = self.hash(name, version)?.major;
        let mut path = self.descend(blocks, dir, hash, levels)?;
        for _ in 0..self.dir_blocks(dir)? {
            if let Some(found) = self.find_in(blocks, dir, path.leaf, name)? {
                return Ok(found);
            }
            match self.next_leaf(blocks, dir, &mut path)? {
                Some(next) if next == hash | 1 => {}
                _ => return Err(Error::NotFound),
            }
        }
        Err(Error::Corrupt("index of a directory"))
    }

    /// Finds the directory itself or its parent, which are in the root.
    pub(crate) fn find_dots(&self, blocks: &impl Blocks, dir: &Inode, name: &[u8]) -> Result<Found> {
        let block = self.map_metadata(blocks, dir, 0)?;
        let typed = self.entries_are_typed();
        self.read_index(blocks, dir, 0, |bytes, _, _| {
            let at = if name == b"." { 0 } else { 12 };
            let slot = slot(&bytes[..self.block_size() as usize], at, typed)?;
            if slot.name == name && slot.inode != 0 {
                self.found(block, 0, &slot)
            } else {
                Err(Error::Corrupt("first entries of a directory"))
            }
        })?
    }

    /// A name's place in a listing.
    fn listing_key(&self, name: &[u8], version: u8) -> Result<u64> {
        let major = u64::from(self.hash(name, version)?.major >> 1);
        // 0 and 1 are the directory itself and its parent; the largest value is the end.
        Ok((major << 32 | u64::from(crc32c(!0, name))).clamp(2, Position::END.0 - 8))
    }

    /// [`list`](Self::list) in the order of hashes: leaf by leaf, each sorted.
    pub(crate) fn list_hashed(
        &self,
        blocks: &impl Blocks,
        dir: &Inode,
        from: Position,
        tell: &mut impl FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<Position> {
        for (at, name) in [&b"."[..], b".."].into_iter().enumerate().skip(from.0.min(2) as usize) {
            let found = if self.is_indexed(dir) {
                Ok(self.find_dots(blocks, dir, name)?)
            } else {
                self.find_first(blocks, dir, name)
            }?;
            let next = Position(at as u64 + 1);
            if tell(Entry { inode: found.inode, kind: found.kind, name, next }).is_break() {
                return Ok(next);
            }
        }
        if !self.is_indexed(dir) {
            let version = self.signedness(self.superblock().hash_version);
            let mut names = self.keyed(blocks, dir, 0, version)?;
            names.retain(|(_, _, _, name)| !matches!(&name[..], b"." | b".."));
            return Ok(tell_sorted(names, from, true, tell).unwrap_or(Position::END));
        }
        let (version, levels) = self.index_info(blocks, dir)?;
        let start = (from.0 >> 32 << 1) as u32;
        let mut path = self.descend(blocks, dir, start, levels)?;
        let most = self.dir_blocks(dir)? as usize;
        let mut last = from.0 & !0xffff_ffff;
        let mut leaves = 0;
        loop {
            // Leaves that share a hash are sorted together.
            let mut names = self.keyed(blocks, dir, path.leaf, version)?;
            let mut sharing = 1;
            let next = loop {
                match self.next_leaf(blocks, dir, &mut path)? {
                    Some(hash) if hash & 1 != 0 && sharing < most => {
                        names.extend(self.keyed(blocks, dir, path.leaf, version)?);
                        sharing += 1;
                    }
                    other => break other,
                }
            };
            if let Some(stopped) = tell_sorted(names, from, next.is_none(), tell) {
                return Ok(stopped);
            }
            let Some(hash) = next else { return Ok(Position::END) };
            leaves += sharing;
            let next = (u64::from(hash >> 1) << 32).max(2);
            if next <= last {
                return Err(Error::Corrupt("order of a directory's index"));
            }
            last = next;
            if leaves >= LEAVES_AT_ONCE {
                return Ok(Position(next));
            }
        }
    }

    fn find_first(&self, blocks: &impl Blocks, dir: &Inode, name: &[u8]) -> Result<Found> {
        self.find_in(blocks, dir, 0, name)?.ok_or(Error::Corrupt("first entries of a directory"))
    }

    /// A leaf's names with their places in a listing.
    fn keyed(&self, blocks: &impl Blocks, dir: &Inode, leaf: u32, version: u8) -> Result<Vec<Keyed>> {
        let typed = self.entries_are_typed();
        let names = self.read_entries(blocks, dir, leaf, |_, bytes| owned_slots(bytes, typed))?;
        names
            .into_iter()
            .map(|(inode, kind, name)| Ok((self.listing_key(&name, version)?, inode, kind, name)))
            .collect()
    }
}

type Keyed = (u64, u32, Option<Kind>, Vec<u8>);

/// Tells names in order, from a position on; where to go on, if it is enough. After the last name of the last leaf the directory is at its end, so nobody has to look there again.
fn tell_sorted(
    mut names: Vec<Keyed>,
    from: Position,
    is_last_leaf: bool,
    tell: &mut impl FnMut(Entry) -> ControlFlow<()>,
) -> Option<Position> {
    names.retain(|(key, ..)| *key >= from.0);
    names.sort_unstable_by(|one, other| (one.0, &one.3).cmp(&(other.0, &other.3)));
    for (i, (key, inode, kind, name)) in names.iter().enumerate() {
        // Names with the same key are told together: after all but the last of them a listing goes on with the first.
        let more = names.get(i + 1).is_some_and(|(next, ..)| next == key);
        let next = match more {
            true => Position(*key),
            false if is_last_leaf && i + 1 == names.len() => Position::END,
            false => Position(key + 1),
        };
        if tell(Entry { inode: *inode, kind: *kind, name, next }).is_break() {
            return Some(next);
        }
    }
    None
}

impl<B: Blocks> Transaction<'_, B> {
    /// Turns a directory of one block into an indexed one: its entries go into a second block.
    pub(crate) fn make_index(&mut self, dir: &mut Inode) -> Result<()> {
        let fs = self.fs();
        let (typed, usable) = (fs.entries_are_typed(), fs.entry_bytes());
        let root = fs.map_metadata(self, dir, 0)?;
        let names = fs.read_entries(self, dir, 0, |_, bytes| owned_slots(bytes, typed))?;
        let parent = match &names[..] {
            [(_, _, dot), (parent, _, dots), ..] if dot == b"." && dots == b".." => *parent,
            _ => return Err(Error::Corrupt("first entries of a directory")),
        };
        let index = self.append_entries(dir)?;
        let leaf = fs.map_metadata(self, dir, index)?;
        let moved = &names[2..];
        self.modify(leaf, self.entries_seal(dir), |bytes| fill_leaf(&mut bytes[..usable], moved))?;
        let seed = fs.seed_of(dir);
        let (number, size) = (dir.number(), fs.block_size() as usize);
        let kind = typed.then_some(Kind::Directory);
        let version = fs.superblock().hash_version % 3;
        let bytes = self.zeroed(root, Seal::Index(seed));
        write_slot(bytes, 0, 12, number, kind, b".");
        write_slot(bytes, 12, size - 12, parent, kind, b"..");
        bytes[VERSION_AT] = version;
        bytes[VERSION_AT + 1] = INFO_LEN;
        store(bytes, ROOT_AT, fs.index_limit(true), &vec![(0, index)]);
        dir.set_flags(dir.flags() | flag::INDEX);
        self.put_inode(dir)
    }

    /// Enters a name into an indexed directory. Its leaf is split until there is room; each time it has about half as much in it.
    pub(crate) fn add_indexed(&mut self, dir: &mut Inode, entry: &NewEntry) -> Result<()> {
        for _ in 0..8 {
            let fs = self.fs();
            let (version, levels) = fs.index_info(self, dir)?;
            let hash = fs.hash(entry.name, version)?.major;
            let path = fs.descend(self, dir, hash, levels)?;
            if self.insert_into(dir, path.leaf, entry)? {
                return self.put_inode(dir);
            }
            self.split_leaf(dir, &path, version)?;
        }
        Err(Error::Corrupt("index of a directory"))
    }

    fn split_leaf(&mut self, dir: &mut Inode, path: &Path, version: u8) -> Result<()> {
        let fs = self.fs();
        let (typed, usable) = (fs.entries_are_typed(), fs.entry_bytes());
        let (block, names) =
            fs.read_entries(self, dir, path.leaf, |block, bytes| Ok((block, owned_slots(bytes, typed)?)))?;
        let mut hashed = Vec::with_capacity(names.len());
        for name in names {
            hashed.push((fs.hash(&name.2, version)?.major, name));
        }
        hashed.sort_by_key(|(hash, _)| *hash);
        let total: usize = hashed.iter().map(|(_, name)| entry_len(name.2.len())).sum();
        let mut below = 0;
        let middle = hashed.iter().position(|(_, name)| {
            below += entry_len(name.2.len());
            below > total / 2
        });
        let middle = middle.unwrap_or(0).clamp(1, hashed.len().saturating_sub(1).max(1));
        if middle >= hashed.len() {
            return Err(Error::Corrupt("index of a directory"));
        }
        let goes_on = hashed[middle - 1].0 == hashed[middle].0;
        let hash = hashed[middle].0 | u32::from(goes_on);
        let upper: Vec<_> = hashed.split_off(middle).into_iter().map(|(_, name)| name).collect();
        let lower: Vec<_> = hashed.into_iter().map(|(_, name)| name).collect();
        let index = self.append_entries(dir)?;
        let new = fs.map_metadata(self, dir, index)?;
        let seal = self.entries_seal(dir);
        self.modify(block, seal, |bytes| fill_leaf(&mut bytes[..usable], &lower))?;
        self.modify(new, seal, |bytes| fill_leaf(&mut bytes[..usable], &upper))?;
        self.add_to_index(dir, &path.levels, hash, index)
    }

    /// Enters a block into the lowest node of a way, after the entry that the way takes. A full node is split, a full root gets a level
    /// below it.
    fn add_to_index(&mut self, dir: &mut Inode, levels: &[Level], hash: u32, block: u32) -> Result<()> {
        let fs = self.fs();
        let Some((level, above)) = levels.split_last() else { return Err(Error::Corrupt("index of a directory")) };
        let is_root = level.index == 0;
        let mut entries = fs.index_entries(self, dir, level.index)?;
        entries.insert((level.slot + 1).min(entries.len()), (hash, block));
        if entries.len() <= fs.index_limit(is_root) {
            return self.store_index(dir, level.index, &entries);
        }
        if is_root {
            let (_, depth) = fs.index_info(self, dir)?;
            if depth >= fs.most_levels() {
                return Err(Error::NoSpace);
            }
            let node = self.new_index_node(dir, &entries)?;
            self.store_index(dir, 0, &vec![(0, node)])?;
            let root = fs.map_metadata(self, dir, 0)?;
            return self.modify(root, Seal::Index(fs.seed_of(dir)), |bytes| bytes[VERSION_AT + 2] = depth + 1);
        }
        let upper = entries.split_off(entries.len() / 2);
        let node = self.new_index_node(dir, &upper)?;
        self.store_index(dir, level.index, &entries)?;
        self.add_to_index(dir, above, upper[0].0, node)
    }

    fn new_index_node(&mut self, dir: &mut Inode, entries: &Entries) -> Result<u32> {
        let fs = self.fs();
        let index = self.append_entries(dir)?;
        let block = fs.map_metadata(self, dir, index)?;
        let size = fs.block_size() as usize;
        let limit = fs.index_limit(false);
        let bytes = self.zeroed(block, Seal::Index(fs.seed_of(dir)));
        write_slot(bytes, 0, size, 0, None, b"");
        store(bytes, NODE_AT, limit, entries);
        Ok(index)
    }

    fn store_index(&mut self, dir: &Inode, index: u32, entries: &Entries) -> Result<()> {
        let fs = self.fs();
        let block = fs.map_metadata(self, dir, index)?;
        let at = if index == 0 { ROOT_AT } else { NODE_AT };
        let limit = fs.index_limit(index == 0);
        self.modify(block, Seal::Index(fs.seed_of(dir)), |bytes| store(bytes, at, limit, entries))
    }
}

/// Writes a leaf's entries anew, one after the other.
fn fill_leaf(bytes: &mut [u8], names: &[OwnedEntry]) {
    let usable = bytes.len();
    bytes.fill(0);
    if names.is_empty() {
        write_slot(bytes, 0, usable, 0, None, b"");
    }
    let mut at = 0;
    for (i, (inode, kind, name)) in names.iter().enumerate() {
        let len = if i + 1 == names.len() { usable - at } else { entry_len(name.len()) };
        write_slot(bytes, at, len, *inode, *kind, name);
        at += len;
    }
}
