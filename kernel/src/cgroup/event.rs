//! [`Event`]: what changes, for those who wait for the next change.

use core::sync::atomic::{AtomicU64, Ordering};

use refs::{NoSuspend, WaitList, Waker};

/// Something that changes now and then: what `cgroup.events` and its like show.
pub struct Event {
    changes: AtomicU64,
    /// Woken by each change.
    waiters: WaitList,
}

impl Default for Event {
    fn default() -> Self {
        // Who has seen nothing yet has missed something.
        Event { changes: AtomicU64::new(1), waiters: WaitList::new() }
    }
}

impl Event {
    /// It has changed. What is shown of it is changed before.
    pub fn notify(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.waiters.wake_all();
    }

    /// How often it has changed; never 0.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Enters a waker for the next change.
    pub fn watch(&self, waker: Waker, cx: &impl NoSuspend) {
        self.waiters.register(waker, cx);
    }
}
