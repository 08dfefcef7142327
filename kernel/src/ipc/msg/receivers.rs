//! [`Receivers`]: who waits for a message of a queue.
//!
//! Whoever sends gives the message to the first that wants it, before the call returns, so nobody else gets it. A receiver that stands here finds nothing in the queue that it wants. What it is
//! given, a message or E2BIG, is in its [`Place`], which the queue and the call own together: so the message is not lost when the queue is removed. Who has left the list,
//! for whatever reason, looks into its place and is given nothing any more: leaving and giving are done with the queue locked.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use frame::Cx;
use refs::{SpinLock, Waker};

use super::messages::{Message, Wanted};
use crate::error::Result;
use crate::pieces::Pieces;
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// So many receivers are looked at before the time is.
const LOOKED_AT: usize = 256;

/// So many are freed at a time.
const FREED_AT_ONCE: usize = 64;

/// Where what one receiver is given comes to.
#[derive(Default)]
pub struct Place(SpinLock<Option<Result<Message>>>);

impl Place {
    /// The receiver, which is in the list no more, is given a message, or E2BIG.
    pub fn give(&self, given: Result<Message>, cx: &Cx) {
        *self.0.lock(cx) = Some(given);
    }

    /// What was given, once.
    pub fn take(&self, cx: &Cx) -> Option<Result<Message>> {
        self.0.lock(cx).take()
    }
}

/// One who waits.
pub struct Receiver {
    /// What it wants.
    pub wanted: Wanted,
    /// How many bytes it has room for, if it does not want the rest to be cut off.
    pub most: Option<usize>,
    /// Its process.
    pub by: u32,
    /// Which owners and modes the queue had had when it was allowed to wait. Where others came since, it asks again whether it may, and is given nothing before.
    pub allowed_in: u64,
    /// Ends its wait.
    pub waker: Waker,
    /// Where the message comes to.
    pub place: Arc<Place>,
}

/// Who waits for a message, in the order in which they came.
#[derive(Default)]
pub struct Receivers {
    waiting: BTreeMap<u64, Receiver>,
    last: u64,
}

impl Receivers {
    /// One comes, behind all others; its number.
    pub fn enter(&mut self, receiver: Receiver) -> u64 {
        self.last += 1;
        self.waiting.insert(self.last, receiver);
        self.last
    }

    /// Takes one out, if it is there.
    pub fn remove(&mut self, number: u64) -> Option<Receiver> {
        self.waiting.remove(&number)
    }

    /// Takes out the first that takes a message of a type. `passed`: none up to this number does; it belongs to the call that sends.
    ///
    /// # Errors
    /// `Pause`: the search goes on when others have had their turn.
    pub fn take_first(
        &mut self,
        kind: i64,
        allowed_in: u64,
        passed: &mut u64,
        time_slice: &mut TimeSlice,
    ) -> Step<Option<Receiver>> {
        for (count, (number, receiver)) in (1..).zip(self.waiting.range(*passed + 1..)) {
            *passed = *number;
            if receiver.wanted.takes(kind) && receiver.allowed_in == allowed_in {
                return Ok(self.waiting.remove(passed));
            }
            if count % LOOKED_AT == 0 && time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(None)
    }
}

impl Pieces for Receivers {
    fn free_piece(&mut self) -> bool {
        (0..FREED_AT_ONCE).all(|_| self.waiting.pop_first().is_some())
    }
}
