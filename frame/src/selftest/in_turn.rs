//! [`POLICY`]: the tests' own policy, which leaves the clock and its alarm to them.

use alloc::vec::Vec;

use refs::SpinLock;
use tasks::{Fifo, Policy, Ready, Why, Worker};

use crate::cpu;

/// First come, first served, on whichever core is free.
pub static POLICY: InTurn = InTurn { ready: Fifo::new(), idle: SpinLock::new(Vec::new()) };

/// See [`POLICY`].
pub struct InTurn {
    ready: Fifo,
    /// The cores that found nothing to run when they last looked.
    idle: SpinLock<Vec<&'static Worker>>,
}

impl InTurn {
    /// How many cores found nothing to run when they last looked.
    pub(super) fn idle_cores(&self) -> usize {
        self.idle.with(|idle| idle.len())
    }
}

impl Policy for InTurn {
    fn enqueue(&self, ready: Ready, why: Why) {
        self.ready.enqueue(ready, why);
        let idle = self.idle.with(core::mem::take);
        for worker in idle {
            worker.request_yield();
            cpu::interrupt(worker.number());
        }
    }

    fn next(&self, worker: &'static Worker) -> Option<Ready> {
        // What is entered after this look finds the core among those that idle.
        self.idle.with(|idle| {
            let next = self.ready.next(worker);
            if next.is_none() && !idle.iter().any(|known| core::ptr::eq(*known, worker)) {
                idle.push(worker);
            }
            next
        })
    }
}
