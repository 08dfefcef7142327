//! The queues of ready tasks.

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::{Ordering, Reverse};

use tasks::Ready;

use super::MAX_PRIORITY;

const LEVELS: usize = MAX_PRIORITY as usize + 1;

/// All ready tasks: real-time ones by priority, fair ones by virtual run time.
pub(super) struct Queues {
    /// Bit p is set while `real_time[p]` is not empty.
    occupied: u128,
    real_time: [VecDeque<Ready>; LEVELS],
    fair: BinaryHeap<Reverse<Fair>>,
    /// Tells tasks of equal virtual time apart: first come, first served.
    entered: u64,
}

struct Fair {
    virtual_time: u64,
    entered: u64,
    ready: Ready,
}

impl Ord for Fair {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.virtual_time, self.entered).cmp(&(other.virtual_time, other.entered))
    }
}

impl PartialOrd for Fair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Fair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Fair {}

impl Queues {
    pub const fn new() -> Self {
        Queues { occupied: 0, real_time: [const { VecDeque::new() }; LEVELS], fair: BinaryHeap::new(), entered: 0 }
    }

    /// Makes room for `count` ready tasks of the fair class, so that waking them needs no memory; false if there is none.
    pub fn reserve_fair(&mut self, count: usize) -> bool {
        count <= self.fair.capacity() || self.fair.try_reserve(count - self.fair.len().min(count)).is_ok()
    }

    pub fn push_fair(&mut self, ready: Ready, virtual_time: u64) {
        self.entered += 1;
        self.fair.push(Reverse(Fair { virtual_time, entered: self.entered, ready }));
    }

    pub fn push_real_time(&mut self, ready: Ready, priority: u8) {
        self.level(priority).push_back(ready);
    }

    pub fn push_real_time_front(&mut self, ready: Ready, priority: u8) {
        self.level(priority).push_front(ready);
    }

    fn level(&mut self, priority: u8) -> &mut VecDeque<Ready> {
        let level = usize::from(priority).min(LEVELS - 1);
        self.occupied |= 1 << level;
        &mut self.real_time[level]
    }

    /// The task to run next.
    #[inline]
    pub fn pop(&mut self) -> Option<Ready> {
        if self.occupied != 0 {
            let level = self.occupied.ilog2() as usize;
            let ready = self.real_time[level].pop_front();
            if self.real_time[level].is_empty() {
                self.occupied &= !(1 << level);
            }
            return ready;
        }
        self.fair.pop().map(|Reverse(fair)| fair.ready)
    }

    pub fn has_fair(&self) -> bool {
        !self.fair.is_empty()
    }

    pub fn has_real_time(&self, priority: u8) -> bool {
        self.occupied & (1 << usize::from(priority).min(LEVELS - 1)) != 0
    }

    pub fn is_empty(&self) -> bool {
        self.occupied == 0 && self.fair.is_empty()
    }

    pub fn len(&self) -> usize {
        self.fair.len() + self.real_time.iter().map(VecDeque::len).sum::<usize>()
    }
}
