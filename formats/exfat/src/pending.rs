//! [`Pending`]: what was changed and is not on the disk, and in which order it is written.
//!
//! exFAT has no journal. So that a power cut at any time leaves nothing worse than clusters that are in use and that nobody has, what was gathered is written in stages, each of which is on the disk before the next begins:
//!
//! 1. the bitmap, in which clusters that were given back are still in use; and new clusters of directories,
//! 2. the FAT, in which chains are as long as before at least,
//! 3. directories, without what has moved to where it is now: it is gone from where it was,
//! 4. directories as they are now,
//! 5. the bitmap and the FAT as they are now.
//!
//! Clusters that were given back are *pinned* until then: they are not used again, and nothing is put behind the end of a chain that was cut.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::transaction::{Changed, Changes, Stage};

/// Something to do to the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Io {
    /// Write a block.
    Write(u64, Box<[u8]>),
    /// What was written before must be on the disk before anything after this is.
    Flush,
}

/// So many blocks are gathered at most, and so many pieces of what was given back.
const MOST_BLOCKS: usize = 1024;
const MOST_PINNED: usize = 8192;
/// A transaction changes fewer.
const MOST_OF_ONE: usize = 256;

#[derive(Debug, Default)]
struct Gathered {
    blocks: BTreeMap<u64, Changed>,
    freed: BTreeMap<u32, u32>,
    cuts: BTreeSet<u32>,
}

impl Gathered {
    fn pinned_until(&self, cluster: u32) -> Option<u32> {
        let run = self.freed.range(..=cluster).next_back().map(|(first, count)| first + count);
        let cut = self.cuts.contains(&cluster).then_some(cluster + 1);
        run.filter(|end| *end > cluster).or(cut)
    }
}

/// What was changed and is not on the disk.
#[derive(Debug, Default)]
pub struct Pending {
    running: Gathered,
    committing: Gathered,
    is_committing: bool,
}

impl Pending {
    /// Whether one more transaction fits in. If not, a commit comes first.
    pub fn has_room(&self) -> bool {
        self.running.blocks.len() + MOST_OF_ONE <= MOST_BLOCKS && self.running.freed.len() < MOST_PINNED
    }

    /// Takes what a transaction has changed.
    pub fn add(&mut self, changes: Changes) {
        for (number, mut block) in changes.blocks {
            // What is new in it stays so until it is written.
            if self.running.blocks.get(&number).is_some_and(|before| before.stage == Stage::Fresh) {
                block.stage = Stage::Fresh;
            }
            self.running.blocks.insert(number, block);
        }
        self.running.freed.extend(changes.freed);
        self.running.cuts.extend(changes.cuts);
    }

    /// What is written first of a block, if that is not what is in it now.
    pub fn early(&self, block: u64) -> Option<Box<[u8]>> {
        self.running.blocks.get(&block).and_then(|block| block.early.clone())
    }

    /// If a cluster is pinned: up to which others are.
    pub fn pinned_until(&self, cluster: u32) -> Option<u32> {
        self.running.pinned_until(cluster).or_else(|| self.committing.pinned_until(cluster))
    }

    /// Begins to write what was gathered: what is to be done, in this order; then [`commit_done`](Self::commit_done). `None`: nothing was gathered, or the last commit is not done.
    pub fn commit(&mut self) -> Option<Vec<Io>> {
        if self.is_committing || self.running.blocks.is_empty() {
            return None;
        }
        self.is_committing = true;
        self.committing = core::mem::take(&mut self.running);
        let is_directory = |stage| matches!(stage, Stage::Directory | Stage::Fresh);
        // What files hold was written before, and is on the disk before directories say so.
        let mut all = alloc::vec![Io::Flush];
        for stages in [&[Stage::Bitmap, Stage::Fresh][..], &[Stage::Fat], &[Stage::Directory]] {
            let blocks = self.committing.blocks.iter().filter(|(_, block)| stages.contains(&block.stage));
            write(&mut all, blocks.map(|(number, block)| (*number, block.early.as_ref().unwrap_or(&block.bytes))));
        }
        for directories in [true, false] {
            let blocks = self.committing.blocks.iter().filter(|(_, block)| block.early.is_some());
            let blocks = blocks.filter(|(_, block)| is_directory(block.stage) == directories);
            write(&mut all, blocks.map(|(number, block)| (*number, &block.bytes)));
        }
        Some(all)
    }

    /// All that was to be done for a commit is.
    pub fn commit_done(&mut self) {
        self.committing = Gathered::default();
        self.is_committing = false;
    }
}

/// One stage, if there is something in it.
fn write<'a>(all: &mut Vec<Io>, blocks: impl Iterator<Item = (u64, &'a Box<[u8]>)>) {
    let before = all.len();
    all.extend(blocks.map(|(number, bytes)| Io::Write(number, bytes.clone())));
    if all.len() > before {
        all.push(Io::Flush);
    }
}
