//! [`Population`]: whether there is anybody in a group, and whether all of them are frozen: what `cgroup.events` shows.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use super::Event;

const POPULATED: u8 = 1;
const FROZEN: u8 = 2;

/// The threads of a group and of all below it, that have not ended.
#[derive(Default)]
pub struct Population {
    threads: AtomicUsize,
    /// Those among them of the group itself.
    own: AtomicUsize,
    /// Those among them (of the whole subtree) that stand still because a group of theirs is frozen.
    frozen: AtomicUsize,
    /// `cgroup.freeze` of the group itself.
    pub freezes: AtomicBool,
    /// How many kills of the whole subtree are under way.
    pub kills: AtomicUsize,
    /// `POPULATED` and `FROZEN` as it was last said.
    said: AtomicU8,
    /// `cgroup.events`.
    pub event: Event,
}

impl Population {
    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.threads.load(Ordering::SeqCst)
    }

    /// How many threads there are in the group itself.
    pub fn own(&self) -> usize {
        self.own.load(Ordering::SeqCst)
    }

    /// Whether there is anybody.
    pub fn is_populated(&self) -> bool {
        self.threads() > 0
    }

    /// Whether nobody moves, given that the group or one above it freezes.
    pub(super) fn stands_still(&self) -> bool {
        self.frozen.load(Ordering::SeqCst) >= self.threads()
    }

    /// So many come; whether there was nobody.
    #[inline(always)]
    pub(super) fn add(&self, count: usize) -> bool {
        self.threads.fetch_add(count, Ordering::SeqCst) == 0
    }

    /// So many leave; whether nobody is left.
    #[inline(always)]
    pub(super) fn remove(&self, count: usize) -> bool {
        self.threads.fetch_sub(count, Ordering::SeqCst) == count
    }

    #[inline(always)]
    pub(super) fn add_own(&self, count: usize) {
        self.own.fetch_add(count, Ordering::SeqCst);
    }

    #[inline(always)]
    pub(super) fn remove_own(&self, count: usize) {
        self.own.fetch_sub(count, Ordering::SeqCst);
    }

    pub(super) fn change_frozen(&self, by: isize) {
        if by >= 0 {
            self.frozen.fetch_add(by.unsigned_abs(), Ordering::SeqCst);
        } else {
            self.frozen.fetch_sub(by.unsigned_abs(), Ordering::SeqCst);
        }
    }

    /// Tells those who wait if the state is another one than was said last.
    #[inline(never)]
    pub(super) fn say(&self, is_frozen: bool) {
        let populated = if self.is_populated() { POPULATED } else { 0 };
        let frozen = if is_frozen { FROZEN } else { 0 };
        if self.said.swap(populated | frozen, Ordering::SeqCst) != populated | frozen {
            self.event.notify();
        }
    }
}
