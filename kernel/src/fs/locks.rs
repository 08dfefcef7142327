//! Locks that programs put on files: record locks of fcntl(2), of processes or of open file descriptions, and flock(2).
//!
//! A lock names its owner weakly (the descriptor table of a process, or a description), so it ends with its owner by itself: dead owners'
//! locks count for nothing and are thrown out by whoever looks next, and who waits for a lock watches its owner.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use refs::{SpinLock, WaitList, Waker, WeakRc};

use super::{FileTable, OpenFile};
use crate::error::{Errno, Result};

/// Record locks that one file can have.
const MOST_LOCKS: usize = 8192;

/// Who has a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LockOwner {
    /// A process, by its descriptors (F_SETLK).
    Process(WeakRc<FileTable>),
    /// An open file description (F_OFD_SETLK, flock).
    Description(WeakRc<OpenFile>),
}

impl LockOwner {
    fn is_gone(&self) -> bool {
        match self {
            LockOwner::Process(table) => table.is_gone(),
            LockOwner::Description(file) => file.is_gone(),
        }
    }

    fn watch(&self, waker: Waker, cx: &Cx) {
        match self {
            LockOwner::Process(table) => table.watch(waker, cx),
            LockOwner::Description(file) => file.watch(waker, cx),
        }
    }
}

/// What others may hold beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Shared locks (a read lock).
    Shared,
    /// None (a write lock).
    Exclusive,
}

/// A lock on bytes of a file.
#[derive(Clone, Copy)]
pub struct RecordLock {
    /// Who has it.
    pub owner: LockOwner,
    /// Its process, for F_GETLK; 0 for a description's.
    pub pid: u32,
    /// Shared or exclusive.
    pub kind: LockKind,
    /// The first byte.
    pub first: u64,
    /// The last byte; `u64::MAX`: however long the file becomes.
    pub last: u64,
}

impl RecordLock {
    fn excludes(&self, other: &RecordLock) -> bool {
        self.owner != other.owner
            && self.first <= other.last
            && other.first <= self.last
            && (self.kind == LockKind::Exclusive || other.kind == LockKind::Exclusive)
            && !self.owner.is_gone()
    }
}

/// The locks on one file.
#[derive(Default)]
pub struct FileLocks {
    records: SpinLock<Vec<RecordLock>>,
    whole: SpinLock<Vec<(LockOwner, LockKind)>>,
    any_records: AtomicBool,
    changed: WaitList,
}

impl FileLocks {
    /// The first record lock that rules `wanted` out.
    pub fn conflict(&self, wanted: &RecordLock, cx: &Cx) -> Option<RecordLock> {
        self.records.lock(cx).iter().find(|lock| lock.excludes(wanted)).copied()
    }

    /// Sets a record lock in place of what its owner has there. `Some`: the lock that rules it out; and with a waker, it is woken when another
    /// attempt makes sense.
    ///
    /// # Errors
    /// ENOLCK: the file has too many locks.
    pub fn set(&self, wanted: RecordLock, waker: Option<Waker>, cx: &Cx) -> Result<Option<RecordLock>> {
        if let Some(waker) = waker {
            self.changed.register(waker, cx);
        }
        let mut records = self.records.lock(cx);
        if let Some(conflict) = records.iter().find(|lock| lock.excludes(&wanted)).copied() {
            drop(records);
            if let Some(waker) = waker {
                conflict.owner.watch(waker, cx);
            }
            return Ok(Some(conflict));
        }
        // Setting one lock adds two at the most: a lock that is cut in the middle becomes two.
        if records.len() >= MOST_LOCKS || records.try_reserve(3).is_err() {
            return Err(Errno::ENOLCK);
        }
        cut_out(&mut records, &wanted.owner, wanted.first, wanted.last);
        // Neighbours of the same kind become one lock.
        let mut merged = wanted;
        records.retain(|lock| {
            let touches = lock.owner == merged.owner
                && lock.kind == merged.kind
                && (lock.last.checked_add(1) == Some(merged.first) || merged.last.checked_add(1) == Some(lock.first));
            if touches {
                merged.first = merged.first.min(lock.first);
                merged.last = merged.last.max(lock.last);
            }
            !touches
        });
        records.push(merged);
        self.any_records.store(true, Ordering::Relaxed);
        drop(records);
        self.changed.wake_all();
        Ok(None)
    }

    /// Takes away what the owner has between two bytes.
    pub fn clear(&self, owner: LockOwner, first: u64, last: u64, cx: &Cx) {
        let mut records = self.records.lock(cx);
        cut_out(&mut records, &owner, first, last);
        self.any_records.store(!records.is_empty(), Ordering::Relaxed);
        drop(records);
        self.changed.wake_all();
    }

    /// A process closes one of its descriptors of the file: all of its record locks go (fcntl(2)).
    #[inline]
    pub fn closed_by(&self, table: &WeakRc<FileTable>, cx: &Cx) {
        if self.any_records.load(Ordering::Relaxed) {
            self.clear(LockOwner::Process(*table), 0, u64::MAX, cx);
        }
    }

    /// Sets, changes or (with `None`) takes away a description's lock on the whole file, as flock(2) does. False if another one rules it out.
    pub fn lock_whole(&self, file: WeakRc<OpenFile>, kind: Option<LockKind>, waker: Option<Waker>, cx: &Cx) -> bool {
        if let Some(waker) = waker {
            self.changed.register(waker, cx);
        }
        let owner = LockOwner::Description(file);
        let mut whole = self.whole.lock(cx);
        whole.retain(|(other, _)| !other.is_gone());
        // A change of kind is not atomic: the old lock goes first.
        let before = whole.len();
        whole.retain(|(other, _)| *other != owner);
        let mut changed = whole.len() != before;
        let mut granted = true;
        if let Some(kind) = kind {
            let conflict = whole
                .iter()
                .find(|(_, other)| *other == LockKind::Exclusive || kind == LockKind::Exclusive)
                .map(|(owner, _)| *owner);
            match conflict {
                Some(conflict) => {
                    granted = false;
                    if let Some(waker) = waker {
                        conflict.watch(waker, cx);
                    }
                }
                None => {
                    whole.push((owner, kind));
                    changed = true;
                }
            }
        }
        drop(whole);
        if changed {
            self.changed.wake_all();
        }
        granted
    }
}

/// Takes the bytes from `first` to `last` out of the owner's locks, and dead owners' locks altogether.
fn cut_out(records: &mut Vec<RecordLock>, owner: &LockOwner, first: u64, last: u64) {
    let mut rest = Vec::new();
    records.retain(|lock| {
        if lock.owner.is_gone() {
            return false;
        }
        if lock.owner != *owner || lock.first > last || lock.last < first {
            return true;
        }
        if lock.first < first {
            rest.push(RecordLock { last: first - 1, ..*lock });
        }
        if lock.last > last {
            rest.push(RecordLock { first: last + 1, ..*lock });
        }
        false
    });
    records.append(&mut rest);
}
