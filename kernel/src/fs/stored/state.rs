//! [`State`]: what was changed in a volume and is not on the disk; and [`Notes`]: what its task is to do.
//!
//! A block of metadata that was changed is in `changed` from the change until a checkpoint has put it into the disk's page cache (where there is no log: until a commit has). Until then only the journal may write it.

use alloc::collections::{BTreeMap, BTreeSet, LinkedList};
use alloc::sync::Arc;
use core::sync::atomic::AtomicU64;

use refs::{SpinLock, StrongRc, WaitList, WeakRc};

use super::journal::{Changes, Journal};
use crate::block::Cache;
use crate::error::{Errno, Result};
use crate::fs::Inode;

/// So many bytes of changed blocks are kept at most before a checkpoint.
const MOST_CHANGED: usize = 8 << 20;

/// What was changed.
pub(super) struct State {
    /// `None`: nothing is to be changed.
    pub journal: Option<Journal>,
    /// Blocks that are newer than in the disk's page cache, each with the number of the commit that it was changed for last.
    changed: BTreeMap<u64, (Arc<[u8]>, u64)>,
    block_bytes: u32,
    /// The number of the commit that is being gathered.
    pub running: u64,
    /// The number of the last one that is on the disk.
    pub committed: u64,
    /// When its first change was made, in nanoseconds since boot.
    pub since: Option<u64>,
    /// Files with new blocks: what they are to hold is on the disk before the commit is. By inode.
    pub data: BTreeMap<u64, WeakRc<Cache>>,
    /// How many blocks were free, of those that everybody may have, after the last change; `None`: not known yet.
    pub free: Option<u64>,
    /// Nothing is changed until the commit has begun.
    pub is_closed: bool,
    /// Why nothing is changed any more.
    pub stopped: Option<Stopped>,
}

/// Why nothing of a volume is changed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// It is mounted to be read, until that is changed: [`Kept::set_read_only`](crate::fs::Kept::set_read_only).
    ReadOnly,
    /// The disk could not be written. What is there can be read.
    Failed,
    /// Somebody has shut it down. Nothing can be read either, but for what is in memory.
    ShutDown,
}

impl Stopped {
    /// What who wants to change something is told.
    pub fn error(self) -> Errno {
        match self {
            Self::ReadOnly | Self::Failed => Errno::EROFS,
            Self::ShutDown => Errno::EIO,
        }
    }
}

impl State {
    pub fn new(journal: Option<Journal>, block_bytes: u32) -> Self {
        State {
            journal,
            changed: BTreeMap::new(),
            block_bytes,
            running: 1,
            committed: 0,
            since: None,
            data: BTreeMap::new(),
            free: None,
            is_closed: false,
            stopped: None,
        }
    }

    /// These bytes, which are in one block, if it was changed.
    pub fn changed(&self, offset: u64, len: usize) -> Option<&[u8]> {
        if self.changed.is_empty() {
            return None;
        }
        let size = u64::from(self.block_bytes);
        let within = (offset % size) as usize;
        let (bytes, _) = self.changed.get(&(offset / size))?;
        bytes.get(within..within.checked_add(len)?)
    }

    /// Puts what was changed of a part of the volume over what the disk has of it.
    pub fn put_over(&self, offset: u64, to: &mut [u8]) {
        let size = u64::from(self.block_bytes);
        let end = offset + to.len() as u64;
        for (block, (bytes, _)) in self.changed.range(offset / size..end.div_ceil(size)) {
            let start = block * size;
            let (from, until) = (offset.max(start), end.min(start + size));
            let part = &bytes[(from - start) as usize..(until - start) as usize];
            to[(from - offset) as usize..(until - offset) as usize].copy_from_slice(part);
        }
    }

    /// Takes what was changed. Whether it is the first of its commit.
    pub fn apply(&mut self, changes: Changes) -> bool {
        if let Changes::Logged(changes) = &changes {
            for run in &changes.freed {
                while let Some((&block, _)) = self.changed.range(run.start..run.end()).next() {
                    self.changed.remove(&block);
                }
            }
        }
        for (block, bytes) in changes.blocks() {
            self.changed.insert(block, (bytes, self.running));
        }
        if let Some(journal) = &mut self.journal {
            journal.add(changes);
        }
        let is_first = self.since.is_none();
        self.since.get_or_insert(frame::time::now());
        is_first
    }

    /// The blocks of a commit, and of those before, are in the disk's page cache.
    pub fn forget_written(&mut self, commit: u64) {
        self.changed.retain(|_, (_, number)| *number > commit);
    }

    /// Whether there is so much that a checkpoint is to be made.
    pub fn wants_checkpoint(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::wants_checkpoint)
            || self.changed.len() * self.block_bytes as usize > MOST_CHANGED
    }

    /// Checks that what was changed is kept, or nothing was.
    ///
    /// # Errors
    /// EIO.
    pub fn check_kept(&self) -> Result<()> {
        match self.stopped {
            None | Some(Stopped::ReadOnly) => Ok(()),
            Some(Stopped::Failed | Stopped::ShutDown) => Err(Errno::EIO),
        }
    }

    /// The commit that has everything that was changed so far; `None` if that is on the disk.
    pub fn last_commit(&self) -> Option<u64> {
        let last = if self.since.is_some() { self.running } else { self.running - 1 };
        (last > self.committed).then_some(last)
    }
}

/// An inode that has no name and is used by nobody: it is to be deleted.
pub(super) struct Doomed {
    pub number: u64,
    /// Its content: what is being written must come to its end first.
    pub content: Option<StrongRc<Cache>>,
}

/// Where a volume, its files and its task leave word for each other. The files have it as well, for their end.
#[derive(Default)]
pub(super) struct Desk {
    pub notes: SpinLock<Notes>,
    /// Where the task waits.
    pub work: WaitList,
    /// Where those wait who wait for the task.
    pub progress: WaitList,
    /// How many free blocks are promised to files. It gets more with the volume's state locked only.
    pub promised: AtomicU64,
}

impl Desk {
    /// Something of an inode is to be written.
    pub fn note_dirty(&self, number: u64, is_urgent: bool) {
        if self.notes.with(|notes| notes.note_dirty(number, is_urgent)) {
            self.work.wake_all();
        }
    }

    /// All that is promised is to be allocated.
    pub fn want_allocation(&self) {
        self.notes.with(|notes| notes.is_urgent = true);
        self.work.wake_all();
    }

    /// A commit is waited for.
    pub fn want_commit(&self, number: u64) {
        self.notes.with(|notes| notes.commit = notes.commit.max(number));
        self.work.wake_all();
    }

    /// All that was changed so far is to be written: the number to be waited for.
    pub fn want_sync(&self) -> u64 {
        let number = self.notes.with(|notes| {
            notes.syncs += 1;
            notes.syncs
        });
        self.work.wake_all();
        number
    }

    /// The volume is to be written from now on, or not any more.
    pub fn want_read_only(&self, read_only: bool) {
        self.notes.with(|notes| notes.read_only = Some(read_only));
        self.work.wake_all();
    }

    /// An inode that has no name is used by nobody any more.
    pub fn doom(&self, number: u64, content: Option<StrongRc<Cache>>) {
        self.notes.with(|notes| notes.doomed.push_back(Doomed { number, content }));
        self.work.wake_all();
    }
}

/// What a volume's task is to do. Noted by whoever, also where an inode ends.
#[derive(Default)]
pub(super) struct Notes {
    /// Inodes of which metadata or pages are to be written.
    pub dirty: BTreeSet<u64>,
    /// Since when there are any, in nanoseconds since boot.
    pub since: Option<u64>,
    /// There is too much of them.
    pub is_urgent: bool,
    pub doomed: LinkedList<Doomed>,
    /// Inodes that have no name and are used.
    pub nameless: BTreeMap<u64, WeakRc<Inode>>,
    /// This commit is waited for.
    pub commit: u64,
    /// So many have asked for all to be written, and for so many of them it was.
    pub syncs: u64,
    pub synced: u64,
    /// It is to be written from now on, or not any more (true).
    pub read_only: Option<bool>,
    /// The last mount has ended.
    pub is_ending: bool,
}

impl Notes {
    /// Something of an inode is to be written. Whether the task has to know at once.
    pub fn note_dirty(&mut self, number: u64, is_urgent: bool) -> bool {
        let is_first = self.since.is_none();
        self.dirty.insert(number);
        self.since.get_or_insert(frame::time::now());
        self.is_urgent |= is_urgent;
        is_first || is_urgent
    }
}
