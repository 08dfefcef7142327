//! The turns of tasks that work at ends: however many they are, they have the share of one fair task together, and have it in turn.
//!
//! They wait in a queue of their own, first come, first served. All together have one virtual time, which goes on while one of them runs; by that the queue has its turn among the fair tasks.
//! While there are any, slices are short, so that who waits for one of them, or behind them, waits shortly.

use core::cmp::Reverse;

use tasks::{Ready, Worker};

use super::turn::{FairTurn, Turn};
use super::{ENDS_SLICE, GivesWay, IN_GROUP, RealTime, RunQueue, Slice, WAKE_UP_GRANULARITY, Words};

impl RunQueue {
    /// What runs has its turn as one of those in `ends` no more.
    #[inline(never)]
    pub fn leave_end(&mut self) {
        if let Some(running) = self.running.filter(|_| self.runs_end) {
            self.ends_time = self.time_of(Words(running));
            self.runs_end = false;
        }
    }

    /// By what virtual time the running task, or one that is about to run, has its turn.
    #[inline(always)]
    pub(super) fn time_of(&self, running: Words) -> u64 {
        if self.runs_end {
            self.ends_time + running.cpu_time().saturating_sub(self.end_began)
        } else {
            running.virtual_time()
        }
    }

    /// Enters a task that works at ends, on the core that it stays on.
    pub fn push_end(&mut self, ready: Ready) {
        if !self.with_ends {
            // What they have not used they have not saved.
            self.ends_time = self.ends_time.max(self.floor);
            self.with_ends = true;
        }
        self.ends.push_back(ready);
    }

    /// Whether tasks work at ends, or wait for their turn to.
    #[inline(always)]
    pub fn with_ends(&self) -> bool {
        self.with_ends
    }

    /// Whether the turn of the running task is one of those that work at ends.
    pub fn runs_end(&self) -> bool {
        self.runs_end
    }

    /// Whether tasks wait that work at ends.
    pub fn has_ends(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Whether it is the turn of those that work at ends, where `first` is the first turn of all others.
    pub(super) fn is_turn_of_ends(&mut self, first: Option<Turn>) -> bool {
        match first {
            _ if self.ends.is_empty() => false,
            None => true,
            Some(first) if first.priority.0 != 0 => false,
            Some(Turn { fair: FairTurn { virtual_time, .. }, .. }) => {
                // Others wait no longer than a slice for what ends did not use.
                self.ends_time = self.ends_time.max(virtual_time.saturating_sub(ENDS_SLICE));
                self.ends_time <= virtual_time
            }
        }
    }

    /// As [`give_way`](Self::give_way), where the task works at ends.
    pub fn give_way_to_ends(&mut self, ready: Ready, now: u64) {
        self.charge(now);
        if self.since == IN_GROUP {
            self.discount_running(now);
        }
        self.gave_way_at = now;
        self.push_end(ready);
    }

    /// The next task that works at ends, where the core has left one, no other fair task waits, and there is one core: of very many that end, nearly each.
    #[inline(always)]
    pub fn next_end(&mut self, worker: &'static Worker) -> Option<Ready> {
        let left = self.running.filter(|_| self.runs_end && self.movable.is_empty())?;
        let next = self.ends.pop_front()?;
        self.ends_time = self.time_of(Words(left));
        self.worker = Some(worker);
        Some(next)
    }

    /// The core runs the [next end](Self::next_end) from now on; for how long before another has its turn.
    #[inline(always)]
    pub fn begin_next_end(&mut self, ready: &Ready, now: u64, real_time: &RealTime) -> Option<u64> {
        let words = self.begin_running(ready, now);
        if !words.is_fair_end() || words.is_counted() {
            // It is something else meanwhile.
            return self.begin_otherwise(words, now, real_time);
        }
        self.end_began = words.cpu_time();
        self.floor = self.floor.max(self.ends_time);
        let slice = (!self.ends.is_empty()).then_some(ENDS_SLICE);
        self.slice = if slice.is_some() { Slice::Short } else { Slice::Unknown };
        slice
    }

    /// The fair task whose turn it is beside those that work at ends, on a machine with one core.
    #[inline(never)]
    pub fn pop_beside_ends(&mut self) -> Option<Ready> {
        let movable = self.movable.peek().map(|Reverse(first)| Turn::of_fair(first.turn));
        if self.is_turn_of_ends(movable) { self.ends.pop_front() } else { self.pop_movable() }
    }

    /// As [`gives_way_to`](Self::gives_way_to), of fair tasks, while there are ends.
    #[inline(never)]
    pub(super) fn gives_way_beside_ends(&mut self, worker: &'static Worker, running: Words, woken: Words) -> GivesWay {
        let time = if woken.works_at_ends() { self.ends_time } else { woken.virtual_time() };
        if self.time_of(running).saturating_sub(time) > WAKE_UP_GRANULARITY {
            return GivesWay::Now(worker);
        }
        let is_told = core::mem::replace(&mut self.slice, Slice::Short) == Slice::Short;
        if is_told { GivesWay::No } else { GivesWay::After(ENDS_SLICE) }
    }
}
