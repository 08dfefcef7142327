//! [`StalePlaces`]: addresses of the kernel's that wait until all cores have forgotten what was mapped there.
//!
//! What is unmapped in the kernel's address space other cores may still remember. To ask all of them and wait for each page, or each object, takes long. It is not
//! needed for the *memory*: it is given back as soon as it is unmapped. What a core remembers leads to a frame that is something else by then, but nobody goes that way, since whoever
//! unmaps something is the last to use it. What a processor does by itself ahead of a program is to read, and that from a frame to which the direct map leads for ever, with
//! the same caching and the same rights; the entries have their accessed and dirty bits already, so it writes nothing there either. (Links of objects are looked at for ever: their pages do not come here.)
//!
//! Only the *address* must wait: who maps another page there would find the old one. So places where something was mapped come here, all cores are asked
//! for many places at once, and then they are used again. How long a place waits matters to nobody; how many wait is bounded, since a place
//! keeps its page tables. Where there is one core, nothing waits.

use refs::SpinLock;

use super::{machine, tlb};

/// So many places wait at most,
const PLACES: usize = 32;
/// and so many pages were mapped in them, but for the last one: what a page table maps.
const PAGES: usize = 512;

/// Places, by numbers of their owner's, in which nothing is mapped and of whose pages some core may know.
pub(crate) struct StalePlaces(SpinLock<Waiting>);

#[derive(Clone, Copy)]
struct Waiting {
    places: [usize; PLACES],
    count: usize,
    pages: usize,
}

impl Waiting {
    const NONE: Waiting = Waiting { places: [0; PLACES], count: 0, pages: 0 };

    /// Adds a place. Gives all that wait if these are enough.
    fn add(&mut self, place: usize, pages: usize) -> Option<Waiting> {
        self.places[self.count] = place;
        self.count += 1;
        self.pages += pages;
        (self.count == PLACES || self.pages >= PAGES).then(|| core::mem::replace(self, Waiting::NONE))
    }
}

impl StalePlaces {
    /// None.
    pub(crate) const fn new() -> Self {
        StalePlaces(SpinLock::new(Waiting::NONE))
    }

    /// Takes in a place in which up to `pages` pages were mapped until now, and hands each that can be used again to `free`: that one at once where there is one core.
    pub(crate) fn add(&self, place: usize, pages: usize, mut free: impl FnMut(usize)) {
        if machine::core_count() == 1 {
            return free(place);
        }
        if let Some(waiting) = self.0.with(|waiting| waiting.add(place, pages)) {
            tlb::forget_kernel();
            waiting.places[..waiting.count].iter().copied().for_each(free);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn places_come_back_when_there_are_many_or_large_ones_each_once() {
        let mut waiting = Waiting::NONE;
        let mut back = Vec::new();
        for place in 0..2 * PLACES {
            let all = waiting.add(place, 8);
            assert_eq!(all.is_some(), place % PLACES == PLACES - 1, "place {place}");
            back.extend(all.iter().flat_map(|all| all.places[..all.count].to_vec()));
        }
        assert_eq!(back, (0..2 * PLACES).collect::<Vec<_>>());
        assert!(waiting.add(7, PAGES - 1).is_none());
        let all = waiting.add(8, 1).expect("as many pages as a table maps");
        assert_eq!(&all.places[..all.count], [7, 8]);
        assert!(waiting.add(9, 1).is_none(), "the next ones begin anew");
    }

    #[test]
    fn one_core_has_its_place_back_at_once() {
        static STALE: StalePlaces = StalePlaces::new();
        let mut back = Vec::new();
        for place in [3, 1, 4] {
            STALE.add(place, 1, |place| back.push(place));
        }
        assert_eq!(back, [3, 1, 4]);
    }
}
