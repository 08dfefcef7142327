//! Large blocks of the heap whose frames do not lie together: mapped one behind the other in a part of the kernel's address
//! space. For when memory is in pieces, and for what is larger than any block of the frame policy.
//!
//! The part is divided into places, each as large as the largest block. A block's frames are mapped from the start of its place,
//! and what is behind them never is.

use core::sync::atomic::{AtomicU64, Ordering};

use super::metadata::Kind;
use super::stale_places::StalePlaces;
use super::supply::{self, Purpose};
use super::{PAGE_SIZE, machine};

/// The largest block, in pages: 64 MiB.
pub(super) const MAX_PAGES: usize = 1 << 14;

const PLACE_BYTES: usize = MAX_PAGES * PAGE_SIZE;
const PLACES: usize = machine::BLOCKS_LEN / PLACE_BYTES;

/// Which places are in use, or wait until all cores have forgotten what was there.
static USED: [AtomicU64; PLACES.div_ceil(64)] = [const { AtomicU64::new(0) }; PLACES.div_ceil(64)];

static STALE: StalePlaces = StalePlaces::new();

/// Whether a pointer is into such a block.
#[inline(always)]
pub(super) fn has(pointer: *const u8) -> bool {
    pointer.addr().wrapping_sub(machine::blocks()) < machine::BLOCKS_LEN
}

/// Takes the first place that is free.
fn take_place() -> Option<usize> {
    USED.iter().enumerate().find_map(|(index, word)| {
        let taken = word
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |used| (used != u64::MAX).then(|| used | (used + 1)));
        taken.ok().map(|used| index * 64 + used.trailing_ones() as usize)
    })
}

fn give_place(place: usize) {
    USED[place / 64].fetch_and(!(1 << (place % 64)), Ordering::AcqRel);
}

/// A block of `pages` pages, content unspecified; `None` if there is no memory or no room in the address space.
#[cold]
pub(super) fn take(pages: usize) -> Option<*mut u8> {
    if pages > MAX_PAGES || pages > supply::free_frames() {
        return None;
    }
    let start = machine::blocks() + take_place()? * PLACE_BYTES;
    for page in 0..pages {
        let address = start + page * PAGE_SIZE;
        let mapped = supply::take(Kind::Block, Purpose::Kernel).is_some_and(|frame| {
            // SAFETY: the frame is new and the place is ours; nothing is mapped in a place that was free.
            let mapped = unsafe { machine::map_block_page(address, frame) };
            if !mapped {
                // SAFETY: nobody has seen it.
                unsafe { supply::give(frame) };
            }
            mapped
        });
        if !mapped {
            // SAFETY: these pages were just made, and nobody has seen them.
            unsafe { give(start, page) };
            return None;
        }
    }
    Some(core::ptr::with_exposed_provenance_mut(start))
}

/// Takes a block of `pages` pages back.
///
/// # Safety
/// It came from [`take`] with this number of pages, and nobody uses it any more.
#[cold]
pub(super) unsafe fn give(start: usize, pages: usize) {
    for page in 0..pages {
        // SAFETY: the caller's promise.
        let frame = unsafe { machine::unmap_block_page(start + page * PAGE_SIZE) };
        if let Some(frame) = frame {
            // SAFETY: the mapping was the only reference.
            unsafe { supply::give(frame) };
        }
    }
    STALE.add((start - machine::blocks()) / PLACE_BYTES, pages, give_place);
}
