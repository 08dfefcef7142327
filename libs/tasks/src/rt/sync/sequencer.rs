//! [`Sequencer`]: numbers in order.

use core::sync::atomic::{AtomicU64, Ordering};

/// Gives each who asks the next number. With an [`EventCount`](super::EventCount) that counts how many were served this makes a line to stand in.
#[derive(Debug, Default)]
pub struct Sequencer(AtomicU64);

impl Sequencer {
    /// A sequencer whose first number is 0.
    pub const fn new() -> Self {
        Sequencer(AtomicU64::new(0))
    }

    /// The next number. Each is given out once.
    pub fn ticket(&self) -> u64 {
        self.0.fetch_add(1, Ordering::AcqRel)
    }

    /// The number that the next [`ticket`](Self::ticket) will have.
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
