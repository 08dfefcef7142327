//! [`Receivers`]: who waits for a message of a queue.
//!
//! Whoever sends gives the message to the first that wants it, before the call returns ([`Place`]). A receiver that stands here finds nothing in the queue that it wants; what it is
//! given is a message or E2BIG.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use refs::Waker;

use super::messages::{Message, Wanted};
use crate::error::Result;
use crate::ipc::place::Place;
use crate::pieces::Pieces;
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// So many receivers are looked at before the time is.
const LOOKED_AT: usize = 256;

/// So many are freed at a time.
const FREED_AT_ONCE: usize = 64;

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
    pub place: Arc<Place<Result<Message>>>,
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
