//! What other threads ask of a run-time: a list onto which they push, without a lock, and which its owner empties, first come first served.
//!
//! What is asked for is in the list at most once: its word of requests is 0 exactly while it is not. So who changes the word from 0 pushes it;
//! who finds another value has only added to a request that the owner has yet to see.
//!
//! Either the owner sees what was pushed before it sleeps, or who pushed sees that it sleeps: both write one word and read the other's after
//! that, sequentially consistent.

use core::ptr::{from_ref, null_mut};

use crate::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, between_sequentially_consistent};

/// What other threads may ask for.
pub(crate) trait Requested: Sized + Sync + 'static {
    /// The next one in the list.
    fn next(&self) -> &AtomicPtr<Self>;
    /// What was asked; 0 while it is not in the list.
    fn request(&self) -> &AtomicU64;
}

/// What other threads write; in a cache line of its own.
#[repr(C, align(64))]
pub(crate) struct RemoteList<T> {
    /// Latest first.
    first: AtomicPtr<T>,
    /// 1 while the owner idles or is about to: who pushes then has to wake it.
    pub(crate) sleeping: AtomicU32,
}

impl<T: Requested> RemoteList<T> {
    pub(crate) fn new() -> Self {
        RemoteList { first: AtomicPtr::new(null_mut()), sleeping: AtomicU32::new(0) }
    }

    /// Whether nothing was asked for, as far as the owner knows.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.load(Ordering::Relaxed).is_null()
    }

    /// Adds to what is asked of `item`. Whether the owner is to be woken. From any thread.
    #[must_use = "the owner may sleep"]
    pub(crate) fn request(&self, item: &'static T, change: impl Fn(u64) -> u64) -> bool {
        let before = item.request().fetch_update(Ordering::AcqRel, Ordering::Relaxed, |old| Some(change(old)));
        if before != Ok(0) {
            return false;
        }
        let own = from_ref(item).cast_mut();
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            item.next().store(first, Ordering::Relaxed);
            match self.first.compare_exchange_weak(first, own, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => first = now,
            }
        }
        between_sequentially_consistent();
        self.sleeping.load(Ordering::SeqCst) != 0
    }

    /// Empties the list: `serve` gets each item with what was asked of it, first come first served. By the owner.
    #[inline(always)]
    pub(crate) fn take_in(&self, mut serve: impl FnMut(&'static T, u64)) {
        let mut newest_first = self.first.swap(null_mut(), Ordering::Acquire);
        let mut oldest_first: *mut T = null_mut();
        while !newest_first.is_null() {
            // SAFETY: only `'static` items are in the list (`request`).
            let item: &'static T = unsafe { &*newest_first };
            let rest = item.next().load(Ordering::Relaxed);
            item.next().store(oldest_first, Ordering::Relaxed);
            oldest_first = newest_first;
            newest_first = rest;
        }
        while !oldest_first.is_null() {
            // SAFETY: as above.
            let item: &'static T = unsafe { &*oldest_first };
            oldest_first = item.next().load(Ordering::Relaxed);
            // From here on another thread may enter it again.
            let request = item.request().swap(0, Ordering::AcqRel);
            serve(item, request);
        }
    }

    /// Calls `wait` if nothing was asked for. It may sleep as long as `sleeping` is 1; [`request`](Self::request) says when that is to end. By
    /// the owner.
    pub(crate) fn sleep_if_empty(&self, wait: impl FnOnce()) {
        // A read-modify-write, which costs what such a store does: loom does not keep a store and the read-modify-writes of others in order.
        self.sleeping.swap(1, Ordering::SeqCst);
        between_sequentially_consistent();
        if self.first.load(Ordering::SeqCst).is_null() {
            wait();
        }
        if cfg!(ebb_loom) {
            self.sleeping.swap(0, Ordering::Relaxed);
        } else {
            self.sleeping.store(0, Ordering::Relaxed);
        }
    }
}
