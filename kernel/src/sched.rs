//! Which task runs next.

use tasks::{Policy, Ready, Why};

/// The scheduler of all cores.
pub static SCHEDULER: Scheduler = Scheduler {};

/// Fair and real-time classes.
pub struct Scheduler {}

impl Policy for Scheduler {
    fn enqueue(&self, _ready: Ready, _why: Why) {}
    fn next(&self) -> Option<Ready> {
        None
    }
}
