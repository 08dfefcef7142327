//! Links: what a weak reference looks at to learn whether its object lives.
//!
//! A link is *type-stable*: it is never returned to the allocator, only reused for another object under a new generation. A
//! weak reference names a link and a generation; the object lives as long as the two agree. A living object's generation is odd,
//! a free link's even. Generations have 64 bits: one link
//! reused every nanosecond would need 584 years to wrap.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::reclaim::Dead;
use crate::{SpinLock, WaitList};

/// One object's sign of life.
pub(crate) struct Link {
    generation: AtomicU64,
    /// Who is to be woken when the object dies.
    pub(crate) watchers: WaitList,
    /// Its place in a [`LinkQueue`], while its object is dead.
    place: SpinLock<Place>,
}

#[derive(Default)]
struct Place {
    next: Option<&'static Link>,
    dead: Option<Dead>,
}

/// Links of dead objects, first come first served. The links themselves are the queue: nothing is allocated when an object dies, and nothing can
/// fail.
#[derive(Default)]
pub(crate) struct LinkQueue {
    first: Option<&'static Link>,
    last: Option<&'static Link>,
}

impl LinkQueue {
    pub(crate) const fn new() -> Self {
        LinkQueue { first: None, last: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Enters a link, which is in no queue, at the end.
    pub(crate) fn push(&mut self, link: &'static Link, dead: Option<Dead>) {
        link.place.with(|place| *place = Place { next: None, dead });
        match self.last.replace(link) {
            Some(last) => last.place.with(|place| place.next = Some(link)),
            None => self.first = Some(link),
        }
    }

    /// Takes the first link out, if `choose` accepts it.
    pub(crate) fn pop(&mut self, choose: impl FnOnce(Option<&Dead>) -> bool) -> Option<(&'static Link, Option<Dead>)> {
        let link = self.first?;
        let place = link.place.with(|place| choose(place.dead.as_ref()).then(|| core::mem::take(place)))?;
        self.first = place.next;
        if self.first.is_none() {
            self.last = None;
        }
        Some((link, place.dead))
    }
}

const CHUNK: usize = 64;

static FREE: SpinLock<LinkQueue> = SpinLock::new(LinkQueue::new());

impl Link {
    /// A link for a new object, and the generation under which it will live once [`show`](Self::show) is called.
    pub(crate) fn acquire() -> (&'static Link, u64) {
        let link = FREE.with(|free| {
            free.pop(|_| true).map(|(link, _)| link).unwrap_or_else(|| {
                let new = |_| Link {
                    generation: AtomicU64::new(0),
                    watchers: WaitList::new(),
                    place: SpinLock::new(Place { next: None, dead: None }),
                };
                let chunk: Vec<Link> = (0..CHUNK).map(new).collect();
                let chunk: &'static [Link] = Box::leak(chunk.into_boxed_slice());
                chunk[1..].iter().for_each(|link| free.push(link, None));
                &chunk[0]
            })
        });
        (link, link.generation.load(Ordering::Relaxed) + 1)
    }

    /// Begins the life of the object of `generation`.
    pub(crate) fn show(&self, generation: u64) {
        self.generation.store(generation, Ordering::Release);
    }

    /// Whether the object of `generation` lives.
    #[inline(always)]
    pub(crate) fn is(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Acquire) == generation
    }

    /// Ends the life of the object: no upgrade succeeds from here on, and watchers are woken.
    pub(crate) fn invalidate(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.watchers.wake_all();
    }

    /// Gives the link of a dead object to the next one.
    pub(crate) fn release(&'static self) {
        FREE.with(|free| free.push(self, None));
    }
}
