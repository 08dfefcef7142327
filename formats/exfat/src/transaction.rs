//! [`Transaction`]: changes that happen together or not at all; and how clusters are given out and taken back.
//!
//! A transaction is made, used by one function, and finished. Once a function has failed on it, it is only good for being dropped: nothing has happened.
//!
//! *What is written when* decides what a power cut leaves. A block can be written twice: [`When::Late`] is what must not be on the disk before everything that is early is, such as the end of a cluster's use, since a file may still lead there. [`Pending`](crate::Pending) says in which order blocks are written.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::boot::FIRST_CLUSTER;
use crate::usage::GROUP;
use crate::{Absent, Error, FileSystem, Source, Store, Time, Usage, le32, zeros};

/// What a block is, by which it is written in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A part of the bitmap.
    Bitmap,
    /// A part of a directory's cluster that no directory has on the disk.
    Fresh,
    /// A part of the FAT.
    Fat,
    /// A part of a directory.
    Directory,
}

/// When something is to be on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Early,
    /// After everything that is early.
    Late,
}

/// A block that was changed.
#[derive(Clone, Debug)]
pub struct Changed {
    /// What is in it now.
    pub bytes: Box<[u8]>,
    /// What is written first, if that is something else.
    pub(crate) early: Option<Box<[u8]>>,
    pub(crate) stage: Stage,
}

/// What a transaction has changed.
#[derive(Debug, Default)]
pub struct Changes {
    /// Numbers of blocks, and what is in them now.
    pub blocks: Vec<(u64, Changed)>,
    /// Clusters that were given back: the first ones, and how many.
    pub(crate) freed: Vec<(u32, u32)>,
    /// Clusters that come to be the last ones of their chains.
    pub(crate) cuts: Vec<u32>,
    /// Of which groups how many more are free.
    free: BTreeMap<u32, i32>,
    next: Option<u32>,
}

impl Usage {
    /// What was changed is true.
    pub fn apply(&mut self, changes: &Changes) {
        for (group, free) in &changes.free {
            self.change(*group, *free);
        }
        self.next = changes.next.unwrap_or(self.next);
    }
}

/// Changes on top of what there is. It reads as if they were made.
#[derive(Debug)]
pub struct Transaction<'a, S> {
    pub(crate) fs: &'a FileSystem,
    below: &'a S,
    usage: &'a Usage,
    pub(crate) now: Time,
    blocks: BTreeMap<u64, Changed>,
    pub(crate) changes: Changes,
}

impl<S: Store> Source for Transaction<'_, S> {
    fn copy(&self, address: u64, to: &mut [u8]) -> Result<(), Absent> {
        let bits = self.fs.block_bits;
        let end = address + to.len() as u64;
        let within = |block: u64| (address.saturating_sub(block << bits)) as usize;
        if let Some(block) = self.blocks.get(&(address >> bits))
            && let Some(bytes) = block.bytes[within(address >> bits)..].get(..to.len())
        {
            to.copy_from_slice(bytes);
            return Ok(());
        }
        self.below.copy(address, to)?;
        for (number, block) in self.blocks.range(address >> bits..end.div_ceil(1 << bits)) {
            let start = number << bits;
            let (from, until) = (address.max(start), end.min(start + (1 << bits)));
            let part = &block.bytes[(from - start) as usize..(until - start) as usize];
            to[(from - address) as usize..(until - address) as usize].copy_from_slice(part);
        }
        Ok(())
    }

    fn pause(&self) -> Result<(), Absent> {
        self.below.pause()
    }
}

impl<'a, S: Store> Transaction<'a, S> {
    /// Starts one. `now` goes into the times of what is made.
    pub fn new(fs: &'a FileSystem, below: &'a S, usage: &'a Usage, now: Time) -> Self {
        Transaction { fs, below, usage, now, blocks: BTreeMap::new(), changes: Changes::default() }
    }

    /// The file system.
    pub fn fs(&self) -> &'a FileSystem {
        self.fs
    }

    /// What it has changed.
    pub fn finish(mut self) -> Changes {
        self.changes.blocks.extend(self.blocks);
        self.changes
    }

    /// Blocks that it has changed.
    pub(crate) fn changed_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Says in the boot sector that the file system is in use, or, with how full it is, that it is not any more.
    ///
    /// # Errors
    /// `NoMemory`, `Absent`.
    pub fn mark(&mut self, is_in_use: bool) -> Result<(), Error> {
        let used = self.fs.clusters.saturating_sub(self.free_clusters());
        let (number, bytes) = self.fs.mark(&*self, (!is_in_use).then_some(used))?;
        self.blocks.insert(number, Changed { bytes, early: None, stage: Stage::Fat });
        Ok(())
    }

    fn block(&mut self, number: u64, stage: Stage) -> Result<&mut Changed, Error> {
        if !self.blocks.contains_key(&number) {
            let mut bytes = zeros(1 << self.fs.block_bits)?;
            self.below.copy(number << self.fs.block_bits, &mut bytes)?;
            let early = self.below.early(number);
            self.blocks.insert(number, Changed { bytes: bytes.into(), early, stage });
        }
        self.blocks.get_mut(&number).ok_or(Error::NoMemory)
    }

    /// Puts bytes at a place, all in one block.
    pub(crate) fn put(&mut self, address: u64, bytes: &[u8], stage: Stage, when: When) -> Result<(), Error> {
        let bits = self.fs.block_bits;
        let within = (address & ((1 << bits) - 1)) as usize;
        let range = within..within + bytes.len();
        let block = self.block(address >> bits, stage)?;
        match (when, &mut block.early) {
            // What is there late only cannot be something else early.
            (When::Early, Some(early)) if early[range.clone()] == block.bytes[range.clone()] => {
                early[range.clone()].copy_from_slice(bytes);
            }
            (When::Late, early @ None) => *early = Some(block.bytes.clone()),
            (When::Early, _) | (When::Late, Some(_)) => {}
        }
        block.bytes[range].copy_from_slice(bytes);
        Ok(())
    }

    /// Whether what is there now is on the disk only after everything that is early.
    pub(crate) fn is_late(&mut self, address: u64, len: usize, stage: Stage) -> Result<bool, Error> {
        let bits = self.fs.block_bits;
        let within = (address & ((1 << bits) - 1)) as usize;
        let block = self.block(address >> bits, stage)?;
        Ok(block.early.as_ref().is_some_and(|early| early[within..within + len] != block.bytes[within..within + len]))
    }

    /// Clears a cluster that a directory gets.
    pub(crate) fn clear(&mut self, cluster: u32) -> Result<(), Error> {
        let first = self.fs.address(cluster) >> self.fs.block_bits;
        let count = 1 << (self.fs.cluster_bits - self.fs.block_bits);
        for number in first..first + count {
            let bytes = zeros(1 << self.fs.block_bits)?.into();
            self.blocks.insert(number, Changed { bytes, early: None, stage: Stage::Fresh });
        }
        Ok(())
    }

    /// Says what comes behind a cluster in its chain.
    pub(crate) fn link(&mut self, cluster: u32, next: u32, when: When) -> Result<(), Error> {
        self.put(self.fs.fat + u64::from(cluster) * 4, &next.to_le_bytes(), Stage::Fat, when)
    }

    /// Whether a cluster's place in its chain, or it itself, may not be used again yet.
    pub(crate) fn check_pinned(&self, cluster: u32) -> Result<(), Error> {
        match self.below.pinned_until(cluster) {
            Some(_) => Err(Error::CommitFirst),
            None => Ok(()),
        }
    }

    /// So many clusters from one on are in use from now on, or not any more.
    fn mark_clusters(&mut self, first: u32, count: u32, is_used: bool) -> Result<(), Error> {
        let mut cluster = first;
        while cluster < first + count {
            let (address, bit) = self.fs.bit(cluster);
            let now = (8 - bit.trailing_zeros()).min(first + count - cluster);
            let mask = (((1_u16 << now) - 1) << bit.trailing_zeros()) as u8;
            let bits = self.fs.block_bits;
            let within = (address & ((1 << bits) - 1)) as usize;
            let block = self.block(address >> bits, Stage::Bitmap)?;
            let before = block.bytes[within];
            if is_used {
                if before & mask != 0 {
                    return Err(Error::Corrupt("a cluster that was free is in use"));
                }
                block.bytes[within] |= mask;
                if let Some(early) = &mut block.early {
                    early[within] |= mask;
                }
            } else {
                if before & mask != mask {
                    return Err(Error::Corrupt("a cluster that is in use is free"));
                }
                if block.early.is_none() {
                    block.early = Some(block.bytes.clone());
                }
                block.bytes[within] &= !mask;
            }
            let change = if is_used { -(now as i32) } else { now as i32 };
            *self.changes.free.entry((cluster - FIRST_CLUSTER) / GROUP).or_default() += change;
            cluster += now;
        }
        Ok(())
    }

    /// Gives clusters back, one after another, which were checked.
    pub(crate) fn free(&mut self, first: u32, count: u32) -> Result<(), Error> {
        self.mark_clusters(first, count, false)?;
        self.changes.freed.push((first, count));
        Ok(())
    }

    /// Takes up to `want` free clusters that stand one after another, if possible behind `near`: the first, and how many.
    pub(crate) fn take(&mut self, near: Option<u32>, want: u32) -> Result<(u32, u32), Error> {
        let found = match near {
            Some(near) => self.run_at(near + 1, want)?,
            None => None,
        };
        let (first, count) = match found {
            Some(found) => found,
            None => self.search(want)?,
        };
        self.mark_clusters(first, count, true)?;
        self.changes.next = Some(first + count);
        Ok((first, count))
    }

    /// Whether a cluster can be taken.
    pub(crate) fn is_free(&self, cluster: u32) -> Result<bool, Error> {
        Ok(self.run_at(cluster, 1)?.is_some())
    }

    /// Clusters that are free now.
    pub(crate) fn free_clusters(&self) -> u32 {
        self.usage.free().saturating_add_signed(self.changes.free.values().sum())
    }

    fn run_at(&self, cluster: u32, want: u32) -> Result<Option<(u32, u32)>, Error> {
        if self.fs.check_cluster(cluster).is_err() {
            return Ok(None);
        }
        let end = (self.fs.clusters + FIRST_CLUSTER).min(cluster.saturating_add(want));
        let found = self.first_free(cluster, end, want, &mut false)?;
        Ok(found.filter(|(first, _)| *first == cluster))
    }

    /// Looks for free clusters.
    fn search(&self, want: u32) -> Result<(u32, u32), Error> {
        const MOST_GROUPS: u32 = 32;
        let groups = self.usage.groups();
        let all = FIRST_CLUSTER..FIRST_CLUSTER + self.fs.clusters;
        let next = self.changes.next.unwrap_or(self.usage.next);
        let next = if all.contains(&next) { next } else { FIRST_CLUSTER };
        let start = (next - FIRST_CLUSTER) / GROUP;
        let (mut looked_at, mut has_pinned) = (0, false);
        // The group in which it begins is looked at twice: its end, and at last its beginning.
        for turn in 0..=groups {
            let group = (start + turn) % groups.max(1);
            let free =
                i64::from(self.usage.free_in(group)) + i64::from(self.changes.free.get(&group).copied().unwrap_or(0));
            if free <= 0 {
                continue;
            }
            let first = FIRST_CLUSTER + group * GROUP;
            let end = (first + GROUP).min(all.end);
            let (from, until) = match turn {
                0 => (next, end),
                _ if turn == groups => (first, next),
                _ => (first, end),
            };
            if let Some(found) = self.first_free(from, until, want, &mut has_pinned)? {
                return Ok(found);
            }
            looked_at += 1;
            if looked_at > MOST_GROUPS {
                break;
            }
        }
        Err(if has_pinned { Error::CommitFirst } else { Error::NoSpace })
    }

    /// The first free clusters from one on and before another.
    fn first_free(&self, from: u32, until: u32, want: u32, has_pinned: &mut bool) -> Result<Option<(u32, u32)>, Error> {
        let mut part = [0; 512];
        // Of which byte of the device on that is.
        let mut at = None;
        let mut cluster = from;
        let mut found: Option<(u32, u32)> = None;
        while cluster < until {
            let (address, bit) = self.fs.bit(cluster);
            let start = address & !(part.len() as u64 - 1);
            if at != Some(start) {
                self.copy(start, &mut part)?;
                at = Some(start);
            }
            let byte = part[(address - start) as usize];
            if byte == 0xff && found.is_none() {
                cluster += 8 - bit.trailing_zeros();
                continue;
            }
            let pinned = if byte & bit == 0 { self.below.pinned_until(cluster) } else { None };
            match &mut found {
                Some(found) if byte & bit != 0 || pinned.is_some() || found.1 >= want => return Ok(Some(*found)),
                Some(found) => found.1 += 1,
                None if pinned.is_some() => {
                    *has_pinned = true;
                    cluster = pinned.unwrap_or(cluster).max(cluster + 1);
                    continue;
                }
                None if byte & bit == 0 => found = Some((cluster, 1)),
                None => {}
            }
            cluster += 1;
        }
        Ok(found)
    }

    /// What comes behind a cluster in its chain, if it is there and a cluster.
    pub(crate) fn linked(&self, cluster: u32) -> Result<u32, Error> {
        let mut bytes = [0; 4];
        self.copy(self.fs.fat + u64::from(cluster) * 4, &mut bytes)?;
        Ok(le32(&bytes, 0))
    }
}
