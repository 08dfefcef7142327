//! The run queue, and what other threads add to it.
//!
//! A ring of `mask + 1` entries. `head` and `tail` count up without wrapping, from the middle of the range, so an index names one
//! entry for ever, and an entry's neighbours can be taken at both ends. A task that is taken out of the middle leaves a hole
//! (`None`), which is skipped when its turn comes.
//!
//! Invariant: `tail - head <= mask`, so there is room for one more; whoever pushes without popping calls
//! [`Runtime::make_room`] afterwards.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;

use refs::{Cx, reclaim};

use super::Idle;
use super::layout::{Awe, Runtime, states};
use crate::atomic::Ordering;
use crate::no_unwind::must_not_unwind;

/// How many entries the ring has at first.
const FIRST_ENTRIES: usize = 64;
/// `head` and `tail` of a new queue.
const START: u64 = 1 << 62;

impl Runtime {
    /// Makes the queue of a new run-time.
    pub(crate) fn create_queue(&self) {
        self.head.set(START);
        self.tail.set(START);
        self.ring.set(new_ring(FIRST_ENTRIES));
        self.mask.set(FIRST_ENTRIES as u64 - 1);
    }

    #[inline(always)]
    fn entry(&self, index: u64) -> &Cell<Option<&'static Awe>> {
        // SAFETY: the ring has `mask + 1` entries.
        unsafe { &*self.ring.get().add((index & self.mask.get()) as usize) }
    }

    /// Enters a task behind all others. Followed by [`pop`](Self::pop) or [`make_room`](Self::make_room).
    #[inline(always)]
    pub(crate) fn push_back(&self, awe: &'static Awe) {
        let tail = self.tail.get();
        self.entry(tail).set(Some(awe));
        awe.position.set(tail);
        self.tail.set(tail + 1);
    }

    /// Enters a task before all others. Followed by [`make_room`](Self::make_room).
    #[inline(always)]
    pub(crate) fn push_front(&self, awe: &'static Awe) {
        let head = self.head.get() - 1;
        self.entry(head).set(Some(awe));
        awe.position.set(head);
        self.head.set(head);
    }

    /// Restores the invariant after a push.
    #[inline(always)]
    pub(crate) fn make_room(&self) {
        if self.tail.get() - self.head.get() > self.mask.get() {
            self.close_ranks();
        }
    }

    /// Enters a task behind all others and takes the first one, which may be the same. `None` if it is a hole.
    #[inline(always)]
    pub(crate) fn rotate(&self, awe: &'static Awe) -> Option<&'static Awe> {
        let (head, tail, mask, ring) = (self.head.get(), self.tail.get(), self.mask.get(), self.ring.get());
        self.head.set(head + 1);
        self.tail.set(tail + 1);
        awe.position.set(tail);
        // SAFETY: the ring has `mask + 1` entries.
        unsafe {
            (*ring.add((tail & mask) as usize)).set(Some(awe));
            (*ring.add((head & mask) as usize)).get()
        }
    }

    /// Takes the first entry. `None` if it is a hole; not to be called when the queue is empty.
    #[inline(always)]
    pub(crate) fn pop_entry(&self) -> Option<&'static Awe> {
        let head = self.head.get();
        self.head.set(head + 1);
        self.entry(head).get()
    }

    /// Takes the first task.
    pub(crate) fn pop(&self) -> Option<&'static Awe> {
        while self.head.get() != self.tail.get() {
            if let Some(awe) = self.pop_entry() {
                return Some(awe);
            }
        }
        None
    }

    /// Whether a task is in the queue.
    #[inline(always)]
    pub(crate) fn is_queued(&self, awe: &Awe) -> bool {
        let position = awe.position.get();
        position >= self.head.get()
            && position < self.tail.get()
            && self.entry(position).get().is_some_and(|there| core::ptr::eq(there, awe))
    }

    /// Takes a task, which is in the queue, out of it.
    #[inline(always)]
    pub(crate) fn remove(&self, awe: &Awe) {
        let position = awe.position.get();
        if position == self.head.get() {
            self.head.set(position + 1);
        } else {
            self.entry(position).set(None);
        }
    }

    /// Throws out the holes, and doubles the ring if it is still more than half full.
    #[cold]
    #[inline(never)]
    pub(crate) fn close_ranks(&self) {
        let tasks: Vec<&'static Awe> =
            (self.head.get()..self.tail.get()).filter_map(|index| self.entry(index).get()).collect();
        let entries = self.mask.get() as usize + 1;
        if tasks.len() > entries / 2 {
            let old = core::ptr::slice_from_raw_parts_mut(self.ring.get().cast_mut(), entries);
            self.ring.set(new_ring(entries * 2));
            self.mask.set(entries as u64 * 2 - 1);
            // SAFETY: made by `new_ring` with this length, and replaced just now.
            drop(unsafe { Box::from_raw(old) });
        }
        self.head.set(START);
        self.tail.set(START);
        for task in tasks {
            self.push_back(task);
        }
    }

    /// A task that may run, if there is any; takes in what other threads sent.
    #[inline(never)]
    pub(crate) fn take_ready(&'static self) -> Option<&'static Awe> {
        self.take_in();
        self.pop()
    }

    /// The next task, waiting for one if need be. For whoever found the queue's first entry to be a hole, or the queue empty.
    #[cold]
    #[inline(never)]
    #[cfg_attr(false, ebb_lint::never_suspends)]
    pub(crate) fn wait_for_next(&'static self, cx: &mut Cx) -> &'static Awe {
        loop {
            if let Some(awe) = self.take_ready() {
                return awe;
            }
            if let Some(idle) = self.idle.with(|idle| *idle) {
                let core = self.core.get() as usize;
                // SAFETY: it is the number under which this thread registered.
                must_not_unwind("`Idle::wait`", || unsafe { reclaim::while_idle(cx, core, || self.idle_in(idle)) });
            }
        }
    }

    /// Idles until another thread asks for something, or until `idle` has had enough.
    fn idle_in(&'static self, idle: &dyn Idle) {
        self.remote.sleep_if_empty(|| idle.wait(self));
    }

    /// The task that runs next when the current one cannot.
    #[inline(always)]
    #[cfg_attr(false, ebb_lint::never_suspends)]
    pub(crate) fn next(&'static self, cx: &mut Cx) -> &'static Awe {
        self.look_at_remote();
        if self.head.get() != self.tail.get()
            && let Some(awe) = self.pop_entry()
        {
            return awe;
        }
        self.wait_for_next(cx)
    }

    /// Takes in what other threads sent, if they sent anything.
    #[inline(always)]
    pub(crate) fn look_at_remote(&'static self) {
        if !self.remote.is_empty() {
            self.take_in();
        }
    }

    /// Empties the list of other threads' requests into the queue, first come first served.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_in(&'static self) {
        self.remote.take_in(|awe, request| {
            let by_waker = request & 1 != 0 && awe.state() == states::WAITING;
            let by_name =
                request & !1 == awe.life.load(Ordering::Relaxed) - awe.state() && awe.state() == states::PARKED;
            if by_waker || by_name {
                self.make_ready(awe);
            }
        });
    }

    /// Enters a parked task behind all others.
    pub(crate) fn make_ready(&self, awe: &'static Awe) {
        awe.set_state(states::ACTIVE);
        self.push_back(awe);
        self.make_room();
    }

    /// Asks the owner of `awe` to run it: by its waker, or by its name. From any thread.
    pub(crate) fn request(awe: &'static Awe, change: impl Fn(u64) -> u64) {
        if awe.runtime.remote.request(awe, change) {
            awe.runtime.wake_up();
        }
    }
}

fn new_ring(entries: usize) -> *const Cell<Option<&'static Awe>> {
    let ring: Box<[Cell<Option<&'static Awe>>]> = (0..entries).map(|_| Cell::new(None)).collect();
    Box::leak(ring).as_ptr()
}
