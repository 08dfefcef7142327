//! [`Tables`]: the second-level page tables of a device (specification, 3.7 and 9.8).

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::mm::{FrameNumber, PAGE_SIZE, USegment};

const ENTRIES: usize = 512;
const INDEX_BITS: u32 = 9;
const ENTRY_BYTES: usize = 8;
/// The device may read, and write.
const RIGHTS: u64 = 3;
/// Bits that the hardware ignores: how often the frame is lent.
const COUNT_SHIFT: u32 = 52;
const COUNT_MAX: u64 = (1 << 10) - 1;

/// Which frames a device may reach, and how often each was lent to it. Tables are never freed; there are as many as the memory needs that was ever lent.
pub(crate) struct Tables {
    root: Table,
    levels: u32,
    /// Whether units see what is in the processor's cache.
    is_coherent: bool,
}

/// A table, and those that its entries lead to.
struct Table {
    memory: USegment,
    /// None on the lowest level.
    below: Vec<Option<Box<Table>>>,
}

impl Table {
    fn new(level: u32) -> Option<Self> {
        let mut below = Vec::new();
        if level > 0 {
            below.try_reserve_exact(ENTRIES).ok()?;
            below.resize_with(ENTRIES, || None);
        }
        Some(Table { memory: USegment::zeroed(0)?, below })
    }

    fn set(&self, index: usize, entry: u64, is_coherent: bool) {
        self.memory.store_word(index * ENTRY_BYTES, entry);
        if !is_coherent {
            self.memory.write_back(index * ENTRY_BYTES);
        }
    }

    fn entry(&self, index: usize) -> u64 {
        self.memory.load(index * ENTRY_BYTES)
    }

    /// The table that an entry leads to; made if there is none.
    fn child(&mut self, index: usize, level: u32, is_coherent: bool) -> Option<&mut Table> {
        if self.below.get(index)?.is_none() {
            let child = Table::new(level - 1)?;
            if !is_coherent {
                child.memory.write_all_back();
            }
            self.set(index, address(child.memory.first()) | RIGHTS, is_coherent);
            *self.below.get_mut(index)? = Some(Box::new(child));
        }
        self.below.get_mut(index)?.as_deref_mut()
    }
}

fn address(frame: FrameNumber) -> u64 {
    u64::from(frame.0) * PAGE_SIZE as u64
}

fn index(frame: FrameNumber, level: u32) -> usize {
    (u64::from(frame.0) >> (INDEX_BITS * level)) as usize % ENTRIES
}

impl Tables {
    /// Tables of so many levels that let a device reach nothing; `None` if there is no memory.
    pub(crate) fn new(levels: u32, is_coherent: bool) -> Option<Self> {
        let root = Table::new(levels - 1)?;
        if !is_coherent {
            root.memory.write_all_back();
        }
        Some(Tables { root, levels, is_coherent })
    }

    /// Where they begin.
    pub(crate) fn root(&self) -> u64 {
        address(self.root.memory.first())
    }

    /// Lets the device reach a frame, once more if it may already. False if there is no memory for a table, the frame is beyond what the tables lead to, or it was lent too often.
    pub(crate) fn map(&mut self, frame: FrameNumber) -> bool {
        if u64::from(frame.0) >> (INDEX_BITS * self.levels) != 0 {
            return false;
        }
        let mut table = &mut self.root;
        for level in (1..self.levels).rev() {
            let Some(child) = table.child(index(frame, level), level, self.is_coherent) else { return false };
            table = child;
        }
        let count = table.entry(index(frame, 0)) >> COUNT_SHIFT;
        if count == COUNT_MAX {
            return false;
        }
        table.set(index(frame, 0), (count + 1) << COUNT_SHIFT | address(frame) | RIGHTS, self.is_coherent);
        true
    }

    /// Takes back what one [`map`](Self::map) did; whether the device may not reach the frame any more, as from now.
    pub(crate) fn unmap(&mut self, frame: FrameNumber) -> bool {
        let mut table = &self.root;
        for level in (1..self.levels).rev() {
            let Some(Some(child)) = table.below.get(index(frame, level)) else { return false };
            table = child;
        }
        let count = table.entry(index(frame, 0)) >> COUNT_SHIFT;
        let left = count.saturating_sub(1);
        let entry = if left == 0 { 0 } else { left << COUNT_SHIFT | address(frame) | RIGHTS };
        table.set(index(frame, 0), entry, self.is_coherent);
        count == 1
    }
}
