//! Locks on a whole file: flock(2).

use alloc::collections::{BTreeSet, btree_set};
use core::mem::take;
use core::ops::Bound::{Excluded, Unbounded};

use super::{LockKind, LockOwner, Owner, PAUSE};
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
    /// Behind this one it is looked next for owners that are gone.
    looked_at: Option<LockOwner>,
}

impl WholeLocks {
    /// Takes the owner's lock out; whether it had one.
    pub(super) fn remove(&mut self, owner: &LockOwner) -> bool {
        if self.exclusive == Some(*owner) {
            self.exclusive = None;
            return true;
        }
        self.shared.remove(owner)
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

    /// Enters a lock that none rules out; its owner has no other.
    pub(super) fn insert(&mut self, owner: LockOwner, kind: LockKind) {
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
        self.shared.insert(owner);
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
