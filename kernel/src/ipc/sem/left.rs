//! What those leave to do who end: a task of the kernel lets on who can go on after their changes.
//!
//! Nobody knows beforehand how many wait for what a process gives back, or for a change in the midst of which it is killed, and how long that takes; they are not to be paid for by its end. So who ends
//! changes values and leaves the rest of it, which stands in the set, to this task. Nobody sees the difference but those who wait: whoever does anything with the set goes on with what is left first.
//!
//! The task is one among others that are not real-time ones, and does a piece of 0.03 ms of each thing that was left in turn, so one that is very long keeps no other from being done.

use alloc::boxed::Box;
use alloc::collections::LinkedList;

use frame::Cx;
use refs::{NoSuspend, SpinLock, WaitList};
use tasks::{Body, Next};

use super::{Begun, Removed};
use crate::sched::{self, Parameters};
use crate::step::TimeSlice;

/// What was left, in turn.
static LEFT: SpinLock<LinkedList<Left>> = SpinLock::new(LinkedList::new());
/// Where the task waits.
static WORK: WaitList = WaitList::new();

/// What was left of a call.
enum Left {
    Change(Begun),
    Removal(Removed),
}

impl Left {
    /// Does a piece of it; false if that was all.
    fn go_on(&self, cx: &Cx) -> bool {
        let mut time_slice = TimeSlice::of_end();
        let outcome = match self {
            Left::Change(begun) => begun.go_on(&mut time_slice, cx),
            Left::Removal(removed) => removed.go_on(&mut time_slice, cx),
        };
        outcome.is_err()
    }

    fn leave(self, cx: &impl NoSuspend) {
        LEFT.lock(cx).push_back(self);
        WORK.wake_all();
    }
}

/// Who can go on after a change is let on by the task.
pub fn leave(begun: Begun, cx: &impl NoSuspend) {
    Left::Change(begun).leave(cx);
}

/// The waits on a set that is removed are ended by the task.
pub fn leave_removed(removed: Removed, cx: &impl NoSuspend) {
    Left::Removal(removed).leave(cx);
}

/// Starts the task. Called once, before the first process.
pub fn start() {
    let parameters = Parameters::default();
    tasks::spawn(&sched::SCHEDULER, Box::new(Settler), |words, _| sched::initialise(words, parameters, None));
}

/// The task.
struct Settler;

impl Body for Settler {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        loop {
            let waker = tasks::prepare(cx);
            WORK.register(waker, cx);
            let next = LEFT.lock(cx).pop_front();
            let Some(next) = next else {
                tasks::park_async(cx);
                continue;
            };
            tasks::finish_wait(cx);
            if next.go_on(cx) {
                LEFT.lock(cx).push_back(next);
            }
            return Next::Again;
        }
    }
}
