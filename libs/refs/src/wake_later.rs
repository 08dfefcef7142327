//! [`WakeLater`]: wakers that somebody else is to wake than whoever had them woken.
//!
//! What ends an object wakes who waits for it, and nobody knows beforehand how many that are. Where a program says [who is not to pay for that](WakeLater::begin), whoever does not wakes no more than
//! the first of a [`WaitList`] himself; the others are handed over, as a whole and in their order, which takes the same time however many they are and allocates nothing. A task wakes them in its own time.
//!
//! What was handed over is owned here: neither a waiter that ends before it was woken nor the end of the object whose list it was takes anything away from it. A waker whose wait is over meanwhile does nothing.
//!
//! Some wakers stand for no task, but note what has happened, and others look at that without having waited. Who is to see all that was done before looks here first, [whether anything is
//! left](WakeLater::is_done), and [wakes](WakeLater::wake_some) what there is.

use crate::sync::{AtomicPtr, AtomicUsize, Ordering, const_fn};
use crate::wait_queue::WaitQueue;
use crate::{NoSuspend, SpinLock, WaitList, Waker};

/// So many are woken in one piece of work.
const AT_A_TIME: usize = 32;

/// Those of all wait lists of the program.
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
pub static LATER: WakeLater = WakeLater::new();

// Made anew for each interleaving. It is for nobody: wait lists do not ask there.
#[cfg(ebb_shuttle)]
shuttle::lazy_static! {
    /// Those of all wait lists of the program.
    pub static ref LATER: WakeLater = WakeLater::new();
}

/// Whether what runs on the core of this number has others wake.
pub type IsFor = fn(core: usize) -> bool;

/// Wakers that were handed over, in the order in which that was.
#[derive(Debug)]
pub struct WakeLater {
    /// Who does: null, or what [`begin`](Self::begin) was given. It is read wherever several wait for the same, so it is no lock.
    is_for: AtomicPtr<IsFor>,
    left: SpinLock<Left>,
    /// How many queues are left, with the one of which some are being woken.
    count: AtomicUsize,
    /// Held by who wakes some: who finds that nothing is left sees what all of them did.
    waking: SpinLock<()>,
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
        /// Nothing is left, and it is for nobody.
        pub fn new() -> Self {
            WakeLater {
                is_for: AtomicPtr::new(core::ptr::null_mut()),
                left: SpinLock::new(Left { next: WaitQueue::new(), newest: WaitQueue::new() }),
                count: AtomicUsize::new(0),
                waking: SpinLock::new(()),
                server: WaitList::new(),
            }
        }
    }

    /// From now on it is for what runs on a core of which `is_for` says so, given the number of the core that asks. It is asked where several wait for the same, and takes no lock that whoever
    /// wakes might hold.
    pub fn begin(&self, is_for: &'static IsFor) {
        self.is_for.store(core::ptr::from_ref(is_for).cast_mut(), Ordering::Release);
    }

    /// Whether what runs has others wake.
    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    pub(crate) fn is_for_running(&self) -> bool {
        // SAFETY: null, or what `begin` was given, which lives for ever and is only read.
        let Some(is_for) = (unsafe { self.is_for.load(Ordering::Acquire).as_ref() }) else { return false };
        crate::processor::current_core().is_some_and(is_for)
    }

    /// The calling task wakes what is handed over: it enters this waker, [wakes](Self::wake_some) what there is, and waits if there was nothing. There can be one such task.
    pub fn serve(&self, waker: Waker, cx: &impl NoSuspend) {
        self.server.register(waker, cx);
    }

    /// Whether all are woken whom others had handed over before the call.
    #[inline(always)]
    pub fn is_done(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Wakes some of those whose turn is next; false if there are none. Wakers are called with a lock held: none of them may lead to a call of this.
    pub fn wake_some(&self) -> bool {
        self.waking.with(|()| {
            let Some(mut wakers) = self.left.with(Left::pop) else { return false };
            wakers.take_first(AT_A_TIME, |waker| _ = waker.wake());
            if wakers.is_empty() {
                self.count.fetch_sub(1, Ordering::Release);
            } else {
                self.left.with(|left| left.put_back(wakers));
            }
            true
        })
    }

    /// Takes wakers over; how many.
    pub(crate) fn leave(&self, wakers: WaitQueue) -> usize {
        let count = wakers.len();
        if count > 0 {
            // Before the caller goes on: whoever hears of what it does then finds that something is left.
            self.count.fetch_add(1, Ordering::Relaxed);
            self.left.with(|left| left.push(wakers));
            self.server.wake_one();
        }
        count
    }
}

impl Default for WakeLater {
    fn default() -> Self {
        WakeLater::new()
    }
}
