//! [`Paged`]: links (or [pooled wake slots](crate::pooled_slot)) that nobody uses, by the page they are in, so that a page in which none is used
//! can give its memory back.
//!
//! A name may be looked at for ever, so what it looks at must stay readable for ever. But a word that reads as 0 is all that it must find
//! (see [`link`](crate::link)), and no page of the store is anything but zeros once its links are free. So whoever provides the memory
//! ([`LinkPages`]) may take it away from under a page and let the page be read as zeros from then on. Nothing is lost with the words:
//! generations are made of the number of deaths, and never come again.
//!
//! A waker does one thing more: between its look at a slot and its compare-and-exchange the slot may have gone. The exchange expects
//! what is not zero, and so it fails, but the processor wants a page that could be written. So the page of zeros must be one, and nobody
//! writes anything else there.
//!
//! A page begins with its head; the rest is links. The pages that have free links are a list, of which the first is used, and kept.

use alloc::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use core::fmt;
use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut, with_exposed_provenance, with_exposed_provenance_mut};

/// The size of a page of links, and what it is aligned to.
pub const LINK_PAGE: usize = 4096;

/// Provides the memory of links: see [`set_link_pages`](crate::set_link_pages).
///
/// # Safety
/// A page that was given out is [`LINK_PAGE`] bytes, aligned to as many, that are zeros at first, can be read and written, and are nobody else's. It can
/// be read for ever, by every thread. After [`vacate`](Self::vacate) was true it reads as zeros for every thread, and a compare-and-exchange that expects
/// something else fails and does nothing, until it is given out again.
pub unsafe trait LinkPages: Sync + fmt::Debug {
    /// A page; `None` if there is no memory. It must not use shared objects of this crate.
    fn take(&self) -> Option<NonNull<u8>>;

    /// Gives the memory of a page back, if it is one of these and its memory can be given back; whether it was. It must not use shared objects of
    /// this crate.
    ///
    /// # Safety
    /// The page was given out by any provider, and nobody writes it any more.
    unsafe fn vacate(&self, page: NonNull<u8>) -> bool;
}

/// What stands at the start of a page.
#[repr(C)]
struct Head {
    previous: *mut Head,
    next: *mut Head,
    /// The address of the first link that was used and is free; each has that of the next.
    free: usize,
    /// How many links are not used.
    unused: u32,
    /// The first link that was never used since the page was given out; those behind it were not either.
    fresh: u32,
}

/// What pages can be made of.
///
/// # Safety
/// Zeros are a value of it. All of it is atomics, and it is aligned to no more than a [`Head`]. Who looks at one that is free does so only by loads, and
/// by exchanges that expect what is not zero.
pub(crate) unsafe trait Paging: Sized + 'static {
    /// What a free one says of the next one: its address; 0 of one that was never used.
    fn next(&self) -> usize;
    /// Says so of the next one; 0 when it is taken out.
    fn set_next(&self, next: usize);
}

/// Links that nobody uses, and the pages of all others.
pub(crate) struct Paged<T: Paging> {
    /// The pages with free links.
    first: *mut Head,
    provider: Option<&'static dyn LinkPages>,
    _of: PhantomData<&'static T>,
}

// SAFETY: the pages' heads belong to whoever has this to himself, and what is in the pages is atomics.
unsafe impl<T: Paging> Send for Paged<T> {}

impl<T: Paging> Paged<T> {
    /// The place of the first link of a page, and that behind the last.
    const FIRST: u32 = size_of::<Head>().div_ceil(size_of::<T>()) as u32;
    const END: u32 = (LINK_PAGE / size_of::<T>()) as u32;
    /// How many links a page has.
    pub(crate) const ALL: u32 = {
        assert!(align_of::<T>() <= align_of::<Head>());
        Self::END - Self::FIRST
    };

    pub(crate) const fn new() -> Self {
        Paged { first: null_mut(), provider: None, _of: PhantomData }
    }

    pub(crate) fn set_provider(&mut self, provider: &'static dyn LinkPages) {
        self.provider = Some(provider);
    }

    /// Takes a link out, or makes some.
    #[inline]
    pub(crate) fn take(&mut self) -> &'static T {
        if self.first.is_null() {
            self.grow();
        }
        let page = self.first;
        // SAFETY: the page is in the list, so its memory is there, its head is ours, and it has a free link: one that was used, whose address was
        // exposed when it was given back, or a fresh one. It is readable for ever, and `give` is what ends our right to write it.
        unsafe {
            let link: &'static T = if (*page).free != 0 {
                let link = &*with_exposed_provenance::<T>((*page).free);
                (*page).free = link.next();
                link.set_next(0);
                link
            } else {
                (*page).fresh += 1;
                &*page.cast::<T>().add((*page).fresh as usize - 1)
            };
            (*page).unused -= 1;
            if (*page).unused == 0 {
                self.unlink(page);
            }
            link
        }
    }

    /// Takes in a link that names nothing and that nobody else has.
    #[inline]
    pub(crate) fn give(&mut self, link: &'static T) {
        let address = core::ptr::from_ref(link).expose_provenance();
        let page: *mut Head = with_exposed_provenance_mut(address & !(LINK_PAGE - 1));
        // SAFETY: all links are in pages, which are aligned and were exposed by `grow`. The link was used, so the page's memory is there, and its head
        // is ours.
        unsafe {
            link.set_next((*page).free);
            (*page).free = address;
            (*page).unused += 1;
            if (*page).unused == 1 {
                let before = self.first;
                self.link(page);
                if !before.is_null() && (*before).unused == Self::ALL {
                    self.vacate(before);
                }
            } else if (*page).unused == Self::ALL && page != self.first {
                self.vacate(page);
            }
        }
    }

    /// Enters a page at the start of the list.
    ///
    /// # Safety
    /// Its memory is there, and it is in no list.
    unsafe fn link(&mut self, page: *mut Head) {
        // SAFETY: by this function's contract; the first page is in the list.
        unsafe {
            (*page).previous = null_mut();
            (*page).next = self.first;
            if !self.first.is_null() {
                (*self.first).previous = page;
            }
        }
        self.first = page;
    }

    /// Takes a page out of the list.
    ///
    /// # Safety
    /// It is in the list.
    unsafe fn unlink(&mut self, page: *mut Head) {
        // SAFETY: by this function's contract; so its neighbours are in the list, too.
        unsafe {
            let (previous, next) = ((*page).previous, (*page).next);
            match previous.is_null() {
                true => self.first = next,
                false => (*previous).next = next,
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
        }
    }

    /// Gives the memory of a page back, where that can be done.
    ///
    /// # Safety
    /// It is in the list, and none of its links is used.
    #[cold]
    unsafe fn vacate(&mut self, page: *mut Head) {
        let Some(provider) = self.provider else { return };
        // SAFETY: by this function's contract. Out of the list nobody reaches the page but by names, which read.
        unsafe {
            self.unlink(page);
            if let Some(memory) = NonNull::new(page.cast())
                && !provider.vacate(memory)
            {
                self.link(page);
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let page = self.provider.and_then(LinkPages::take).unwrap_or_else(heap_page);
        page.as_ptr().expose_provenance();
        let page = page.as_ptr().cast::<Head>();
        // SAFETY: the page is new, zeros, aligned, and nobody else's.
        unsafe {
            page.write(Head { previous: null_mut(), next: null_mut(), free: 0, unused: Self::ALL, fresh: Self::FIRST });
            self.link(page);
        }
    }
}

/// A page of the heap, for ever.
fn heap_page() -> NonNull<u8> {
    const LAYOUT: Layout = match Layout::from_size_align(LINK_PAGE, LINK_PAGE) {
        Ok(layout) => layout,
        Err(_) => panic!("a page's size is a power of two"),
    };
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { alloc_zeroed(LAYOUT) }).unwrap_or_else(|| handle_alloc_error(LAYOUT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpinLock;
    use crate::link::Link;
    use crate::mode::Home;
    use crate::{Local, Realm};
    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use core::sync::atomic::{AtomicU64, Ordering};

    /// Pages of the heap that are filled with zeros when their memory is to go, and given out again.
    #[derive(Default)]
    struct Zeroing {
        vacant: SpinLock<Vec<usize>>,
        pages: SpinLock<usize>,
    }

    impl fmt::Debug for Zeroing {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Zeroing")
        }
    }

    impl Zeroing {
        fn vacant(&self) -> usize {
            self.vacant.with(|vacant| vacant.len())
        }
    }

    // SAFETY: pages of the heap that are never freed, and zeros when they are vacant.
    unsafe impl LinkPages for Zeroing {
        fn take(&self) -> Option<NonNull<u8>> {
            if let Some(page) = self.vacant.with(Vec::pop) {
                return NonNull::new(with_exposed_provenance_mut(page));
            }
            self.pages.with(|pages| *pages += 1);
            Some(heap_page())
        }

        unsafe fn vacate(&self, page: NonNull<u8>) -> bool {
            for word in 0..LINK_PAGE / 8 {
                // SAFETY: nobody else writes the page, and all that others read of it are atomic words.
                unsafe { page.cast::<AtomicU64>().add(word).as_ref() }.store(0, Ordering::Relaxed);
            }
            let address = page.as_ptr().expose_provenance();
            self.vacant.with(|vacant| vacant.push(address));
            true
        }
    }

    fn paged() -> (&'static Zeroing, Paged<Link>) {
        let provider: &'static Zeroing = Box::leak(Box::default());
        let mut links = Paged::<Link>::new();
        links.set_provider(provider);
        (provider, links)
    }

    const PER_PAGE: usize = Paged::<Link>::ALL as usize;

    #[test]
    fn links_come_out_once_and_are_used_again() {
        let (provider, mut free) = paged();
        for _ in 0..3 {
            let mut links: Vec<&Link> = (0..3 * PER_PAGE).map(|_| free.take()).collect();
            links.sort_by_key(|link| core::ptr::from_ref(*link).addr());
            links.dedup_by_key(|link| core::ptr::from_ref(*link).addr());
            assert_eq!(links.len(), 3 * PER_PAGE);
            assert!(links.iter().all(|link| link.next() == 0));
            links.iter().for_each(|link| free.give(link));
        }
        assert_eq!(provider.pages.with(|pages| *pages), 3);
    }

    #[test]
    fn a_peak_gives_its_pages_back_in_whatever_order_its_links_go() {
        for step in [1, 3, 257, 1009] {
            let (provider, mut free) = paged();
            let links: Vec<&Link> = (0..10 * PER_PAGE).map(|_| free.take()).collect();
            assert_eq!(provider.pages.with(|pages| *pages), 10);
            for at in 0..links.len() {
                free.give(links[at * step % links.len()]);
            }
            assert!(provider.vacant() >= 8, "{step}: {}", provider.vacant());
        }
    }

    #[test]
    fn a_link_at_an_edge_takes_and_gives_no_page() {
        let (provider, mut free) = paged();
        let full: Vec<&Link> = (0..PER_PAGE).map(|_| free.take()).collect();
        for _ in 0..10 {
            let one_more = free.take();
            free.give(one_more);
            assert_eq!((provider.vacant(), provider.pages.with(|pages| *pages)), (0, 2));
        }
        full.into_iter().for_each(|link| free.give(link));
    }

    #[test]
    fn names_of_the_dead_lead_nowhere_whatever_becomes_of_their_page() {
        let realm = Realm::new();
        let of = Home::<u8>::of_object(&realm);
        let (provider, mut free) = paged();
        let mut names: Vec<(&Link, u64)> = Vec::new();
        for round in 0..4 {
            let mut living = Vec::new();
            for _ in 0..(round + 1) * PER_PAGE {
                let unborn = free.take().conceive::<Local>(of);
                living.push((unborn.link(), unborn.generation()));
                unborn.show();
            }
            assert!(living.iter().all(|&(link, generation)| link.is(generation)));
            assert!(names.iter().all(|&(link, generation)| !link.is(generation)));
            for &(link, _) in &living {
                use crate::mode::Sealed;
                link.end();
                Local::die(of);
                free.give(link);
            }
            names.extend(living);
            assert!(names.iter().all(|&(link, generation)| !link.is(generation)));
        }
        assert!(provider.vacant() >= 2);
    }

    #[test]
    fn without_a_provider_the_pages_stay() {
        let mut free = Paged::<Link>::new();
        let links: Vec<&Link> = (0..2 * PER_PAGE).map(|_| free.take()).collect();
        links.iter().for_each(|link| free.give(link));
        assert!(links.iter().all(|link| !link.is(1)));
        let again: Vec<&Link> = (0..2 * PER_PAGE).map(|_| free.take()).collect();
        assert!(again.iter().all(|link| links.iter().any(|old| core::ptr::eq(*old, *link))));
    }
}
