//! Free links that each core keeps for itself, so that cores which make and destroy objects do not meet at the list of all free links.
//!
//! Only where a kernel says which core runs ([`set_processor`](crate::set_processor)), and once there are several. A spare link names nothing (its word is 0), and counts as
//! used in its page: so a core keeps the memory of at most [`SPARE`] pages from going back.

use alloc::boxed::Box;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::SpinLock;
use crate::link::Link;
use crate::link_pages::Paged;
use crate::processor::current_core;
use crate::reclaim::{self, MAX_CORES};

/// How many links a core keeps for itself, at most.
const SPARE: usize = 30;

/// The free links of a core.
struct SpareLinks {
    links: [Option<&'static Link>; SPARE],
    count: usize,
}

/// Lines of its own: nearly always only its core touches it.
#[repr(align(128))]
struct OfCore(SpinLock<SpareLinks>);

/// Those of the cores that were ever there.
static SPARES: [AtomicPtr<OfCore>; MAX_CORES] = [const { AtomicPtr::new(null_mut()) }; MAX_CORES];

/// Lets the core of a number keep links from now on. The number is the caller's.
pub(crate) fn make(number: usize) {
    let spares = &SPARES[number];
    if spares.load(Ordering::Relaxed).is_null() {
        let of_core = OfCore(SpinLock::new(SpareLinks { links: [None; SPARE], count: 0 }));
        spares.store(Box::leak(Box::new(of_core)), Ordering::Release);
    }
}

/// Takes a link out of what the calling core keeps for itself, if it does.
#[inline(always)]
pub(crate) fn take(all: &SpinLock<Paged<Link>>) -> Option<&'static Link> {
    if reclaim::is_single() { None } else { of_this_core().map(|spare| spare.with(|spare| spare.take(all))) }
}

/// Puts a link into what the calling core keeps for itself; false if it keeps none.
#[inline(always)]
pub(crate) fn give(link: &'static Link, all: &SpinLock<Paged<Link>>) -> bool {
    !reclaim::is_single() && of_this_core().map(|spare| spare.with(|spare| spare.give(link, all))).is_some()
}

#[cold]
fn of_this_core() -> Option<&'static SpinLock<SpareLinks>> {
    let spares = SPARES.get(current_core()?)?.load(Ordering::Acquire);
    // SAFETY: null, or what lives for ever.
    unsafe { spares.as_ref() }.map(|spares| &spares.0)
}

impl SpareLinks {
    /// Takes one out; where there is none, half of what there is room for is taken from `all` first.
    #[cold]
    fn take(&mut self, all: &SpinLock<Paged<Link>>) -> &'static Link {
        if self.count == 0 {
            all.within(|all| self.links[..SPARE / 2].iter_mut().for_each(|link| *link = Some(all.take())));
            self.count = SPARE / 2;
        }
        self.count -= 1;
        self.links[self.count].take().expect("those below the count are there")
    }

    /// Puts one in; where there is no room, half of them are given to `all` first.
    #[cold]
    fn give(&mut self, link: &'static Link, all: &SpinLock<Paged<Link>>) {
        if self.count == SPARE {
            let over = self.links[SPARE / 2..].iter_mut().filter_map(Option::take);
            all.within(|all| over.for_each(|link| all.give(link)));
            self.count = SPARE / 2;
        }
        self.links[self.count] = Some(link);
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn spare_links_come_out_once_and_go_back_to_all() {
        let all = SpinLock::new(Paged::new());
        let mut spare = SpareLinks { links: [None; SPARE], count: 0 };
        let address = |link: &'static Link| core::ptr::from_ref(link).addr();
        let mut first: Vec<&'static Link> = (0..4 * SPARE).map(|_| spare.take(&all)).collect();
        let mut addresses: Vec<usize> = first.iter().map(|link| address(link)).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), 4 * SPARE, "none comes out twice");
        first.drain(..).for_each(|link| spare.give(link, &all));
        assert!(spare.count <= SPARE);
        let again: Vec<&'static Link> = (0..4 * SPARE).map(|_| spare.take(&all)).collect();
        assert!(again.iter().all(|link| addresses.binary_search(&address(link)).is_ok()), "they are used again");
    }
}
