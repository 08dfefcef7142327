//! [`Waiters`]: who waits, in the order in which they came; and how a task waits until it is handed something.

use alloc::collections::VecDeque;

use refs::{Cx, Waker};

use crate::rt::finish::value_or_resume;
use crate::rt::finish_wait;
use crate::rt::wait::park_caught_async;

/// A list of waits. Those that are over may still be in it; they are thrown out when it needs room.
pub(super) struct Waiters(VecDeque<Waker>);

impl Waiters {
    pub(super) const fn new() -> Self {
        Waiters(VecDeque::new())
    }

    /// Enters a wait behind all others.
    pub(super) fn push(&mut self, waker: Waker) {
        if self.0.len() == self.0.capacity() {
            self.0.retain(|waker| waker.is_waiting());
        }
        self.0.push_back(waker);
    }

    /// Takes out the wait that was entered first.
    pub(super) fn pop(&mut self) -> Option<Waker> {
        self.0.pop_front()
    }

    /// Ends all waits.
    pub(super) fn wake_all(mut self) -> usize {
        self.0.drain(..).filter(|waker| waker.wake()).count()
    }

    /// Takes out all.
    pub(super) fn take(&mut self) -> Waiters {
        Waiters(core::mem::take(&mut self.0))
    }
}

impl Drop for Waiters {
    /// Those who wait at what is destroyed look again.
    fn drop(&mut self) {
        for waker in self.0.drain(..) {
            waker.wake();
        }
    }
}

/// Waits for something that is handed over by a wake-up. False if nothing was: the task was resumed to be aborted where panics do
/// not unwind. If it unwinds from its wait although it was handed something, `give_back` returns that. `what` is for reports.
pub(super) fn wait_async(cx: &mut Cx, what: &'static &'static str, give_back: impl FnOnce(&mut Cx)) -> bool {
    match park_caught_async(cx, what) {
        Ok(woken) => woken,
        Err(payload) => {
            if finish_wait(cx) {
                give_back(cx);
            }
            value_or_resume(Err(payload))
        }
    }
}
