//! How much memory all caches have, and how some of it is had back.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc, WaitList, WeakRc};

use super::Cache;

/// So many pages are taken away at a time.
pub(super) const TAKEN_AT_ONCE: usize = 64;

/// How much of all caches is clean, and how much dirty, in pages.
pub(super) static CLEAN: AtomicUsize = AtomicUsize::new(0);
pub(super) static DIRTY: AtomicUsize = AtomicUsize::new(0);
/// Writers wait here while there are too many dirty pages.
pub(super) static FEWER_DIRTY: WaitList = WaitList::new();
/// All caches.
pub(super) static CACHES: SpinLock<BTreeMap<usize, StrongRc<Cache>>> = SpinLock::new(BTreeMap::new());
/// Where the next round of those whose pages are taken away goes on in [`CACHES`].
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The number of a cache in [`CACHES`].
pub(super) fn name_number(cache: WeakRc<Cache>) -> usize {
    cache.address()
}

/// How many pages can be had back.
pub fn clean_pages() -> usize {
    CLEAN.load(Ordering::Relaxed)
}

/// How many pages wait to be written back.
pub fn dirty_pages() -> usize {
    DIRTY.load(Ordering::Relaxed)
}

/// From so many dirty pages on they are written back at once.
pub(in crate::block) fn background_limit() -> usize {
    frame::mm::frame_count() / 20
}

/// Whether so much is dirty that it is to be written back at once.
pub fn has_many_dirty() -> bool {
    dirty_pages() > background_limit()
}

/// Whether writers must wait.
pub(super) fn is_over_limit() -> bool {
    dirty_pages() > 2 * background_limit()
}

/// The tasks that never wait because much is dirty: what they write is what others have dirty.
static EXEMPT: SpinLock<Vec<tasks::TaskRef>> = SpinLock::new(Vec::new());

/// The calling task, which lives for ever, writes what others have dirty, and so does not wait until less is.
pub fn exempt(cx: &Cx) {
    EXEMPT.lock(cx).push(tasks::current(cx));
}

pub(super) fn is_exempt(cx: &Cx) -> bool {
    EXEMPT.lock(cx).contains(&tasks::current(cx))
}

/// Takes some clean pages away; whether there were any. It is called by allocations that find no memory, with any locks held, and neither takes nor frees any of the heap's.
pub fn give_back() -> bool {
    if clean_pages() == 0 {
        return false;
    }
    let taken = CACHES.try_with(|caches| {
        let mut taken = 0;
        let next = NEXT.load(Ordering::Relaxed);
        for (number, cache) in caches.range(next..).chain(caches.range(..next)) {
            taken +=
                cache.with(|cache| cache.content.try_with(|content| content.take_away(TAKEN_AT_ONCE)).unwrap_or(0));
            if taken >= TAKEN_AT_ONCE {
                // It may have more.
                NEXT.store(*number, Ordering::Relaxed);
                break;
            }
        }
        taken
    });
    taken.unwrap_or(0) > 0
}
