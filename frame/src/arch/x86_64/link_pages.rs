//! The memory of links (see `refs`): pages that stay readable for ever, and whose memory goes back to the heap when no link of theirs is used.
//!
//! A page's memory is the heap's, mapped a second time in the links' area. When it has gone back, one page of zeros is mapped in its place: names that
//! are looked at there find that their objects are dead. It can be written, because a compare-and-exchange that fails needs that; nothing else is
//! done to it.

use alloc::vec::Vec;
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr::{NonNull, with_exposed_provenance_mut};

use refs::{LINK_PAGE, LinkPages, SpinLock};

use super::kernel_map::{self, DIRECT_MAP, KERNEL_BASE, LINKS, NO_EXECUTE, WRITABLE};

/// As many as fit into the part of the address space that is reserved for links.
const MAX_PAGES: usize = (256 << 30) / LINK_PAGE;

/// The pages of links.
#[derive(Debug)]
pub struct Pages(SpinLock<Places>);

#[derive(Debug)]
struct Places {
    /// How many were ever used.
    used: usize,
    /// Those of them that have no memory. There is room for all.
    vacant: Vec<usize>,
}

/// The pages of links.
pub static PAGES: Pages = Pages(SpinLock::new(Places { used: 0, vacant: Vec::new() }));

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

// SAFETY: a page that is given out is mapped to memory of its own, zeros at first, where no other mapping of the area is, and is never unmapped: from `vacate`
// on it shows `ZEROS`, where exchanges that expect something else fail, and which nobody writes; all cores have forgotten the memory before it is used for something else.
unsafe impl LinkPages for Pages {
    fn take(&self) -> Option<NonNull<u8>> {
        self.0.with(|places| {
            let (place, was_used) = match places.vacant.pop() {
                Some(place) => (place, true),
                None if places.used < MAX_PAGES => (places.used, false),
                None => return None,
            };
            let virt = LINKS + place * LINK_PAGE;
            // SAFETY: the layout is not empty.
            let memory = unsafe { alloc::alloc::alloc_zeroed(PAGE_LAYOUT) };
            let phys = memory.addr().wrapping_sub(DIRECT_MAP);
            // SAFETY: the memory is ours alone, and the place shows `ZEROS` or was never mapped: its links are used by nobody.
            let is_mapped = !memory.is_null()
                && unsafe {
                    if was_used {
                        kernel_map::replace_page(virt, phys, WRITABLE | NO_EXECUTE).is_some()
                    } else {
                        places.vacant.try_reserve(places.used + 1).is_ok()
                            && kernel_map::map_page(virt, phys, WRITABLE | NO_EXECUTE)
                    }
                };
            if is_mapped {
                places.used += usize::from(!was_used);
                return NonNull::new(with_exposed_provenance_mut(virt));
            }
            if !memory.is_null() {
                // SAFETY: it was allocated so, and is mapped nowhere else.
                unsafe { alloc::alloc::dealloc(memory, PAGE_LAYOUT) };
            }
            if was_used {
                places.vacant.push(place);
            }
            None
        })
    }

    unsafe fn vacate(&self, page: NonNull<u8>) -> bool {
        let virt = page.addr().get();
        self.0.with(|places| {
            let Some(place) = virt.checked_sub(LINKS).map(|offset| offset / LINK_PAGE) else { return false };
            if place >= places.used {
                return false;
            }
            let zeros = core::ptr::from_ref(&ZEROS).addr() - KERNEL_BASE;
            // SAFETY: the place is mapped, nobody writes it from here on by this function's contract, and who reads finds zeros.
            let Some(phys) = (unsafe { kernel_map::replace_page(virt, zeros, WRITABLE | NO_EXECUTE) }) else {
                return false;
            };
            // SAFETY: `take` allocated it so, and it is mapped here no more.
            unsafe { alloc::alloc::dealloc((DIRECT_MAP + phys) as *mut u8, PAGE_LAYOUT) };
            // There is room: `take` saw to it.
            places.vacant.push(place);
            true
        })
    }
}
