//! When a task has its turn among others.

use core::cmp::{Ordering, Reverse};

use tasks::Ready;

use crate::sched::ABOVE_ALL;

/// When a fair task's turn comes among others: the least is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::sched) struct FairTurn {
    pub virtual_time: u64,
    /// When it was entered.
    pub order: i64,
}

/// When a task's turn comes among all: the least is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::sched) struct Turn {
    /// The priority; 0 for fair tasks.
    pub priority: Reverse<u8>,
    /// Of a real-time task the virtual time is 0. Its order is a time, the same on all cores; below 0, and the later the less, if it was entered before
    /// all others of its priority.
    pub fair: FairTurn,
}

impl Turn {
    pub fn of_real_time(priority: u8, order: i64) -> Self {
        Turn { priority: Reverse(priority.min(ABOVE_ALL)), fair: FairTurn { virtual_time: 0, order } }
    }

    pub(super) fn of_fair(fair: FairTurn) -> Self {
        Turn { priority: Reverse(0), fair }
    }
}

pub(super) struct Entry<T> {
    pub turn: T,
    pub ready: Ready,
}

impl<T: Ord> Ord for Entry<T> {
    #[inline(always)]
    fn cmp(&self, other: &Self) -> Ordering {
        self.turn.cmp(&other.turn)
    }
}

impl<T: Ord> PartialOrd for Entry<T> {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T: Ord> Eq for Entry<T> {}
