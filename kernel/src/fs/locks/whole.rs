//! Locks on a whole file: flock(2).

use alloc::collections::{BTreeSet, btree_set};
use core::mem::take;
use core::ops::Bound::{Excluded, Unbounded};
use core::sync::atomic::{AtomicBool, Ordering};

use super::{LockKind, LockOwner, Owner, PAUSE};
use crate::heap::slot_bytes;
use crate::memory::remains::{self, Remainder};
use crate::pieces::{Pieces, free_in_pieces};
use crate::step::{Step, TimeSlice};

/// So many owners are looked at between two looks at the clock, and freed in one go.
const AT_ONCE: usize = 64;
/// So many owners are looked at for each that comes, so that those that are gone never are the most.
const LOOKED_AT: usize = 4;

/// Who has a lock on a whole file: one alone, or any number that share it. Some of them may be gone.
#[derive(Default)]
pub(super) struct WholeLocks {
    exclusive: Option<LockOwner>,
    shared: BTreeSet<LockOwner>,
    /// How many came into `shared` who have neither given up their lock nor [ended](Self::end_owner) since.
    living: usize,
    /// Behind this one it is looked next for owners that are gone.
    looked_at: Option<LockOwner>,
}

impl WholeLocks {
    /// Takes the owner's lock out; whether it had one. `shares` says whether it is among the living who share, and is changed with that.
    pub(super) fn remove(&mut self, owner: &LockOwner, shares: &AtomicBool) -> bool {
        if self.exclusive == Some(*owner) {
            self.exclusive = None;
            return true;
        }
        let had_one = self.shared.remove(owner);
        if had_one {
            self.end_owner(shares);
        }
        had_one
    }

    /// One who may share the lock does so no more; whether all have ended who do.
    pub(super) fn end_owner(&mut self, shares: &AtomicBool) -> bool {
        if shares.load(Ordering::Relaxed) {
            shares.store(false, Ordering::Relaxed);
            self.living -= 1;
        }
        self.living == 0
    }

    /// Leaves the locks of owners all of whom have ended, without a word to the task that takes remains apart. False: they were few, and are gone.
    pub(super) fn leave(mut self) -> bool {
        let count = self.shared.len();
        if count > AT_ONCE {
            remains::gather_heap(Owners(take(&mut self.shared).into_iter()), count * OWNER_BYTES);
        }
        count > AT_ONCE
    }

    /// Whether somebody has it alone.
    pub(super) fn is_exclusive(&self) -> bool {
        self.exclusive.is_some()
    }

    /// One that rules a lock of this kind out.
    ///
    /// # Errors
    /// [`Stop::Pause`](crate::step::Stop::Pause): very many that are gone have been thrown out, and there are more.
    pub(super) fn conflict(&mut self, kind: LockKind, time_slice: &mut TimeSlice) -> Step<Option<LockOwner>> {
        self.exclusive = self.exclusive.filter(|owner| !owner.is_gone());
        if self.exclusive.is_some() || kind == LockKind::Shared {
            return Ok(self.exclusive);
        }
        let mut thrown_out = 0;
        while let Some(first) = self.shared.first().copied() {
            if !first.is_gone() {
                return Ok(Some(first));
            }
            self.shared.pop_first();
            thrown_out += 1;
            if thrown_out % AT_ONCE == 0 && time_slice.is_over() {
                return Err(PAUSE);
            }
        }
        Ok(None)
    }

    /// Enters a lock that none rules out; its owner has no other. `shares` as for [`remove`](Self::remove).
    pub(super) fn insert(&mut self, owner: LockOwner, kind: LockKind, shares: &AtomicBool) {
        if kind == LockKind::Exclusive {
            self.exclusive = Some(owner);
            return;
        }
        for _ in 0..LOOKED_AT {
            let behind = self.looked_at.map_or(Unbounded, Excluded);
            self.looked_at = self.shared.range((behind, Unbounded)).next().copied();
            if let Some(next) = self.looked_at.filter(|next| next.is_gone()) {
                self.shared.remove(&next);
            }
        }
        if self.shared.insert(owner) && !shares.load(Ordering::Relaxed) {
            shares.store(true, Ordering::Relaxed);
            self.living += 1;
        }
    }
}

impl Drop for WholeLocks {
    fn drop(&mut self) {
        if self.shared.len() > AT_ONCE {
            free_in_pieces(Owners(take(&mut self.shared).into_iter()));
        }
    }
}

/// Owners whose locks go with their file.
struct Owners(btree_set::IntoIter<LockOwner>);

impl Pieces for Owners {
    fn free_piece(&mut self) -> bool {
        (0..AT_ONCE).all(|_| self.0.next().is_some())
    }
}

/// So many bytes one takes at least: the leaves of the standard library's trees have room for eleven.
const OWNER_BYTES: usize = slot_bytes(11 * size_of::<LockOwner>()) / 11;

impl Remainder for Owners {
    fn give_back(&mut self) -> Option<usize> {
        None
    }

    fn free_piece(&mut self) -> Option<usize> {
        let freed = self.0.by_ref().take(AT_ONCE).count();
        (freed > 0).then_some(freed * OWNER_BYTES)
    }
}
