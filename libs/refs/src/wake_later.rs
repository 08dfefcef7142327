//! [`WakeLater`]: wakers that somebody else is to wake than whoever had them woken.
//!
//! What ends an object wakes who waits for it, and nobody knows beforehand how many that are. Where a task *serves* them, whoever wakes all of a [`WaitList`] wakes no more than
//! [`FEW`] of them itself; the others are handed over, as a whole and in their order, which takes the same time however many they are and allocates nothing. The task wakes them in its own time.
//!
//! What was handed over is owned here: neither a waiter that ends before it was woken nor the end of the object whose list it was takes anything away from it. A waker whose wait is over meanwhile does nothing.

use crate::sync::{AtomicBool, Ordering, const_fn};
use crate::wait_queue::WaitQueue;
use crate::{NoSuspend, SpinLock, WaitList, Waker};

/// So many wakers does the one who has all woken wake itself, where others are served.
pub(crate) const FEW: usize = 2;

/// So many are woken in one piece of work.
const AT_A_TIME: usize = 32;

/// Those of all wait lists of the program.
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
pub static LATER: WakeLater = WakeLater::new();

/// Wakers that were handed over, in the order in which that was.
#[derive(Debug)]
pub struct WakeLater {
    is_served: AtomicBool,
    left: SpinLock<Left>,
    /// Where the task waits that serves them.
    server: WaitList,
}

/// What is left to wake. A list of queues through themselves: nothing is allocated to enter one.
#[derive(Debug, Default)]
struct Left {
    /// Whose turn is next first.
    next: WaitQueue,
    /// Those that came since, the last one first.
    newest: WaitQueue,
}

impl Left {
    fn push(&mut self, mut wakers: WaitQueue) {
        wakers.put_before(core::mem::take(&mut self.newest));
        self.newest = wakers;
    }

    /// Enters one before all others.
    fn put_back(&mut self, mut wakers: WaitQueue) {
        wakers.put_before(core::mem::take(&mut self.next));
        self.next = wakers;
    }

    fn pop(&mut self) -> Option<WaitQueue> {
        if self.next.is_empty() {
            while !self.newest.is_empty() {
                let behind = self.newest.take_behind();
                let last = core::mem::replace(&mut self.newest, behind);
                self.put_back(last);
            }
        }
        let behind = self.next.take_behind();
        let first = core::mem::replace(&mut self.next, behind);
        (!first.is_empty()).then_some(first)
    }
}

impl WakeLater {
    const_fn! {
        /// Nothing is left, and nobody serves it.
        pub fn new() -> Self {
            WakeLater {
                is_served: AtomicBool::new(false),
                left: SpinLock::new(Left { next: WaitQueue::new(), newest: WaitQueue::new() }),
                server: WaitList::new(),
            }
        }
    }

    /// Whether a task wakes what is handed over.
    #[inline]
    pub fn is_served(&self) -> bool {
        self.is_served.load(Ordering::Relaxed)
    }

    /// The calling task wakes what is handed over, from now on for ever: it enters this waker, [wakes](Self::wake_some) what there is, and waits if there was nothing. There can be one such task.
    pub fn serve(&self, waker: Waker, cx: &impl NoSuspend) {
        self.server.register(waker, cx);
        self.is_served.store(true, Ordering::Relaxed);
    }

    /// Wakes some of those whose turn is next; false if there are none.
    pub fn wake_some(&self) -> bool {
        let Some(mut wakers) = self.left.with(Left::pop) else { return false };
        for _ in 0..AT_A_TIME {
            let Some(waker) = wakers.pop() else { return true };
            waker.wake();
        }
        if !wakers.is_empty() {
            self.left.with(|left| left.put_back(wakers));
        }
        true
    }

    /// Takes wakers over.
    pub(crate) fn leave(&self, wakers: WaitQueue) {
        if !wakers.is_empty() {
            self.left.with(|left| left.push(wakers));
            self.server.wake_one();
        }
    }
}

impl Default for WakeLater {
    fn default() -> Self {
        WakeLater::new()
    }
}
