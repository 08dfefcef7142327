//! Links: what a weak reference looks at to learn whether its object lives.
//!
//! A link is *type-stable*: it is never returned to the allocator, only reused for another object under a new generation. A
//! weak reference names a link and a generation; the object lives as long as the two agree. A living object's generation is odd,
//! a free link's even. Generations have 64 bits: one link
//! reused every nanosecond would need 584 years to wrap.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::{SpinLock, WaitList};

/// One object's sign of life.
pub(crate) struct Link {
    generation: AtomicU64,
    /// Who is to be woken when the object dies.
    pub(crate) watchers: WaitList,
}

const CHUNK: usize = 64;

static FREE: SpinLock<Vec<&'static Link>> = SpinLock::new(Vec::new());

impl Link {
    /// A link for a new object, and the generation under which it will live once [`show`](Self::show) is called.
    pub(crate) fn acquire() -> (&'static Link, u64) {
        let link = FREE.with(|free| {
            free.pop().unwrap_or_else(|| {
                let chunk: Vec<Link> =
                    (0..CHUNK).map(|_| Link { generation: AtomicU64::new(0), watchers: WaitList::new() }).collect();
                let chunk: &'static [Link] = Box::leak(chunk.into_boxed_slice());
                free.extend(chunk[1..].iter());
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
        FREE.with(|free| free.push(self));
    }
}
