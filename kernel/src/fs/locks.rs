//! Locks that programs put on files: record locks of fcntl(2), of processes or of open file descriptions, and flock(2).
//!
//! A lock names its owner weakly (the descriptor table of a process, or a description), so it ends with its owner by itself: dead owners'
//! locks count for nothing and are thrown out in time, and who waits for a lock watches its owner. Where all owners have ended, the locks are left to [`crate::memory::remains`] as a whole.

mod records;
mod whole;

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use refs::{SpinLock, WaitList, Waker, WeakRc};

use super::{FileTable, OpenFile};
use crate::memory::remains;
use crate::step::{Interruption, Step, Stop, TimeSlice};
use records::Records;
use whole::WholeLocks;

/// How far a chain of processes that wait for each other's locks is followed, as on Linux.
const LONGEST_CHAIN: usize = 10;

/// Who has a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockOwner {
    /// A process, by its descriptors (F_SETLK).
    Process(WeakRc<FileTable>),
    /// An open file description (F_OFD_SETLK, flock).
    Description(WeakRc<OpenFile>),
}

/// What a lock must know of its owner.
trait Owner: Copy + Ord + Send + Sync + 'static {
    /// Whether its locks count for nothing any more.
    fn is_gone(&self) -> bool;
}

impl Owner for LockOwner {
    fn is_gone(&self) -> bool {
        match self {
            LockOwner::Process(table) => table.is_gone(),
            LockOwner::Description(file) => file.is_gone(),
        }
    }
}

impl LockOwner {
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
pub struct RecordLock<O = LockOwner> {
    /// Who has it.
    pub owner: O,
    /// Its process, for F_GETLK; 0 for a description's.
    pub pid: u32,
    /// Shared or exclusive.
    pub kind: LockKind,
    /// The first byte.
    pub first: u64,
    /// The last byte; `u64::MAX`: however long the file becomes.
    pub last: u64,
}

/// The locks on one file.
#[derive(Default)]
pub struct FileLocks {
    records: SpinLock<Option<Box<Records<LockOwner>>>>,
    /// `None` until somebody locks: most files end without one, and that costs nothing.
    whole: SpinLock<Option<Box<WholeLocks>>>,
    any_records: AtomicBool,
    changed: WaitList,
}

/// Locks were left, and the task that takes them apart does not know.
static LEFT: AtomicBool = AtomicBool::new(false);

/// Locks were left. They are few, as a rule: the task is told with what is left next, whatever it is, or when the table of descriptors has ended of a process whose group is killed.
fn note_left() {
    LEFT.store(true, Ordering::Relaxed);
}

/// Such a table has ended, and locks may have been left.
#[inline(always)]
pub(super) fn announce_left() {
    if LEFT.load(Ordering::Relaxed) {
        LEFT.store(false, Ordering::Relaxed);
        remains::announce();
    }
}

/// What others have changed is carried out first, with pauses, by whoever comes next.
const PAUSE: Stop = Stop::Pause(Interruption::KillOnly);

impl FileLocks {
    /// The lowest record lock that rules `wanted` out.
    ///
    /// # Errors
    /// It takes long: [`Stop::Pause`].
    pub fn conflict(&self, wanted: &RecordLock, cx: &Cx) -> Step<Option<RecordLock>> {
        let mut records = self.records.lock(cx);
        let Some(records) = records.as_mut() else { return Ok(None) };
        if !records.settle(&mut TimeSlice::default()) {
            return Err(PAUSE);
        }
        Ok(records.conflict(wanted))
    }

    /// Sets a record lock in place of what its owner has there. `Some`: the lock that rules it out; and with a waker, it is woken when another
    /// attempt makes sense.
    ///
    /// # Errors
    /// ENOLCK: the file has too many locks. Or it takes long: [`Stop::Pause`].
    pub fn set(&self, wanted: RecordLock, waker: Option<Waker>, cx: &Cx) -> Step<Option<RecordLock>> {
        if let Some(waker) = waker {
            self.changed.register(waker, cx);
        }
        let mut time_slice = TimeSlice::default();
        let mut records = self.records.lock(cx);
        let there = records.get_or_insert_default();
        if there.are_many() {
            // It begins here.
            time_slice.is_over();
        }
        if !there.settle(&mut time_slice) {
            return Err(PAUSE);
        }
        if let Some(conflict) = there.conflict(&wanted) {
            drop(records);
            if let Some(waker) = waker {
                conflict.owner.watch(waker, cx);
            }
            return Ok(Some(conflict));
        }
        if !there.make_room(&mut time_slice)? {
            return Err(PAUSE);
        }
        let is_late = there.are_many() && time_slice.is_over();
        let had_some = there.replace(wanted.owner, wanted.first, wanted.last, Some(wanted), is_late);
        if !is_late {
            there.settle(&mut time_slice);
        }
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
        let had_some = there.replace(owner, first, last, None, false);
        there.settle_piece();
        if there.is_empty() {
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

    /// A process ends that had one of its descriptors of the file open: its record locks count for nothing already.
    #[inline]
    pub fn process_ends(&self, table: &WeakRc<FileTable>) {
        if self.any_records.load(Ordering::Relaxed) {
            self.end_owner_of_records(&LockOwner::Process(*table));
        }
    }

    #[cold]
    fn end_owner_of_records(&self, owner: &LockOwner) {
        let left = self.records.with(|records| {
            let left = records.take_if(|records| records.end_owner(owner));
            if left.is_some() {
                self.any_records.store(false, Ordering::Relaxed);
            }
            left
        });
        if left.is_some_and(|left| left.leave()) {
            note_left();
        }
    }

    /// A description of the file ends, which may share a lock on all of it.
    #[cold]
    pub fn description_ends(&self, shares: &AtomicBool) {
        let left = self.whole.with(|whole| whole.take_if(|whole| whole.end_owner(shares) && !whole.is_exclusive()));
        if left.is_some_and(|left| left.leave()) {
            note_left();
        }
    }

    /// Sets, changes or (with `None`) takes away a description's lock on the whole file, as flock(2) does. False if another one rules it out. `shares` is where the description keeps whether it has a
    /// lock that others may share.
    ///
    /// # Errors
    /// It takes long: [`Stop::Pause`].
    pub fn lock_whole(
        &self,
        (file, shares): (WeakRc<OpenFile>, &AtomicBool),
        kind: Option<LockKind>,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<bool> {
        if let Some(waker) = waker {
            self.changed.register(waker, cx);
        }
        let owner = LockOwner::Description(file);
        let mut time_slice = TimeSlice::default();
        let mut list = self.whole.lock(cx);
        let whole = list.get_or_insert_default();
        // A change of kind is not atomic: the old lock goes first.
        let mut changed = whole.remove(&owner, shares);
        let conflict = match kind {
            None => Ok(None),
            Some(kind) => whole.conflict(kind, &mut time_slice),
        };
        if let (Some(kind), Ok(None)) = (kind, conflict) {
            whole.insert(owner, kind, shares);
            changed = true;
        }
        drop(list);
        if changed {
            self.changed.wake_all();
        }
        let conflict = conflict?;
        if let (Some(conflict), Some(waker)) = (conflict, waker) {
            conflict.watch(waker, cx);
        }
        Ok(conflict.is_none())
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
