//! Links: what a weak reference looks at to learn whether its object lives.
//!
//! A link is one word, and *type-stable*: it is never returned to the allocator, only reused for another object, so a name may be
//! kept for ever. A weak reference names a link and a generation, and the object lives as long as the word is that generation.
//!
//! | the word | the link |
//! | --- | --- |
//! | odd | names the living object of that generation |
//! | 0 | names none: the object is being made, or is dead and not yet freed |
//! | even | is free; the word is the address of the next free one |
//!
//! *No generation is used twice on a link.* A generation is made of the number of deaths there have been (the epoch of
//! [`reclaim`](crate::reclaim), or that of a realm), and between two objects of a link lies the death of the first: the number is
//! greater, whatever the word has been meanwhile. So nothing of a link need outlive its object but the word itself, and everything
//! else that an object needs (who waits for its death, its place among the dead) lies before the object and returns with it. The
//! number has 63 bits: at one death per nanosecond they last 292 years, and then the program ends rather than begin again.
//!
//! What stays after a peak is thus at most a word for each object that lived at once. Where somebody provides the memory of links
//! ([`link_pages`](crate::link_pages)) it is less: a page of which no link is used gives its memory back and is read as zeros from then on,
//! which name nothing. A realm keeps its words, and the heap's are kept for the next objects.
//!
//! Invariants: the word is written only by whoever makes or ends the object (one at a time), or whoever has the list of free links.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::ptr::NonNull;

use crate::SpinLock;
use crate::mode::Mode;
use crate::object::Header;
use crate::sync::{AtomicU64, Ordering, global};

/// The word of a link that names nothing.
const NOTHING: u64 = 0;

/// The most deaths that there can be.
const MOST_DEATHS: u64 = 1 << 62;

/// One object's sign of life.
#[repr(align(8))]
pub struct Link(AtomicU64);

/// Links that nobody uses, last come first served. The links themselves are the list: nothing is allocated when one is given back.
pub(crate) struct FreeLinks {
    first: Option<&'static Link>,
}

/// How many links are allocated at a time.
const CHUNK: usize = if cfg!(ebb_loom) { 1 } else { 512 };

/// The links that all threads share. Loom's and shuttle's atomics are larger than words, and have no pages.
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
type SharedLinks = crate::link_pages::Paged<Link>;
#[cfg(any(ebb_loom, ebb_shuttle))]
type SharedLinks = FreeLinks;

global! {
    static FREE: SpinLock<SharedLinks> = SpinLock::new(SharedLinks::new());
}

/// From now on the memory of shared links and of [pooled wake slots](crate::PooledSlot) comes from `provider`, and goes back to it after a peak. For who can let a page be read as zeros without
/// memory of its own, as a kernel can.
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
pub fn set_link_pages(provider: &'static dyn crate::link_pages::LinkPages) {
    FREE.with(|free| free.set_provider(provider));
    crate::pooled_slot::set_provider(provider);
}

// SAFETY: a link is one atomic word, of which names only read.
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
unsafe impl crate::link_pages::Paging for Link {
    #[inline(always)]
    fn next(&self) -> usize {
        self.next() as usize
    }

    #[inline(always)]
    fn set_next(&self, next: usize) {
        self.set_next(next as u64);
    }
}

impl FreeLinks {
    pub(crate) const fn new() -> Self {
        FreeLinks { first: None }
    }

    /// Takes a link out, or makes some.
    #[inline]
    pub(crate) fn take(&mut self) -> &'static Link {
        let link = self.first.unwrap_or_else(|| self.grow());
        let next = link.next();
        // SAFETY: the word of a free link is 0 or the address of another link, which `give` has exposed, and links live for ever.
        self.first = unsafe { core::ptr::with_exposed_provenance::<Link>(next as usize).as_ref() };
        link.clear();
        link
    }

    /// Takes in a link that names nothing and that nobody else has.
    #[inline]
    pub(crate) fn give(&mut self, link: &'static Link) {
        let next = self.first.replace(link).map_or(0, |next| core::ptr::from_ref(next).expose_provenance());
        link.set_next(next as u64);
    }

    #[cold]
    fn grow(&mut self) -> &'static Link {
        let chunk: Vec<Link> = (0..CHUNK).map(|_| Link(AtomicU64::new(NOTHING))).collect();
        let chunk: &'static [Link] = Box::leak(chunk.into_boxed_slice());
        chunk.iter().rev().for_each(|link| self.give(link));
        &chunk[0]
    }
}

impl Link {
    /// A link for a new object, from those that all threads share.
    #[inline]
    pub(crate) fn take() -> &'static Link {
        #[cfg(not(any(ebb_loom, ebb_shuttle)))]
        if let Some(link) = crate::spare_links::take(&FREE) {
            return link;
        }
        FREE.with(SharedLinks::take)
    }

    /// Gives a link whose object is freed to the next one, on whichever thread.
    #[inline]
    pub(crate) fn give(&'static self) {
        #[cfg(not(any(ebb_loom, ebb_shuttle)))]
        if crate::spare_links::give(self, &FREE) {
            return;
        }
        FREE.with(|free| free.give(self));
    }

    /// What a free link says of the next one.
    #[inline(always)]
    pub(crate) fn next(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The link, which is free, says so of the next one.
    #[inline(always)]
    pub(crate) fn set_next(&self, next: u64) {
        self.0.store(next, Ordering::Relaxed);
    }

    /// The link names nothing.
    #[inline(always)]
    pub(crate) fn clear(&self) {
        self.0.store(NOTHING, Ordering::Relaxed);
    }

    /// Names the link's next object, which does not live yet.
    #[inline(always)]
    pub(crate) fn conceive<M: Mode>(&'static self, of: M::OfObject) -> Unborn<M> {
        Unborn { of, link: self, generation: generation(M::deaths(of)) }
    }

    /// Whether the object of `generation` lives.
    #[inline(always)]
    pub(crate) fn is(&self, generation: u64) -> bool {
        self.0.load(Ordering::Acquire) == generation
    }

    /// Ends the life of the object: no upgrade succeeds from here on.
    #[inline(always)]
    pub(crate) fn end(&self) {
        self.0.store(NOTHING, Ordering::Release);
    }
}

/// The generation of what begins after so many deaths.
#[inline(always)]
fn generation(deaths: u64) -> u64 {
    assert!(deaths < MOST_DEATHS, "generations are used up");
    deaths << 1 | 1
}

/// The name of an object that is being made, which leads nowhere until [`show`](Self::show). If the object never comes to be, which is to
/// say that this is dropped, that counts as its death: the name will be nobody else's.
pub(crate) struct Unborn<M: Mode> {
    of: M::OfObject,
    link: &'static Link,
    generation: u64,
}

impl<M: Mode> Unborn<M> {
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
        self.link.0.store(self.generation, Ordering::Release);
        core::mem::forget(self);
    }
}

impl<M: Mode> Drop for Unborn<M> {
    #[cold]
    fn drop(&mut self) {
        M::die(self.of);
    }
}

/// Objects that are dead and not yet freed, first come first served. Their headers are the queue: nothing is allocated when an object
/// dies, and nothing can fail.
#[derive(Default)]
pub(crate) struct DeadQueue {
    first: Option<NonNull<Header>>,
    last: Option<NonNull<Header>>,
}

// SAFETY: who has the queue has its objects to himself; only a queue that admits it (see `crate::mode`) goes to another thread.
unsafe impl Send for DeadQueue {}

/// An object's place in a [`DeadQueue`]; touched only by whoever has that queue to himself.
pub(crate) struct QueueLink(UnsafeCell<Entry>);

#[derive(Clone, Copy)]
struct Entry {
    next: Option<NonNull<Header>>,
    /// When it died, in the epochs of [`reclaim`](crate::reclaim).
    epoch: u64,
}

impl QueueLink {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        QueueLink(UnsafeCell::new(Entry { next: None, epoch: 0 }))
    }
}

impl DeadQueue {
    pub(crate) const fn new() -> Self {
        DeadQueue { first: None, last: None }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Enters an object at the end.
    ///
    /// # Safety
    /// The object is dead, in no queue, and given away here. Its memory stays until it is taken out.
    #[inline]
    pub(crate) unsafe fn push(&mut self, object: NonNull<Header>, epoch: u64) {
        // SAFETY: by this function's contract; the last object is in this queue, so its place is ours as well.
        unsafe {
            *object.as_ref().place.0.get() = Entry { next: None, epoch };
            match self.last.replace(object) {
                Some(last) => (*last.as_ref().place.0.get()).next = Some(object),
                None => self.first = Some(object),
            }
        }
    }

    /// Takes out the first object, if it died before `limit`: it is the caller's then.
    #[inline]
    pub(crate) fn pop(&mut self, limit: u64) -> Option<NonNull<Header>> {
        let object = self.first?;
        // SAFETY: the object is in this queue, so its memory is there and its place is ours.
        let entry = unsafe { *object.as_ref().place.0.get() };
        if entry.epoch >= limit {
            return None;
        }
        self.first = entry.next;
        if self.first.is_none() {
            self.last = None;
        }
        Some(object)
    }

    /// The epoch in which the first object died.
    pub(crate) fn oldest(&self) -> Option<u64> {
        // SAFETY: as in `pop`.
        self.first.map(|object| unsafe { (*object.as_ref().place.0.get()).epoch })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        // SAFETY: as in `pop`; nothing is taken out meanwhile.
        let next = |object: &NonNull<Header>| unsafe { (*object.as_ref().place.0.get()).next };
        core::iter::successors(self.first, next).count()
    }
}

#[cfg(all(test, not(ebb_loom)))]
mod tests {
    use super::*;
    use crate::mode::{Home, Sealed};
    use crate::{Local, Realm};

    #[test]
    fn links_come_out_of_a_list_once_and_are_used_again() {
        let mut free = FreeLinks::new();
        let mut links: Vec<&Link> = (0..3 * CHUNK).map(|_| free.take()).collect();
        links.sort_by_key(|link| core::ptr::from_ref(*link).addr());
        links.dedup_by_key(|link| core::ptr::from_ref(*link).addr());
        assert_eq!(links.len(), 3 * CHUNK);
        links.iter().for_each(|link| free.give(link));
        let again: Vec<&Link> = (0..3 * CHUNK).map(|_| free.take()).collect();
        assert!(again.iter().all(|link| links.iter().any(|old| core::ptr::eq(*old, *link))));
    }

    #[test]
    fn a_link_names_one_object_at_a_time_and_none_while_it_is_free() {
        let realm = Realm::new();
        let of = Home::<u8>::of_object(&realm);
        let mut free = FreeLinks::new();
        let mut names = Vec::new();
        for round in 0..100 {
            let unborn = free.take().conceive::<Local>(of);
            let (link, generation) = (unborn.link(), unborn.generation());
            assert!(!link.is(generation));
            if round % 3 == 0 {
                drop(unborn);
            } else {
                unborn.show();
                assert!(link.is(generation));
                link.end();
                Local::die(of);
            }
            assert!(names.iter().all(|&(old, last): &(&Link, u64)| core::ptr::eq(old, link) && last < generation));
            names.push((link, generation));
            free.give(link);
            assert!(names.iter().all(|&(old, last)| !old.is(last)));
        }
    }

    #[test]
    #[should_panic(expected = "used up")]
    fn the_program_ends_before_generations_begin_again() {
        generation(MOST_DEATHS);
    }

    #[test]
    fn a_link_is_a_word() {
        assert_eq!((size_of::<Link>(), align_of::<Link>()), (8, 8));
    }
}
