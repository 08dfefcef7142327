//! [`Queue`]: a line to stand in, which one may leave.
//!
//! For operations that have to be ended in the order in which they were begun, such as calls whose replies come in order: who gives up
//! before its turn leaves something behind that the one in front has to deal with (a reply that nobody wants any more). So whoever
//! leaves from the front is told how many in a row left unserved.

use alloc::collections::VecDeque;
use core::fmt;

use refs::{Cx, SpinLock, Waker};

use super::waiters::wait_async;
use crate::rt::cancel::wait_x_async;
use crate::rt::{Canceled, check_canceled, prepare};

/// What reports say of those who wait.
const WHAT: &&str = &"its turn in a line";

/// A line of tasks; the first has its turn until it leaves.
pub struct Queue {
    state: SpinLock<State>,
}

struct State {
    line: VecDeque<Entry>,
    /// The number of the next entry.
    next: u64,
}

struct Entry {
    /// They ascend along the line.
    number: u64,
    /// It has had its turn.
    served: bool,
    /// How many that were right behind it have left unserved.
    bailed: usize,
    waker: Option<Waker>,
}

impl Queue {
    const_fn! {
        /// A line in which nobody stands.
        pub fn new() -> Self {
            Queue { state: SpinLock::new(State { line: VecDeque::new(), next: 0 }) }
        }
    }

    /// Stands in line, behind all others.
    pub fn enter(&self) -> Turn<'_> {
        let number = self.state.with(|state| {
            let number = state.next;
            state.next += 1;
            state.line.push_back(Entry { number, served: false, bailed: 0, waker: None });
            number
        });
        Turn { queue: self, number }
    }

    /// How many stand in line.
    pub fn len(&self) -> usize {
        self.state.with(|state| state.line.len())
    }

    /// Whether nobody stands in line.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Default for Queue {
    fn default() -> Self {
        Queue::new()
    }
}

/// A place in a [`Queue`]. Dropping it leaves the line as [`leave`](Self::leave) does.
pub struct Turn<'a> {
    queue: &'a Queue,
    number: u64,
}

impl Turn<'_> {
    /// Waits until this is the first in line. May be called again. (One task waits at a time, hence `&mut`: a place has one waker.)
    pub fn await_async(&mut self, cx: &mut Cx) {
        while !self.is_first_or_enter(cx) {
            // Nothing is lost by whoever unwinds: its place stays the first until it leaves.
            wait_async(cx, WHAT, |_| ());
        }
    }

    /// Waits as [`await_async`](Self::await_async) does.
    ///
    /// # Errors
    /// [`Canceled`] if the block was asked to end, before or before this was the first. It keeps its place until it leaves.
    pub fn await_x_async(&mut self, cx: &mut Cx) -> Result<(), Canceled> {
        check_canceled(cx)?;
        while !self.is_first_or_enter(cx) {
            wait_x_async(cx, WHAT, |_| ())?;
        }
        Ok(())
    }

    /// Leaves the line. From its front: the result is how many in a row, from this one on, have left it unserved, which counts this one
    /// if it never had its turn. From elsewhere: 0, and it is counted for the one before it.
    pub fn leave(self) -> usize {
        let bailed = self.leave_line();
        core::mem::forget(self);
        bailed
    }

    fn is_first_or_enter(&self, cx: &Cx) -> bool {
        let mut state = self.queue.state.lock(cx);
        let index = state.index(self.number);
        let entry = &mut state.line[index];
        if index == 0 {
            entry.served = true;
        } else {
            entry.waker = Some(prepare(cx));
        }
        index == 0
    }

    fn leave_line(&self) -> usize {
        let (bailed, next) = self.queue.state.with(|state| {
            let index = state.index(self.number);
            let Some(entry) = state.line.remove(index) else { return (0, None) };
            let bailed = entry.bailed + usize::from(!entry.served);
            if index > 0 {
                state.line[index - 1].bailed += bailed;
                return (0, None);
            }
            (bailed, state.line.front().and_then(|next| next.waker))
        });
        if let Some(next) = next {
            next.wake();
        }
        bailed
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.leave_line();
    }
}

impl State {
    /// Where an entry is that has not left.
    fn index(&self, number: u64) -> usize {
        self.line.partition_point(|entry| entry.number < number)
    }
}
