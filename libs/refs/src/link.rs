//! Links: what a weak reference looks at to learn whether its object lives.
//!
//! A link is *type-stable*: it is never returned to the allocator, only reused for another object under a new generation. A
//! weak reference names a link and a generation; the object lives as long as the two agree. A living object's generation is
//! odd, a free link's even.
//!
//! Generations have 64 bits: one link reused every nanosecond would need 292 years to use them up. A link that has done so
//! ([`LAST_GENERATION`]) is retired: it is never used again, so no old name can come to life.
//!
//! Invariants: the generation is written only by whoever makes or ends the object (one at a time); a link is in at most one
//! queue, and its `place` is touched only by whoever has that queue to itself.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::ptr::NonNull;

use crate::object::Header;
use crate::sync::{AtomicBool, AtomicU64, Ordering, global};
use crate::{SpinLock, WaitList, Waker};

/// The generation of a link that has had as many objects as there are generations.
const LAST_GENERATION: u64 = u64::MAX - 1;

/// One object's sign of life.
pub struct Link {
    generation: AtomicU64,
    /// Whether somebody may be in `watchers`.
    watched: AtomicBool,
    /// Who is to be woken when the object dies.
    watchers: WaitList,
    /// Its place in a [`LinkQueue`].
    place: UnsafeCell<Place>,
}

// SAFETY: `place` is touched only by whoever has the link's queue to itself; everything else is atomic or locked.
unsafe impl Sync for Link {}
// SAFETY: the object that `place` may name is freed by whoever takes the link out of its queue, which only a queue that
// admits it (see `crate::mode`) lets another thread do.
unsafe impl Send for Link {}

#[derive(Clone, Copy)]
struct Place {
    next: Option<&'static Link>,
    dead: Option<Dead>,
}

/// An object that is dead and not yet freed.
#[derive(Clone, Copy)]
pub(crate) struct Dead {
    pub(crate) object: NonNull<Header>,
    /// When it died, in the epochs of [`reclaim`](crate::reclaim).
    pub(crate) epoch: u64,
}

/// Links, first come first served. The links themselves are the queue: nothing is allocated when an object dies, and nothing
/// can fail.
#[derive(Default)]
pub(crate) struct LinkQueue {
    first: Option<&'static Link>,
    last: Option<&'static Link>,
}

impl LinkQueue {
    pub(crate) const fn new() -> Self {
        LinkQueue { first: None, last: None }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Enters a link, which is in no queue, at the end.
    #[inline]
    pub(crate) fn push(&mut self, link: &'static Link, dead: Option<Dead>) {
        // SAFETY: the link is in no queue, and its last one is in this queue: their places are ours (module comment).
        unsafe {
            *link.place.get() = Place { next: None, dead };
            match self.last.replace(link) {
                Some(last) => (*last.place.get()).next = Some(link),
                None => self.first = Some(link),
            }
        }
    }

    /// Takes the first link out, if `choose` accepts it.
    #[inline]
    pub(crate) fn pop(&mut self, choose: impl FnOnce(Option<Dead>) -> bool) -> Option<(&'static Link, Option<Dead>)> {
        let link = self.first?;
        // SAFETY: the link is in this queue, so its place is ours (module comment).
        let place = unsafe { *link.place.get() };
        if !choose(place.dead) {
            return None;
        }
        self.first = place.next;
        if self.first.is_none() {
            self.last = None;
        }
        Some((link, place.dead))
    }
}

/// How many links are allocated at a time.
const CHUNK: usize = if cfg!(ebb_loom) { 1 } else { 64 };

global! {
    static FREE: SpinLock<LinkQueue> = SpinLock::new(LinkQueue::new());
}

impl Link {
    fn new(generation: u64) -> Self {
        Link {
            generation: AtomicU64::new(generation),
            watched: AtomicBool::new(false),
            watchers: WaitList::new(),
            place: UnsafeCell::new(Place { next: None, dead: None }),
        }
    }

    /// A link for a new object, from those that all cores share.
    #[inline]
    pub(crate) fn take() -> &'static Link {
        FREE.with(|free| free.pop(|_| true).map(|(link, _)| link).unwrap_or_else(|| Link::take_new(free)))
    }

    /// A link that nobody used before; its neighbours go to `free`.
    #[cold]
    pub(crate) fn take_new(free: &mut LinkQueue) -> &'static Link {
        let chunk: Vec<Link> = (0..CHUNK).map(|_| Link::new(0)).collect();
        let chunk: &'static [Link] = Box::leak(chunk.into_boxed_slice());
        chunk[1..].iter().for_each(|link| free.push(link, None));
        &chunk[0]
    }

    /// Gives a link whose object is freed to the next one, on whichever core.
    #[inline]
    pub(crate) fn give(&'static self) {
        if !self.is_used_up() {
            FREE.with(|free| free.push(self, None));
        }
    }

    /// Whether the link must not be used again.
    #[inline(always)]
    pub(crate) fn is_used_up(&self) -> bool {
        self.generation.load(Ordering::Relaxed) >= LAST_GENERATION
    }

    /// Names the link's next object, which does not live yet.
    #[inline(always)]
    pub(crate) fn conceive(&'static self) -> Unborn {
        Unborn { link: self, generation: self.generation.load(Ordering::Relaxed) + 1 }
    }

    /// Whether the object of `generation` lives.
    #[inline(always)]
    pub(crate) fn is(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Acquire) == generation
    }

    /// Ends the life of the object: no upgrade succeeds from here on. `publish` is an atomic read-modify-write of one place,
    /// the same one that [`watch`](Self::watch) is given; watchers are woken after it.
    #[inline(always)]
    pub(crate) fn invalidate<R>(&self, publish: impl FnOnce() -> R) -> R {
        // Only the last owner writes here: a store does.
        self.generation.store(self.generation.load(Ordering::Relaxed) + 1, Ordering::Release);
        let published = publish();
        if self.watched.load(Ordering::Relaxed) {
            self.watched.store(false, Ordering::Relaxed);
            self.watchers.wake_all();
        }
        published
    }

    /// Has `waker` woken when the object of `generation` dies; at once if it is dead already.
    ///
    /// Of this function and `invalidate` one is first at the place that both `publish`: either the waker is seen there, or the
    /// death is seen here.
    pub(crate) fn watch<R>(&self, generation: u64, waker: Waker, publish: impl FnOnce() -> R) {
        if self.is(generation) {
            self.watchers.enter(waker);
            self.watched.store(true, Ordering::Release);
            publish();
        }
        if !self.is(generation) {
            waker.wake();
        }
    }
}

/// The name of an object that is being made. Each generation is named once: by [`show`](Self::show) the object begins to live
/// under it; if the object never comes to be, which is to say that this is dropped, no other object gets it either.
pub(crate) struct Unborn {
    link: &'static Link,
    generation: u64,
}

impl Unborn {
    #[inline(always)]
    pub(crate) fn link(&self) -> &'static Link {
        self.link
    }

    #[inline(always)]
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Begins the life of the object.
    #[inline(always)]
    pub(crate) fn show(self) {
        self.link.generation.store(self.generation, Ordering::Release);
        core::mem::forget(self);
    }
}

impl Drop for Unborn {
    #[cold]
    fn drop(&mut self) {
        self.link.generation.store(self.generation + 1, Ordering::Release);
    }
}

#[cfg(all(test, not(ebb_loom)))]
mod tests {
    use super::*;

    fn leak(generation: u64) -> &'static Link {
        Box::leak(Box::new(Link::new(generation)))
    }

    #[test]
    fn a_link_at_its_last_generation_is_retired_when_its_object_is_freed() {
        let link = leak(LAST_GENERATION - 4);
        let mut lives = Vec::new();
        let mut free = LinkQueue::new();
        while !link.is_used_up() {
            let unborn = link.conceive();
            lives.push(unborn.generation());
            unborn.show();
            link.invalidate(|| ());
            free.push(link, None);
            assert!(free.pop(|_| true).is_some());
        }
        assert_eq!(lives, [u64::MAX - 4, u64::MAX - 2], "the last odd generation but one, and none after it");
        assert!(lives.iter().all(|&generation| !link.is(generation)));
        link.give();
        let taken: Vec<_> = (0..2 * CHUNK).map(|_| Link::take()).collect();
        assert!(taken.iter().all(|other| !core::ptr::eq(*other, link)), "a retired link is never taken again");
    }

    #[test]
    fn the_generation_of_an_object_that_never_came_to_be_is_used_up() {
        let link = leak(0);
        let never = link.conceive().generation();
        link.conceive().show();
        assert!(!link.is(never));
        assert!(link.is(never + 2));
        let last = leak(LAST_GENERATION - 2);
        drop(last.conceive());
        assert!(last.is_used_up(), "also the last one");
    }

    #[test]
    fn links_come_out_of_a_queue_in_the_order_in_which_they_were_put_in() {
        let links = [leak(0), leak(0), leak(0)];
        let mut queue = LinkQueue::new();
        links.iter().for_each(|link| queue.push(link, None));
        for link in links {
            assert!(queue.pop(|_| false).is_none(), "what is not chosen stays");
            assert!(core::ptr::eq(queue.pop(|_| true).unwrap().0, link));
        }
        assert!(queue.is_empty() && queue.pop(|_| true).is_none());
    }
}
