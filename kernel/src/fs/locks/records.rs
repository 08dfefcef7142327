//! Record locks: fcntl(2).
//!
//! A change that takes many locks out is carried out in pieces. It counts from the moment at which it is made: whoever looks at the locks next
//! carries out first what is left of it.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque, btree_map};
use alloc::vec::Vec;
use core::mem::take;
use core::ops::Bound::{Excluded, Included, Unbounded};

use super::{LockKind, Owner, RecordLock};
use crate::error::{Errno, Result};
use crate::heap::slot_bytes;
use crate::memory::remains::{self, Remainder};
use crate::pieces::{Pieces, free_in_pieces};
use crate::step::TimeSlice;

/// Record locks that one file can have: whether one of them is in the way is one look at each, some 35 instructions.
const MOST_LOCKS: usize = 12288;
/// So many locks are taken out at once; where they are more, that is done in pieces.
const MANY: usize = 64;
/// To free so many locks takes no longer than to leave them.
const FEW: usize = 16;
/// So many locks are looked at in a piece: some ten thousand instructions, three times that where all of them go.
const PIECE: usize = if cfg!(test) { 16 } else { 256 };
/// Among so many locks a single look at all of them takes long.
const LONG: usize = 4096;

/// Whether a lock that stands rules out one that is wanted.
fn excludes<O: Owner>(lock: &RecordLock<O>, wanted: &RecordLock<O>) -> bool {
    lock.owner != wanted.owner
        && (lock.kind == LockKind::Exclusive || wanted.kind == LockKind::Exclusive)
        && !lock.owner.is_gone()
}

/// Where a record lock stands: the class of its length, its first byte, and a number of its own (shared locks may begin together).
type Key = (u32, u64, u64);

/// The record locks of a file, ordered so that those that overlap given bytes are found without a look at the others.
///
/// A lock of class `n` is at most 2^n bytes long. So those of a class that overlap a range begin in it, or less than that before it.
pub(super) struct Records<O: Owner> {
    locks: BTreeMap<Key, RecordLock<O>>,
    /// How many locks of each class there are.
    classes: BTreeMap<u32, usize>,
    owners: BTreeMap<O, Own>,
    /// How many owners have not [ended](Self::end_owner).
    living: usize,
    made: u64,
    /// What was changed and is not carried out yet, in order.
    pending: VecDeque<Change<O>>,
    /// When there are so many, those of dead owners are thrown out.
    purge_at: usize,
    /// Those of dead owners were thrown out since somebody last wanted to know.
    is_purged: bool,
}

/// What one owner has.
#[derive(Default)]
struct Own {
    locks: usize,
    has_ended: bool,
}

/// A change that is being carried out.
#[derive(Clone, Copy)]
struct Change<O> {
    what: Replacement<O>,
    /// All locks before this one were looked at.
    at: Key,
}

#[derive(Clone, Copy)]
enum Replacement<O> {
    /// The locks of dead owners go.
    Purge,
    /// Bytes of the owner's locks go, and one lock takes their place.
    Bytes { owner: O, first: u64, last: u64, wanted: Option<RecordLock<O>> },
}

impl<O: Owner> Replacement<O> {
    fn takes(&self, lock: &RecordLock<O>) -> bool {
        match self {
            Replacement::Purge => lock.owner.is_gone(),
            Replacement::Bytes { owner, first, last, .. } => {
                lock.owner == *owner && lock.first <= *last && lock.last >= *first
            }
        }
    }

    fn is_end_of(&self, of: &O) -> bool {
        matches!(self, Replacement::Bytes { owner, first: 0, last: u64::MAX, .. } if owner == of)
    }
}

impl<O: Owner> Default for Records<O> {
    fn default() -> Self {
        Records {
            locks: BTreeMap::new(),
            classes: BTreeMap::new(),
            owners: BTreeMap::new(),
            living: 0,
            made: 0,
            pending: VecDeque::new(),
            purge_at: MANY,
            is_purged: false,
        }
    }
}

impl<O: Owner> Records<O> {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.locks.is_empty() && self.pending.is_empty()
    }

    /// Whether there are so many that the clock must be asked between two looks at all of them.
    pub(super) fn are_many(&self) -> bool {
        self.locks.len() > LONG
    }

    /// Carries out what was changed, for as long as the time slice lasts; whether nothing is left.
    #[inline]
    pub(super) fn settle(&mut self, time_slice: &mut TimeSlice) -> bool {
        while !self.pending.is_empty() {
            self.settle_piece();
            if !self.pending.is_empty() && time_slice.is_over() {
                return false;
            }
        }
        true
    }

    /// Carries out a piece of what was changed.
    #[inline]
    pub(super) fn settle_piece(&mut self) {
        if let Some(change) = self.pending.pop_front() {
            self.go_on_with(change);
        }
    }

    #[inline(never)]
    fn go_on_with(&mut self, mut change: Change<O>) {
        let next = self.locks.range(change.at..).nth(PIECE).map(|(&key, _)| key);
        let piece = (Included(change.at), next.map_or(Unbounded, Excluded));
        let goes = self.locks.range(piece).filter(|(_, lock)| change.what.takes(lock));
        let (keys, locks): (Vec<Key>, Vec<RecordLock<O>>) = goes.unzip();
        self.remove(&keys);
        if let Replacement::Bytes { first, last, .. } = change.what {
            self.put_back_ends(locks.iter(), first, last);
        }
        if let Some(next) = next {
            change.at = next;
            self.pending.push_front(change);
            return;
        }
        match change.what {
            Replacement::Purge => {
                self.purge_at = (self.locks.len() * 2).clamp(MANY, MOST_LOCKS);
                self.is_purged = true;
            }
            Replacement::Bytes { wanted, .. } => wanted.into_iter().for_each(|wanted| self.join(wanted)),
        }
    }

    /// All locks that have a byte between the two, of each class in ascending order.
    fn overlapping(&self, first: u64, last: u64) -> impl Iterator<Item = (&Key, &RecordLock<O>)> {
        self.classes.keys().flat_map(move |&class| self.overlapping_of(class, first, last))
    }

    fn overlapping_of(&self, class: u32, first: u64, last: u64) -> impl Iterator<Item = (&Key, &RecordLock<O>)> {
        let reach = 1_u64.checked_shl(class).map_or(u64::MAX, |len| len - 1);
        let start = (class, first.saturating_sub(reach), 0);
        self.locks.range(start..=(class, last, u64::MAX)).filter(move |(_, lock)| lock.last >= first)
    }

    /// The first lock that rules `wanted` out, of those that stand; all changes are carried out.
    pub(super) fn conflict(&self, wanted: &RecordLock<O>) -> Option<RecordLock<O>> {
        let of_class = |&class: &u32| {
            let mut locks = self.overlapping_of(class, wanted.first, wanted.last).map(|(_, lock)| lock);
            locks.find(|lock| excludes(lock, wanted))
        };
        self.classes.keys().filter_map(of_class).min_by_key(|lock| lock.first).copied()
    }

    fn insert(&mut self, lock: RecordLock<O>) {
        let class = u64::BITS - (lock.last - lock.first).leading_zeros();
        self.made += 1;
        self.locks.insert((class, lock.first, self.made), lock);
        *self.classes.entry(class).or_default() += 1;
        let own = self.owners.entry(lock.owner).or_default();
        if own.locks == 0 {
            self.living += 1;
        }
        own.locks += 1;
    }

    /// A lock was taken out.
    fn forget(&mut self, key: &Key, owner: &O) {
        if let Some(count) = self.classes.get_mut(&key.0) {
            *count -= 1;
            if *count == 0 {
                self.classes.remove(&key.0);
            }
        }
        if let Some(own) = self.owners.get_mut(owner) {
            own.locks -= 1;
            if own.locks == 0 {
                self.living -= usize::from(!own.has_ended);
                self.owners.remove(owner);
            }
        }
    }

    /// An owner has ended; whether all have that have locks here, or are about to get some. It may be said more than once.
    pub(super) fn end_owner(&mut self, owner: &O) -> bool {
        if let Some(own) = self.owners.get_mut(owner)
            && !core::mem::replace(&mut own.has_ended, true)
        {
            self.living -= 1;
        }
        self.living == 0 && self.pending.is_empty()
    }

    /// Leaves the locks of owners all of whom have ended, without a word to the task that takes remains apart. False: they were few, and are gone.
    pub(super) fn leave(self: Box<Self>) -> bool {
        let count = self.locks.len();
        if count > FEW {
            remains::gather_heap(LeftLocks { rest: self, locks: btree_map::IntoIter::default() }, count * LOCK_BYTES);
        }
        count > FEW
    }

    fn remove(&mut self, keys: &[Key]) {
        for key in keys {
            if let Some(lock) = self.locks.remove(key) {
                self.forget(key, &lock.owner);
            }
        }
    }

    /// Enters again what is left of locks of which the bytes between the two went: only of those at the edges is there anything.
    fn put_back_ends<'a>(&mut self, locks: impl Iterator<Item = &'a RecordLock<O>>, first: u64, last: u64) {
        for lock in locks {
            if lock.first < first {
                self.insert(RecordLock { last: first - 1, ..*lock });
            }
            if lock.last > last {
                self.insert(RecordLock { first: last + 1, ..*lock });
            }
        }
    }

    /// Takes the bytes from `first` to `last` out of the owner's locks, and enters `wanted` in their place; whether the owner may have had any there. If
    /// `is_late`, no look at many locks is taken now.
    pub(super) fn replace(
        &mut self,
        owner: O,
        first: u64,
        last: u64,
        wanted: Option<RecordLock<O>>,
        is_late: bool,
    ) -> bool {
        if self.pending.is_empty() && !self.owners.contains_key(&owner) {
            wanted.into_iter().for_each(|wanted| self.insert(wanted));
            return false;
        }
        if self.pending.is_empty() && !is_late {
            let own = self.overlapping(first, last).filter(|(_, lock)| lock.owner == owner);
            let (keys, locks): (Vec<Key>, Vec<RecordLock<O>>) = own.take(MANY).unzip();
            if keys.len() < MANY {
                self.remove(&keys);
                self.put_back_ends(locks.iter(), first, last);
                wanted.into_iter().for_each(|wanted| self.join(wanted));
                return !keys.is_empty();
            }
        } else if self.pending.iter().any(|change| change.what.is_end_of(&owner)) {
            // Whoever sets a lock carries out all changes first, so it has got none since.
            return false;
        }
        let what = Replacement::Bytes { owner, first, last, wanted };
        self.pending.push_back(Change { what, at: (0, 0, 0) });
        true
    }

    /// Enters a lock where its owner has no other; neighbours of the same kind become one with it.
    fn join(&mut self, wanted: RecordLock<O>) {
        let (before, behind) = (wanted.first.saturating_sub(1), wanted.last.saturating_add(1));
        let same = |lock: &RecordLock<O>| lock.owner == wanted.owner && lock.kind == wanted.kind;
        let neighbours = self.overlapping(before, behind).filter(|(_, lock)| same(lock));
        let (keys, locks): (Vec<Key>, Vec<RecordLock<O>>) = neighbours.unzip();
        self.remove(&keys);
        let first = locks.iter().map(|lock| lock.first).fold(wanted.first, u64::min);
        let last = locks.iter().map(|lock| lock.last).fold(wanted.last, u64::max);
        self.insert(RecordLock { first, last, ..wanted });
    }

    /// Makes room for what setting one lock can add: a lock that is cut in the middle becomes two. False if that is not done when the time slice
    /// ends.
    ///
    /// # Errors
    /// ENOLCK: the living have too many locks; or memory is short.
    pub(super) fn make_room(&mut self, time_slice: &mut TimeSlice) -> Result<bool> {
        if self.locks.len() >= self.purge_at && !take(&mut self.is_purged) {
            self.pending.push_back(Change { what: Replacement::Purge, at: (0, 0, 0) });
            if !self.settle(time_slice) {
                return Ok(false);
            }
            self.is_purged = false;
        }
        if self.locks.len() >= MOST_LOCKS || crate::memory::admit().is_err() {
            return Err(Errno::ENOLCK);
        }
        Ok(true)
    }
}

impl<O: Owner> Drop for Records<O> {
    fn drop(&mut self) {
        if self.locks.len() > MANY {
            free_in_pieces(take(&mut self.locks).into_iter());
        }
    }
}

impl<O: Owner> Pieces for btree_map::IntoIter<Key, RecordLock<O>> {
    fn free_piece(&mut self) -> bool {
        (0..MANY).all(|_| self.next().is_some())
    }
}

/// So many bytes a lock takes at least: the leaves of the standard library's trees have room for eleven.
const LOCK_BYTES: usize = slot_bytes(11 * size_of::<(Key, RecordLock)>()) / 11;

/// Locks of owners that have ended.
struct LeftLocks<O: Owner> {
    /// With the locks, until the first of them are freed.
    rest: Box<Records<O>>,
    locks: btree_map::IntoIter<Key, RecordLock<O>>,
}

impl<O: Owner> Remainder for LeftLocks<O> {
    fn give_back(&mut self) -> Option<usize> {
        None
    }

    fn free_piece(&mut self) -> Option<usize> {
        if !self.rest.locks.is_empty() {
            self.locks = take(&mut self.rest.locks).into_iter();
        }
        let freed = self.locks.by_ref().take(PIECE).count();
        (freed > 0).then_some(freed * LOCK_BYTES)
    }
}

#[cfg(test)]
mod tests;
