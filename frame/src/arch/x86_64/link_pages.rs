//! The memory of links (see `refs`): pages that stay readable for ever, and whose memory goes back to the heap when no link of theirs is used.
//!
//! A page's memory is the heap's, mapped a second time in the links' area. When it has gone back, one page of zeros is mapped in its place: names that
//! are looked at there find that their objects are dead. It can be written, because a compare-and-exchange that fails needs that; nothing else is
//! done to it.
//!
//! All cores are asked when a page changes between its memory and the zeros. So that not each page asks, with several cores some pages are *ready*: they keep their
//! memory, which is zeros. As many are made ready, or give their memory back, with one request.

use alloc::vec::Vec;
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr::{NonNull, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicU64, Ordering};

use refs::{LINK_PAGE, LinkPages, SpinLock};

use super::core_block::count;
use super::kernel_map::{self, DIRECT_MAP, KERNEL_BASE, LINKS, NO_EXECUTE, WRITABLE};
use crate::mm::{forget_kernel, forget_kernel_page};

/// As many as fit into the part of the address space that is reserved for links.
const MAX_PAGES: usize = (256 << 30) / LINK_PAGE;

/// So many pages change between their memory and the zeros at once, with several cores.
const BATCH: usize = 8;

/// The pages of links.
#[derive(Debug)]
pub struct Pages(SpinLock<Places>);

#[derive(Debug)]
struct Places {
    /// How many were ever used.
    used: usize,
    /// Those of them that have no memory. There is room for all.
    vacant: Vec<usize>,
    /// Those that have memory, which is zeros, and that nobody uses. None with one core.
    ready: [usize; 2 * BATCH],
    /// How many those are.
    ready_count: usize,
}

/// The pages of links.
pub static PAGES: Pages =
    Pages(SpinLock::new(Places { used: 0, vacant: Vec::new(), ready: [0; 2 * BATCH], ready_count: 0 }));

/// What is seen of a page without memory. In the part of the image that is mapped to be written.
#[repr(C, align(4096))]
struct Zeros(UnsafeCell<[u8; LINK_PAGE]>);

// SAFETY: nothing is changed in it, and it is looked at by atomic operations only.
unsafe impl Sync for Zeros {}

static ZEROS: Zeros = Zeros(UnsafeCell::new([0; LINK_PAGE]));

const PAGE_LAYOUT: Layout = match Layout::from_size_align(LINK_PAGE, LINK_PAGE) {
    Ok(layout) => layout,
    Err(_) => panic!("the page size is a power of two"),
};

/// New memory for a page, zeros: its physical address. `None` if there is none.
fn take_memory() -> Option<usize> {
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc::alloc::alloc_zeroed(PAGE_LAYOUT) };
    (!memory.is_null()).then(|| memory.addr() - DIRECT_MAP)
}

/// Gives memory back.
///
/// # Safety
/// [`take_memory`] gave it, and it is mapped nowhere but in the direct map, as far as any core remembers.
unsafe fn give_memory(phys: usize) {
    // SAFETY: the caller's promise.
    unsafe { alloc::alloc::dealloc((DIRECT_MAP + phys) as *mut u8, PAGE_LAYOUT) };
}

fn address(place: usize) -> usize {
    LINKS + place * LINK_PAGE
}

/// Has all cores forget what was mapped at places.
fn forget(places: &[usize]) {
    match places {
        [] => {}
        [place] => forget_kernel_page(address(*place)),
        _ => forget_kernel(),
    }
}

/// Places that show zeros from now on, and the memory that they had: it goes back when this is dropped, after all cores have forgotten it.
struct Leaving {
    places: [usize; BATCH],
    memory: [usize; BATCH],
    count: usize,
}

impl Leaving {
    const NONE: Leaving = Leaving { places: [0; BATCH], memory: [0; BATCH], count: 0 };

    fn add(&mut self, place: usize, phys: usize) {
        self.places[self.count] = place;
        self.memory[self.count] = phys;
        self.count += 1;
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        forget(&self.places[..self.count]);
        for phys in &self.memory[..self.count] {
            // SAFETY: it was a page's, which shows zeros; all have forgotten it just now.
            unsafe { give_memory(*phys) };
        }
    }
}

impl Places {
    /// A place where nothing was mapped so far, with memory.
    fn take_new(&mut self) -> Option<usize> {
        if self.used == MAX_PAGES || self.vacant.try_reserve(self.used + 1).is_err() {
            return None;
        }
        let (phys, place) = (take_memory()?, self.used);
        // SAFETY: the memory is ours alone, and nothing was ever mapped at the place.
        if !unsafe { kernel_map::map_page(address(place), phys, WRITABLE | NO_EXECUTE) } {
            // SAFETY: it is not mapped.
            unsafe { give_memory(phys) };
            return None;
        }
        self.used += 1;
        Some(place)
    }

    /// Gives a place that has none memory again; it is to be used only when all cores have forgotten the zeros that it showed. `None` if there is no such place, or no memory.
    fn fill_vacant(&mut self) -> Option<usize> {
        let place = self.vacant.pop()?;
        let Some(phys) = take_memory() else {
            self.vacant.push(place);
            return None;
        };
        // SAFETY: the memory is ours alone, and the place shows `ZEROS`, as the memory does: its links are used by nobody.
        unsafe { kernel_map::replace_page(address(place), phys, WRITABLE | NO_EXECUTE) };
        Some(place)
    }

    /// Makes places ready, if there are any without memory.
    fn make_ready(&mut self) {
        while self.ready_count < BATCH
            && let Some(place) = self.fill_vacant()
        {
            self.ready[self.ready_count] = place;
            self.ready_count += 1;
        }
        forget(&self.ready[..self.ready_count]);
    }

    fn take(&mut self) -> Option<usize> {
        if count() == 1 {
            return match self.fill_vacant() {
                Some(place) => {
                    forget(&[place]);
                    Some(place)
                }
                None => self.take_new(),
            };
        }
        if self.ready_count == 0 {
            self.make_ready();
        }
        match self.ready_count.checked_sub(1) {
            Some(left) => {
                self.ready_count = left;
                Some(self.ready[left])
            }
            None => self.take_new(),
        }
    }

    /// Has a place show zeros, and takes its memory: nobody uses the place's links. False if nothing is mapped there.
    fn vacate(&mut self, place: usize, leaving: &mut Leaving) -> bool {
        let zeros = core::ptr::from_ref(&ZEROS).addr() - KERNEL_BASE;
        // SAFETY: nobody writes there but by exchanges that fail, and who reads finds zeros, or the links of before until all have forgotten them.
        let Some(phys) = (unsafe { kernel_map::replace_page(address(place), zeros, WRITABLE | NO_EXECUTE) }) else {
            return false;
        };
        leaving.add(place, phys);
        // There is room: `take_new` saw to it.
        self.vacant.push(place);
        true
    }

    /// Keeps a place with its memory. If there are many of those, some lose it.
    ///
    /// # Safety
    /// The place was given out and is not used any more.
    unsafe fn keep(&mut self, place: usize, leaving: &mut Leaving) {
        let words = address(place) as *const AtomicU64;
        for index in 0..LINK_PAGE / size_of::<AtomicU64>() {
            // SAFETY: within the page, which is mapped. Others read its words, or try exchanges, atomically.
            unsafe { (*words.add(index)).store(0, Ordering::Relaxed) };
        }
        self.ready[self.ready_count] = place;
        self.ready_count += 1;
        if self.ready_count == self.ready.len() {
            self.ready_count -= BATCH;
            for index in self.ready_count..self.ready.len() {
                self.vacate(self.ready[index], leaving);
            }
        }
    }
}

// SAFETY: a page that is given out is mapped to memory of its own, zeros at first, where no other mapping of the area is, and is never unmapped: from `vacate`
// on it shows its memory, filled with zeros, or `ZEROS`; exchanges that expect something else fail there, and nobody else writes. All cores have forgotten the memory before it is used
// for something else, and `ZEROS` before the page is given out again.
unsafe impl LinkPages for Pages {
    fn take(&self) -> Option<NonNull<u8>> {
        let place = self.0.with(Places::take)?;
        NonNull::new(with_exposed_provenance_mut(address(place)))
    }

    unsafe fn vacate(&self, page: NonNull<u8>) -> bool {
        let Some(place) = page.addr().get().checked_sub(LINKS).map(|offset| offset / LINK_PAGE) else { return false };
        let mut leaving = Leaving::NONE;
        self.0.with(|places| {
            if place >= places.used {
                return false;
            }
            if count() == 1 {
                return places.vacate(place, &mut leaving);
            }
            // SAFETY: this function's contract.
            unsafe { places.keep(place, &mut leaving) };
            true
        })
    }
}
