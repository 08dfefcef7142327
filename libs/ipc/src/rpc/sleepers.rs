//! The tasks that wait on one end of a channel.

use refs::{NoSuspend, WaitList, Waker};

use crate::{Link, WeakLink};

/// Whoever waits on one end, to be woken when the peer rings. Doorbells hold it: it keeps neither tasks nor the channel alive.
#[derive(Debug)]
pub struct Sleepers {
    link: WeakLink,
    waiting: WaitList,
}

impl Sleepers {
    /// For the end that this is the link of.
    pub fn new(link: &Link) -> Sleepers {
        Sleepers { link: link.downgrade(), waiting: WaitList::new() }
    }

    /// Wakes all of them. May be called from any thread.
    ///
    /// Each looks again, and says anew that it sleeps if it finds nothing: so the sign that somebody sleeps is taken away *first*.
    /// A task that enters later than that sets it again.
    pub fn ring(&self) {
        if let Some(link) = self.link.upgrade() {
            link.is_awake();
        }
        self.waiting.wake_all();
    }

    /// The end died: all operations on it fail, and those who wait are woken to see it.
    pub fn died(&self) {
        if let Some(link) = self.link.upgrade() {
            link.mark_dead();
        }
        self.ring();
    }

    /// Enters a task that is about to wait; it has to look once more after that.
    pub(super) fn enter(&self, waker: Waker, link: &Link, cx: &impl NoSuspend) {
        self.waiting.register(waker, cx);
        link.will_sleep();
    }
}
