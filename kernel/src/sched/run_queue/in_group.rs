//! How the tasks of groups share a core with others: each that runs or waits is *counted* in its group, and what it runs is charged by the weights of all groups above it.
//!
//! Where a group has the only core for itself, nothing is to be shared: its tasks are then as *plain* as those of no group, and are counted when others come.

use core::cmp::Reverse;

use tasks::{Ready, SchedWords, Why};

use super::turn::{Entry, FairTurn, Turn};
use super::{Counted, FAIR_SLICE, IN_GROUP, MOST_UNCOUNTED, RealTime, RunQueue, Tag, Words, group};

impl RunQueue {
    #[inline(never)]
    pub(super) fn charge_time_in_group(&mut self, now: u64) {
        if let Some(running) = self.running {
            let ran = now - self.since_in_group;
            self.since_in_group = now;
            self.busy += ran;
            Words(running).add_cpu_time(ran);
        }
    }

    #[inline(never)]
    pub(super) fn charge_in_group(&mut self, now: u64) {
        let Some(running) = self.running.map(Words) else { return };
        let ran = now.saturating_sub(self.since_in_group);
        self.since_in_group += ran;
        self.busy += ran;
        running.add_cpu_time(ran);
        let ran = now - self.virtual_since;
        self.virtual_since = now;
        let passed = match &self.charged {
            Some(charged) => charged.charge(ran, self.floor, now),
            None => ran,
        };
        running.add_virtual_time(passed);
    }

    /// Whether a task pays nothing here for what it does not share.
    #[inline(always)]
    pub fn is_plain(&self, words: Words) -> bool {
        words.tag() == self.plain
    }

    /// What begins to run, where nothing else waits, has the core for its group alone until others come. Whether it has: where there is one core, and no quota.
    #[inline(always)]
    pub(super) fn begin_seclusion(&mut self, words: Words) -> bool {
        let tag = words.tag();
        let begins = tag.is_of_group()
            && self.movable.is_empty()
            && self.bound.is_empty()
            && !group::is_any_limited()
            && frame::cpu::count() == 1;
        if begins {
            words.discount();
            self.plain = tag;
        }
        begins
    }

    /// Tasks of other groups, or of none, come, or a group is limited: what runs and what waits is counted in its group from now on, if it was not.
    #[inline(never)]
    pub fn end_seclusion(&mut self) {
        if core::mem::replace(&mut self.plain, Tag::NO_GROUP) == Tag::NO_GROUP {
            return;
        }
        // One that gave way waits itself.
        if let Some(running) = self.running.map(Words)
            && running.is_fair_and_no_end()
            && self.since != IN_GROUP
            && self.gave_way_at == 0
        {
            running.count(self.charged.as_ref());
            self.take_counted(running, self.since);
        }
        // Behind that: the running one may wait already, if the core has yet to leave it and it was woken. Then it is counted as both.
        for Reverse(entry) in self.movable.as_slice() {
            Words(entry.ready.sched()).count(self.charged.as_ref());
        }
    }

    /// As what the running task is counted in its group.
    pub fn counted(&self) -> Counted {
        self.counted
    }

    /// How much virtual time passes for the running task, if it is counted in a group, when it runs for so long; else as much.
    #[inline(always)]
    pub fn passed(&self, ran: u64) -> u64 {
        match &self.charged {
            _ if self.counted.is_nothing() => ran,
            Some(charged) if charged.counted() == self.counted => charged.passed(ran),
            _ => group::passed(self.counted, ran),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn step_back_specially(&self, words: Words) {
        if words.is_real_time() {
            words.go_last();
        } else {
            words.add_virtual_time(self.passed(FAIR_SLICE));
        }
    }

    /// The running task, which was charged, is not ready any more, or is about to be in a queue.
    pub(super) fn discount_running(&mut self, now: u64) {
        self.since = now;
        let counted = core::mem::take(&mut self.counted);
        if !core::mem::take(&mut self.is_handed_on) {
            match &self.charged {
                Some(charged) if charged.counted() == counted => charged.discount(),
                _ => group::discount(counted),
            }
        }
    }

    /// Whether the running task is counted in a group and can stay so while it waits.
    #[inline(always)]
    pub(super) fn is_to_be_handed_on(&self, words: Words) -> bool {
        self.since == IN_GROUP && !self.is_handed_on && self.counted.is_of(words.group())
    }

    /// As [`begin_otherwise`](Self::begin_otherwise), where there are no ends, for what is most often in a group: a fair task, while no group has a quota.
    #[inline(never)]
    pub(super) fn begin_in_group(&mut self, words: Words, now: u64, real_time: &RealTime) -> Option<u64> {
        if !words.is_fair_and_no_end() || group::is_any_limited() {
            return self.begin_otherwise(words, now, real_time);
        }
        if !self.begin_seclusion(words) {
            self.take_counted(words, now);
        }
        self.begin_plainly(words)
    }

    /// What begins to run is counted in a group from now on, if it was while it waited.
    #[inline(always)]
    pub(super) fn take_counted(&mut self, words: Words, now: u64) -> Counted {
        let counted = words.take_counted();
        if !counted.is_nothing() {
            (self.counted, self.since) = (counted, IN_GROUP);
            (self.since_in_group, self.virtual_since) = (now, now);
            if self.charged.as_ref().is_none_or(|charged| charged.counted() != counted) {
                self.charged = group::charged(counted, self.core());
            }
        }
        counted
    }

    /// As `least`, for a task that is in a group.
    #[inline(always)]
    pub fn least_in_group(&mut self, words: Words, why: Why, now: u64) -> u64 {
        let least = self.least(why, now);
        match words.group() {
            number if why == Why::New && number != 0 => group::beginning(number, self.core(), least, self.floor),
            _ => least,
        }
    }

    /// As `push_movable`, for a plain task that did not run just now: where there are many, they are counted from now on.
    #[inline(always)]
    pub fn push_one_more(&mut self, ready: Ready) {
        self.push_movable(ready);
        if self.movable.len() > MOST_UNCOUNTED {
            self.end_seclusion();
        }
    }

    /// As `give_way`, for a task that is in a group.
    #[inline(never)]
    pub fn give_way_in_group(&mut self, ready: Ready, now: u64) {
        self.charge(now);
        let words = Words(ready.sched());
        if self.is_to_be_handed_on(words) {
            words.set_counted(core::mem::take(&mut self.counted));
            self.since = now;
        } else if self.since == IN_GROUP {
            self.discount_running(now);
        }
        self.gave_way_at = now;
        self.push_movable_in_group(ready);
    }

    /// As `push_movable`, for a task that is in a group.
    #[inline(never)]
    pub fn push_movable_in_group(&mut self, ready: Ready) {
        self.end_seclusion();
        self.entered += 1;
        let words = Words(ready.sched());
        words.count(self.charged.as_ref());
        let turn = FairTurn { virtual_time: words.virtual_time(), order: self.entered };
        // Not by `push`, which the compiler keeps where it is needed as long as that is in few places.
        self.movable.extend([Reverse(Entry { turn, ready })]);
    }

    /// Enters a fair task that waits here as what it is now, where its account has come into another group or that has another weight; whether it waits here. It keeps its turn, or has it within a slice.
    pub fn enter_anew(&mut self, words: &SchedWords) -> bool {
        let is_movable = self.movable.as_slice().iter().any(|Reverse(entry)| core::ptr::eq(entry.ready.sched(), words));
        let Some(ready) = self.take_out(words) else { return false };
        let words = Words(words);
        words.set_virtual_time(words.virtual_time().min(self.floor.saturating_add(FAIR_SLICE)));
        words.note_group();
        if is_movable {
            self.push_movable_in_group(ready);
        } else if words.is_real_time() {
            self.bind(ready, Turn::of_real_time(words.priority(), frame::time::now() as i64));
        } else {
            self.push_fair(ready);
        }
        true
    }

    /// What the task is has changed. If it runs here, and not as one that is plain, it is counted as what it is now from now on.
    pub fn count_running_anew(&mut self, words: &SchedWords, now: u64) {
        let is_it = self.running.is_some_and(|running| core::ptr::eq(running, words));
        let words = Words(words);
        if !is_it || self.gave_way_at != 0 || self.is_handed_on || self.is_plain(words) && self.since != IN_GROUP {
            return;
        }
        self.charge(now);
        if self.since == IN_GROUP {
            self.discount_running(now);
        }
        if words.is_fair_and_no_end() {
            words.count(self.charged.as_ref());
            self.take_counted(words, now);
        }
    }
}
