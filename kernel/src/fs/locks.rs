//! Locks that programs put on files: record locks of fcntl(2), of processes or of open file descriptions, and flock(2).
//!
//! A lock names its owner weakly (the descriptor table of a process, or a description), so it ends with its owner by itself: dead owners'
//! locks count for nothing and are thrown out in time, and who waits for a lock watches its owner.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, btree_map};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use refs::{SpinLock, WaitList, Waker, WeakRc};

use super::{FileTable, OpenFile};
use crate::error::{Errno, Result};
use crate::pieces::{Pieces, free_in_pieces};

/// Record locks that one file can have.
const MOST_LOCKS: usize = 16384;
/// So many locks are taken out one by one; where they are more, all of the file are looked at.
const MANY: usize = 64;
/// How far a chain of processes that wait for each other's locks is followed, as on Linux.
const LONGEST_CHAIN: usize = 10;

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
            && (self.kind == LockKind::Exclusive || other.kind == LockKind::Exclusive)
            && !self.owner.is_gone()
    }
}

/// Where a record lock stands: the class of its length, its first byte, and a number of its own (shared locks may begin together).
type Key = (u32, u64, u64);

/// The record locks of a file, ordered so that those that overlap given bytes are found without a look at the others.
///
/// A lock of class `n` is at most 2^n bytes long. So those of a class that overlap a range begin in it, or less than that before it.
#[derive(Default)]
struct Records {
    locks: BTreeMap<Key, RecordLock>,
    /// How many locks of each class there are.
    classes: BTreeMap<u32, usize>,
    made: u64,
    /// When there are so many, those of dead owners are thrown out.
    purge_at: usize,
}

impl Records {
    fn class(lock: &RecordLock) -> u32 {
        u64::BITS - (lock.last - lock.first).leading_zeros()
    }

    /// All locks that have a byte between the two, of each class in ascending order.
    fn overlapping(&self, first: u64, last: u64) -> impl Iterator<Item = (&Key, &RecordLock)> {
        self.classes.keys().flat_map(move |&class| {
            let reach = 1_u64.checked_shl(class).map_or(u64::MAX, |len| len - 1);
            let start = (class, first.saturating_sub(reach), 0);
            self.locks.range(start..=(class, last, u64::MAX)).filter(move |(_, lock)| lock.last >= first)
        })
    }

    /// The first lock that rules `wanted` out.
    fn conflict(&self, wanted: &RecordLock) -> Option<RecordLock> {
        let locks = self.overlapping(wanted.first, wanted.last).map(|(_, lock)| lock);
        locks.filter(|lock| lock.excludes(wanted)).min_by_key(|lock| lock.first).copied()
    }

    fn insert(&mut self, lock: RecordLock) {
        let class = Self::class(&lock);
        self.made += 1;
        self.locks.insert((class, lock.first, self.made), lock);
        *self.classes.entry(class).or_default() += 1;
    }

    fn remove(&mut self, keys: &[Key]) {
        if keys.len() == self.locks.len() {
            self.locks.clear();
            self.classes.clear();
            return;
        }
        for key in keys {
            self.locks.remove(key);
            if let Some(count) = self.classes.get_mut(&key.0) {
                *count -= 1;
                if *count == 0 {
                    self.classes.remove(&key.0);
                }
            }
        }
    }

    /// Takes the bytes from `first` to `last` out of the owner's locks; whether it had any there.
    fn cut_out(&mut self, owner: &LockOwner, first: u64, last: u64) -> bool {
        if (first, last) == (0, u64::MAX) {
            return self.remove_where(|lock| lock.owner == *owner);
        }
        let own = self.overlapping(first, last).filter(|(_, lock)| lock.owner == *owner);
        let (keys, locks): (Vec<Key>, Vec<RecordLock>) = own.take(MANY).unzip();
        // Only the locks at the two edges leave anything.
        let leaves = |lock: &RecordLock| lock.first < first || lock.last > last;
        let mut edges = Vec::new();
        if keys.len() < MANY {
            self.remove(&keys);
            edges.extend(locks.into_iter().filter(leaves));
        } else {
            // To look at each is quicker than to search for each.
            self.remove_where(|lock| {
                let goes = lock.owner == *owner && lock.first <= last && lock.last >= first;
                if goes && leaves(lock) {
                    edges.push(*lock);
                }
                goes
            });
        }
        let had_some = !keys.is_empty();
        for lock in &edges {
            if lock.first < first {
                self.insert(RecordLock { last: first - 1, ..*lock });
            }
            if lock.last > last {
                self.insert(RecordLock { first: last + 1, ..*lock });
            }
        }
        had_some
    }

    /// Takes out all locks that `goes` is true of; whether there were any.
    fn remove_where(&mut self, mut goes: impl FnMut(&RecordLock) -> bool) -> bool {
        let Records { locks, classes, .. } = self;
        let before = locks.len();
        locks.retain(|key, lock| {
            let stays = !goes(lock);
            if !stays && let Some(count) = classes.get_mut(&key.0) {
                *count -= 1;
            }
            stays
        });
        classes.retain(|_, count| *count > 0);
        locks.len() != before
    }

    /// Enters a lock where its owner has no other; neighbours of the same kind become one with it.
    fn join(&mut self, wanted: RecordLock) {
        let (before, behind) = (wanted.first.saturating_sub(1), wanted.last.saturating_add(1));
        let same = |lock: &RecordLock| lock.owner == wanted.owner && lock.kind == wanted.kind;
        let neighbours = self.overlapping(before, behind).filter(|(_, lock)| same(lock));
        let (keys, locks): (Vec<Key>, Vec<RecordLock>) = neighbours.unzip();
        self.remove(&keys);
        let first = locks.iter().map(|lock| lock.first).fold(wanted.first, u64::min);
        let last = locks.iter().map(|lock| lock.last).fold(wanted.last, u64::max);
        self.insert(RecordLock { first, last, ..wanted });
    }

    /// Makes room for what setting one lock can add: a lock that is cut in the middle becomes two.
    ///
    /// # Errors
    /// ENOLCK: the living have too many locks; or memory is short.
    fn make_room(&mut self) -> Result<()> {
        if self.locks.len() >= self.purge_at.max(64) {
            self.remove_where(|lock| lock.owner.is_gone());
            self.purge_at = (self.locks.len() * 2).min(MOST_LOCKS);
        }
        if self.locks.len() >= MOST_LOCKS || crate::memory::admit().is_err() {
            return Err(Errno::ENOLCK);
        }
        Ok(())
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        if self.locks.len() > MANY {
            free_in_pieces(core::mem::take(&mut self.locks).into_iter());
        }
    }
}

impl Pieces for btree_map::IntoIter<Key, RecordLock> {
    fn free_piece(&mut self) -> bool {
        (0..MANY).all(|_| self.next().is_some())
    }
}

/// The locks on one file.
#[derive(Default)]
pub struct FileLocks {
    records: SpinLock<Option<Box<Records>>>,
    whole: SpinLock<Vec<(LockOwner, LockKind)>>,
    any_records: AtomicBool,
    changed: WaitList,
}

impl FileLocks {
    /// The lowest record lock that rules `wanted` out.
    pub fn conflict(&self, wanted: &RecordLock, cx: &Cx) -> Option<RecordLock> {
        self.records.lock(cx).as_ref().and_then(|records| records.conflict(wanted))
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
        let there = records.get_or_insert_default();
        if let Some(conflict) = there.conflict(&wanted) {
            drop(records);
            if let Some(waker) = waker {
                conflict.owner.watch(waker, cx);
            }
            return Ok(Some(conflict));
        }
        there.make_room()?;
        let had_some = there.cut_out(&wanted.owner, wanted.first, wanted.last);
        there.join(wanted);
        self.any_records.store(true, Ordering::Relaxed);
        drop(records);
        if had_some {
            // What was a write lock may be a read lock now.
            self.changed.wake_all();
        }
        Ok(None)
    }

    /// Takes away what the owner has between two bytes.
    pub fn clear(&self, owner: LockOwner, first: u64, last: u64, cx: &Cx) {
        let mut records = self.records.lock(cx);
        let Some(there) = records.as_mut() else { return };
        let had_some = there.cut_out(&owner, first, last);
        if there.locks.is_empty() {
            *records = None;
            self.any_records.store(false, Ordering::Relaxed);
        }
        drop(records);
        if had_some {
            self.changed.wake_all();
        }
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

/// Whether `waiter` would wait for itself if it waited for `holder`: through processes of which each waits for a record lock of the next.
pub fn is_deadlock(waiter: LockOwner, holder: LockOwner, cx: &Cx) -> bool {
    let mut next = holder;
    for _ in 0..LONGEST_CHAIN {
        if next == waiter {
            return true;
        }
        // A description waits for nobody: several processes may have it.
        let LockOwner::Process(table) = next else { return false };
        let Ok(table) = table.upgrade(cx) else { return false };
        let Some(following) = table.waits_for.lock(cx).first().copied() else { return false };
        next = following;
    }
    false
}
