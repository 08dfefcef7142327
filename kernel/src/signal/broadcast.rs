//! What goes to many: a terminal's signals to a group, a stop and its end to all threads of a process.
//!
//! The first get theirs at once. The others get theirs from a task, some at a time, between which others have their turn; so a key on a
//! terminal, the end of a session or a stop takes no longer with very many processes or threads than with some.

use alloc::boxed::Box;
use alloc::collections::LinkedList;

use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use refs::{NoSuspend, SpinLock, WaitList};
use tasks::{Body, Next};

use super::{Info, send};
use crate::process::{self, Cursor, PROCESSES, Process};
use crate::sched;

/// So many get theirs at once: some 400 instructions each.
const AT_ONCE: usize = 64;

/// What is left to do, in the order in which it began: who is to get two signals gets them in their order.
static LEFT: SpinLock<LinkedList<Broadcast>> = SpinLock::new(LinkedList::new());
/// How many stops are in that.
static STOPS: AtomicUsize = AtomicUsize::new(0);
/// Where the task waits.
static WORK: WaitList = WaitList::new();

/// What many get, and who has got it.
enum Broadcast {
    Signal { group: u32, info: Info, last: Cursor },
    Stop { pid: u32, stop: u64, last: Cursor },
    Continue { pid: u32, stop: u64, last: Cursor },
}

impl Broadcast {
    /// Reaches the next; false if there are no more.
    fn go_on(&mut self, cx: &impl NoSuspend) -> bool {
        match self {
            Broadcast::Signal { group, info, last } => {
                let Some(member) = process::next_member(*group, last, cx) else { return false };
                if let Ok(member) = member.upgrade(cx) {
                    // A full queue is nothing that a terminal or a dying leader could report.
                    let _ = send::send_to_process(&member, *info, cx);
                }
            }
            Broadcast::Stop { pid, stop, last } => {
                return PROCESSES.get(*pid, cx).is_some_and(|process| process::stop_next(&process, *stop, last, cx));
            }
            Broadcast::Continue { pid, stop, last } => {
                return PROCESSES
                    .get(*pid, cx)
                    .is_some_and(|process| process::continue_next(&process, *stop, last, cx));
            }
        }
        true
    }

    /// Reaches some; false if there are no more.
    fn reach_some(&mut self, cx: &impl NoSuspend) -> bool {
        (0..AT_ONCE).all(|_| self.go_on(cx))
    }

    fn begin(mut self, cx: &impl NoSuspend) {
        if self.reach_some(cx) {
            if matches!(self, Broadcast::Stop { .. }) {
                STOPS.fetch_add(1, Ordering::Relaxed);
                sched::add_reason_to_look();
            }
            LEFT.lock(cx).push_back(self);
            WORK.wake_all();
        }
    }
}

/// Sends a signal to all processes of a group, as a terminal does.
pub fn send_to_group(group: u32, info: Info, cx: &impl NoSuspend) {
    Broadcast::Signal { group, info, last: Cursor::default() }.begin(cx);
}

/// Tells all threads of a process that its stop of this number has begun.
pub fn stop_threads(process: &Process, stop: u64, cx: &impl NoSuspend) {
    Broadcast::Stop { pid: process.pid, stop, last: Cursor::default() }.begin(cx);
}

/// Whether there may be threads that were not told yet that their process stops.
pub fn are_stops_left() -> bool {
    STOPS.load(Ordering::Relaxed) > 0
}

/// Has all threads of a process go on after its stop of this number.
pub fn continue_threads(process: &Process, stop: u64, cx: &impl NoSuspend) {
    Broadcast::Continue { pid: process.pid, stop, last: Cursor::default() }.begin(cx);
}

/// Starts the task. Called once, before the first process.
pub fn start() {
    tasks::spawn(&crate::sched::SCHEDULER, Box::new(Sender), |_, _| ());
}

/// The task.
struct Sender;

impl Body for Sender {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        loop {
            let waker = tasks::prepare(cx);
            WORK.register(waker, cx);
            let next = LEFT.lock(cx).pop_front();
            let Some(mut next) = next else {
                tasks::park_async(cx);
                continue;
            };
            tasks::finish_wait(cx);
            if next.reach_some(cx) {
                LEFT.lock(cx).push_front(next);
            } else if matches!(next, Broadcast::Stop { .. }) {
                STOPS.fetch_sub(1, Ordering::Relaxed);
                sched::remove_reason_to_look();
            }
            return Next::Again;
        }
    }
}
