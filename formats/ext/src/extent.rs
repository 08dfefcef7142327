//! Blocks by a tree of extents. The root is in the inode, the other nodes are blocks; a node is a header and entries of 12 bytes, which in a leaf are
//! extents (file's block, disk's block, length) and elsewhere name a node and the first file's block in it.

use crate::alloc::Use;
use crate::blocks::{Blocks, Run};
use crate::bytes::{le16, le32, low32, put16, put32};
use crate::checksum::crc32c;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::inode::Inode;
use crate::map::{Mapping, Written};
use crate::transaction::{Seal, Transaction};
use std_alloc::vec::Vec;

const MAGIC: u16 = 0xf30a;
const HEADER: usize = 12;
const ENTRY: usize = 12;
/// Entries in the inode.
pub const ROOT_ENTRIES: usize = 4;
/// A root's depth is at most this.
const MAX_DEPTH: u16 = 5;
/// How many nodes besides full leaves a file takes at most that grows at its end: a leaf that is not full, a node on each level above, and one more where the root's entries move into a node.
pub const MOST_NODES_ABOVE: u64 = MAX_DEPTH as u64 + 2;
/// Blocks of an extent that is written; longer ones are one less and unwritten.
const MAX_LEN: u32 = 32768;
/// Runs of blocks that are freed before it is asked whether the transaction is full.
const RUNS_AT_ONCE: usize = 8;

/// An entry of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// The file's block.
    at: u32,
    /// The disk's block, or the node.
    start: u64,
    /// Blocks; 0 if it is a node.
    count: u32,
    written: Written,
}

impl Entry {
    fn end(self) -> u64 {
        u64::from(self.at) + u64::from(self.count)
    }

    fn node(at: u32, block: u64) -> Self {
        Self { at, start: block, count: 0, written: Written::Yes }
    }

    fn read(bytes: &[u8], index: usize, depth: u16) -> Self {
        let place = HEADER + index * ENTRY;
        let at = le32(bytes, place);
        if depth > 0 {
            let start = u64::from(le32(bytes, place + 4)) | u64::from(le16(bytes, place + 8)) << 32;
            return Self::node(at, start);
        }
        let len = u32::from(le16(bytes, place + 4));
        let start = u64::from(le32(bytes, place + 8)) | u64::from(le16(bytes, place + 6)) << 32;
        let (count, written) = if len > MAX_LEN { (len - MAX_LEN, Written::No) } else { (len, Written::Yes) };
        Self { at, start, count, written }
    }

    fn write(self, bytes: &mut [u8], index: usize, depth: u16) {
        let place = HEADER + index * ENTRY;
        let high = (self.start >> 32) as u16;
        put32(bytes, place, self.at);
        if depth > 0 {
            put32(bytes, place + 4, low32(self.start));
            put16(bytes, place + 8, high);
            put16(bytes, place + 10, 0);
        } else {
            let len = if self.written == Written::No { self.count + MAX_LEN } else { self.count };
            put16(bytes, place + 4, len as u16);
            put16(bytes, place + 6, high);
            put32(bytes, place + 8, low32(self.start));
        }
    }

    /// Whether `next` goes on where this one ends, and both fit one extent.
    fn joins(self, next: Self) -> bool {
        let most = if self.written == Written::No { MAX_LEN - 1 } else { MAX_LEN };
        self.written == next.written
            && self.end() == u64::from(next.at)
            && self.start + u64::from(self.count) == next.start
            && self.count + next.count <= most
    }

    /// The part of it from `from` to before `to`.
    fn part(self, from: u64, to: u64) -> Option<Self> {
        let (from, to) = (from.max(self.at.into()), to.min(self.end()));
        let skip = from.checked_sub(self.at.into())?;
        (from < to).then(|| Self {
            at: from as u32,
            start: self.start + skip,
            count: (to - from) as u32,
            written: self.written,
        })
    }
}

/// A node that is being changed.
struct Node {
    depth: u16,
    entries: Vec<Entry>,
}

/// What became of a node.
struct Edited {
    /// The first of the file's blocks in it; `None` if it is empty, and its block was freed.
    first: Option<u32>,
    /// A new node after it.
    split: Option<Entry>,
}

/// Where a node's checksum is: after as many entries as have room.
pub fn tail_at(bytes: &[u8]) -> usize {
    (HEADER + usize::from(le16(bytes, 4)) * ENTRY).min(bytes.len() - 4)
}

/// Makes the inode's 60 bytes a tree without extents.
pub fn init_root(field: &mut [u8]) {
    field.fill(0);
    put16(field, 0, MAGIC);
    put16(field, 4, ROOT_ENTRIES as u16);
}

/// Checks a node's header; how many entries it has and its depth.
fn check_header(bytes: &[u8], depth: Option<u16>) -> Result<(usize, u16)> {
    let (count, max, found) = (usize::from(le16(bytes, 2)), usize::from(le16(bytes, 4)), le16(bytes, 6));
    let sound = le16(bytes, 0) == MAGIC
        && count <= max
        && HEADER + max * ENTRY <= bytes.len()
        && depth.map_or(found <= MAX_DEPTH, |depth| depth == found)
        && (found == 0 || count > 0);
    if sound { Ok((count, found)) } else { Err(Error::Corrupt("extent tree")) }
}

/// The last entry that starts at `at` or before, and where the one after it starts.
fn search(bytes: &[u8], count: usize, depth: u16, at: u32) -> (Option<Entry>, Option<u32>) {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if le32(bytes, HEADER + middle * ENTRY) <= at { low = middle + 1 } else { high = middle }
    }
    let next = (low < count).then(|| le32(bytes, HEADER + low * ENTRY));
    ((low > 0).then(|| Entry::read(bytes, low - 1, depth)), next)
}

impl FileSystem {
    /// Calls `with` with a node's bytes, number of entries and depth.
    fn read_node<R>(
        &self,
        blocks: &impl Blocks,
        inode: &Inode,
        place: Option<u64>,
        depth: Option<u16>,
        with: impl FnOnce(&[u8], usize, u16) -> R,
    ) -> Result<R> {
        let Some(block) = place else {
            let field = inode.block_field();
            let (count, depth) = check_header(field, depth)?;
            return Ok(with(field, count, depth));
        };
        if !self.may_be_data(block, 1) {
            return Err(Error::Corrupt("block of an extent tree"));
        }
        let check = self.has_checksums() && !blocks.is_verified(block);
        let found = blocks.read(block, |bytes| {
            let (count, depth) = check_header(bytes, depth)?;
            let at = tail_at(bytes);
            if check && crc32c(self.seed_of(inode), &bytes[..at]) != le32(bytes, at) {
                return Err(Error::Corrupt("checksum of an extent tree"));
            }
            Ok(with(bytes, count, depth))
        })??;
        if check {
            blocks.mark_verified(block);
        }
        Ok(found)
    }

    /// The last extent that starts at `at` or before, and where at most a hole after it ends.
    fn find_extent(&self, blocks: &impl Blocks, inode: &Inode, at: u32) -> Result<(Option<Entry>, u32)> {
        let (mut place, mut depth, mut bound) = (None, None, u32::MAX);
        loop {
            let ((found, next), level) = self.read_node(blocks, inode, place, depth, |bytes, count, depth| {
                (search(bytes, count, depth, at), depth)
            })?;
            bound = bound.min(next.unwrap_or(u32::MAX));
            match found {
                Some(entry) if level > 0 => {
                    place = Some(entry.start);
                    depth = Some(level - 1);
                }
                found => {
                    if let Some(extent) = found
                        && (extent.count == 0
                            || extent.end() > 1 << 32
                            || !self.may_be_data(extent.start, extent.count))
                    {
                        return Err(Error::Corrupt("extent"));
                    }
                    return Ok((found, bound));
                }
            }
        }
    }

    pub(crate) fn map_extent(&self, blocks: &impl Blocks, inode: &Inode, at: u32) -> Result<Mapping> {
        let (found, bound) = self.find_extent(blocks, inode, at)?;
        if let Some(extent) = found.and_then(|extent| extent.part(at.into(), 1 << 32)) {
            return Ok(Mapping::Blocks { start: extent.start, count: extent.count, written: extent.written });
        }
        Ok(Mapping::Hole { count: bound.saturating_sub(at).max(1) })
    }

    fn load_node(&self, blocks: &impl Blocks, inode: &Inode, place: Option<u64>, depth: Option<u16>) -> Result<Node> {
        let node = self.read_node(blocks, inode, place, depth, |bytes, count, depth| Node {
            depth,
            entries: (0..count).map(|i| Entry::read(bytes, i, depth)).collect(),
        })?;
        let ordered = node.entries.windows(2).all(|pair| pair[0].at < pair[1].at && pair[0].end() <= pair[1].at.into());
        let whole = node.depth > 0
            || node
                .entries
                .iter()
                .all(|entry| entry.count > 0 && entry.end() <= 1 << 32 && self.may_be_data(entry.start, entry.count));
        if ordered && whole { Ok(node) } else { Err(Error::Corrupt("extents")) }
    }

    pub(crate) fn entries_of_block(&self) -> usize {
        (self.block_size() as usize - HEADER - 4) / ENTRY
    }
}

impl<B: Blocks> Transaction<'_, B> {
    pub(crate) fn allocate_extent(&mut self, inode: &mut Inode, at: u32, count: u32, usage: Use) -> Result<Mapping> {
        let written = if usage == Use::Unwritten { Written::No } else { Written::Yes };
        let goal = self.goal(inode, at)?;
        let run = self.take_blocks(goal, count.min(MAX_LEN - 1), usage)?;
        inode.add_blocks(self.fs(), run.count.into())?;
        let new = Entry { at, start: run.start, count: run.count, written };
        self.edit(inode, at, &mut |entries| {
            let place = entries.partition_point(|entry| entry.at < at);
            entries.insert(place, new);
        })?;
        Ok(Mapping::Blocks { start: run.start, count: run.count, written })
    }

    pub(crate) fn convert_extent(&mut self, inode: &mut Inode, at: u32, count: u32) -> Result<()> {
        let (from, to) = (u64::from(at), u64::from(at) + u64::from(count));
        self.edit(inode, at, &mut |entries| {
            let Some(place) = entries.iter().position(|entry| u64::from(entry.at) <= from && from < entry.end()) else {
                return;
            };
            let old = entries[place];
            let middle = old.part(from, to).map(|entry| Entry { written: Written::Yes, ..entry });
            let pieces = [old.part(0, from), middle, old.part(to, 1 << 32)];
            entries.splice(place..=place, pieces.into_iter().flatten());
        })
    }

    /// Frees blocks of a range, from its end on: the first from which on there are none left in it, `from` if all are gone.
    pub(crate) fn remove_extents(&mut self, inode: &mut Inode, from: u32, end: u32, usage: Use) -> Result<u32> {
        let (from, end) = (u64::from(from), u64::from(end));
        loop {
            let (found, _) = self.fs().find_extent(self, inode, (end - 1) as u32)?;
            let Some(last) = found.filter(|extent| extent.end() > from) else { return Ok(from as u32) };
            if self.is_full() {
                return Ok(last.end().min(end) as u32);
            }
            // Some extents of one leaf, from the end.
            let mut removed = Vec::new();
            self.edit(inode, last.at, &mut |entries| {
                removed.clear();
                for place in (0..entries.len()).rev() {
                    let old = entries[place];
                    let Some(gone) = old.part(from, end) else { continue };
                    entries.splice(place..=place, [old.part(0, from), old.part(end, 1 << 32)].into_iter().flatten());
                    removed.push(gone);
                    if removed.len() == RUNS_AT_ONCE {
                        break;
                    }
                }
            })?;
            if removed.is_empty() {
                return Err(Error::Corrupt("extent tree"));
            }
            for gone in removed {
                self.give_back(Run { start: gone.start, count: gone.count }, usage)?;
                inode.add_blocks(self.fs(), -i64::from(gone.count))?;
            }
        }
    }

    /// Changes the leaf that the file's block `at` is in, or would be in, and whatever above it has to be changed for that. `change` adds
    /// two entries at most.
    fn edit(&mut self, inode: &mut Inode, at: u32, change: &mut dyn FnMut(&mut Vec<Entry>)) -> Result<()> {
        let mut root = self.fs().load_node(self, inode, None, None)?;
        self.edit_node(inode, &mut root, at, change)?;
        if root.entries.len() > ROOT_ENTRIES {
            // All of it goes into a block below a new root.
            if root.depth >= MAX_DEPTH {
                return Err(Error::TooLarge);
            }
            let block = self.new_node(inode)?;
            let first = root.entries[0].at;
            self.store_node(inode, block, &root)?;
            root = Node { depth: root.depth + 1, entries: std_alloc::vec![Entry::node(first, block)] };
        }
        while root.depth > 0 {
            // An only child that fits the root becomes the root.
            match root.entries[..] {
                [] => root.depth = 0,
                [only] => {
                    let child = self.fs().load_node(self, inode, Some(only.start), Some(root.depth - 1))?;
                    if child.entries.len() > ROOT_ENTRIES {
                        break;
                    }
                    self.drop_node(inode, only.start)?;
                    root = child;
                }
                _ => break,
            }
        }
        store(inode.block_field_mut(), ROOT_ENTRIES, &root);
        Ok(())
    }

    /// Changes a node's entries, which may then be more than it has room for.
    fn edit_node(
        &mut self,
        inode: &mut Inode,
        node: &mut Node,
        at: u32,
        change: &mut dyn FnMut(&mut Vec<Entry>),
    ) -> Result<()> {
        if node.depth == 0 {
            change(&mut node.entries);
            node.entries.dedup_by(|next, entry| {
                let joins = entry.joins(*next);
                if joins {
                    entry.count += next.count;
                }
                joins
            });
            return Ok(());
        }
        let place = node.entries.partition_point(|entry| entry.at <= at).saturating_sub(1);
        let block = node.entries[place].start;
        let edited = self.edit_block(inode, block, node.depth - 1, at, change)?;
        match edited.first {
            Some(first) => node.entries[place].at = first,
            None => {
                node.entries.remove(place);
            }
        }
        if let Some(new) = edited.split {
            node.entries.insert(place + 1, new);
        }
        Ok(())
    }

    fn edit_block(
        &mut self,
        inode: &mut Inode,
        block: u64,
        depth: u16,
        at: u32,
        change: &mut dyn FnMut(&mut Vec<Entry>),
    ) -> Result<Edited> {
        let mut node = self.fs().load_node(self, inode, Some(block), Some(depth))?;
        let is_last = node.entries.last().is_some_and(|entry| entry.at < at);
        self.edit_node(inode, &mut node, at, change)?;
        let Some(first) = node.entries.first().map(|entry| entry.at) else {
            self.drop_node(inode, block)?;
            return Ok(Edited { first: None, split: None });
        };
        let max = self.fs().entries_of_block();
        let mut split = None;
        if node.entries.len() > max {
            // A file that grows at its end leaves full nodes behind.
            let middle = if is_last { max } else { node.entries.len() / 2 };
            let upper = Node { depth, entries: node.entries.split_off(middle) };
            let new = self.new_node(inode)?;
            self.store_node(inode, new, &upper)?;
            split = Some(Entry::node(upper.entries[0].at, new));
        }
        self.store_node(inode, block, &node)?;
        Ok(Edited { first: Some(first), split })
    }

    fn new_node(&mut self, inode: &mut Inode) -> Result<u64> {
        let goal = self.goal(inode, 0)?;
        let block = self.take_metadata_block(goal, Seal::Extents(self.fs().seed_of(inode)))?;
        inode.add_blocks(self.fs(), 1)?;
        Ok(block)
    }

    fn drop_node(&mut self, inode: &mut Inode, block: u64) -> Result<()> {
        self.give_back(Run { start: block, count: 1 }, Use::Metadata)?;
        inode.add_blocks(self.fs(), -1)
    }

    fn store_node(&mut self, inode: &Inode, block: u64, node: &Node) -> Result<()> {
        let max = self.fs().entries_of_block();
        self.modify(block, Seal::Extents(self.fs().seed_of(inode)), |bytes| store(bytes, max, node))
    }
}

/// Writes a node's header and entries, and zeros after them.
fn store(bytes: &mut [u8], max: usize, node: &Node) {
    let generation = le32(bytes, 8);
    bytes.fill(0);
    put16(bytes, 0, MAGIC);
    put16(bytes, 2, node.entries.len() as u16);
    put16(bytes, 4, max as u16);
    put16(bytes, 6, node.depth);
    put32(bytes, 8, generation);
    for (i, entry) in node.entries.iter().enumerate() {
        entry.write(bytes, i, node.depth);
    }
}
