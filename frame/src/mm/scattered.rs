//! Large blocks of the heap whose frames do not lie together: mapped one behind the other in a part of the kernel's address
//! space. For when memory is in pieces, and for what is larger than any block of the frame policy.
//!
//! The part is divided into places, each as large as the largest block. A block's frames are mapped from the start of its place,
//! and what is behind them never is.
//!
//! To unmap a page takes a hundred instructions, and a block may have thousands of them. So a large block that is given back stays as it is, *spent*: its frames count as free
//! ([`spent_frames`]), and who finds no memory, or no place, takes it apart, some pages at a time ([`give_spent_back`]). The spent blocks are a list, through their own first words.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use refs::SpinLock;

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

/// So many pages at most are unmapped at a time.
const AT_A_TIME: usize = 64;

/// The spent block that came last; the others follow.
static SPENT: SpinLock<Option<Spent>> = SpinLock::new(None);

/// How many frames spent blocks have. Written with the lock held.
static SPENT_FRAMES: AtomicUsize = AtomicUsize::new(0);

/// A block that nobody uses any more.
#[derive(Clone, Copy)]
struct Spent {
    start: usize,
    pages: usize,
    /// So many of them are mapped still, one at least: in the first the next spent block is noted.
    left: usize,
}

impl Spent {
    /// Where the next spent block is noted.
    fn next(self) -> *mut Option<Spent> {
        core::ptr::with_exposed_provenance_mut(self.start)
    }
}

/// How many frames come back from blocks that were given back.
pub(super) fn spent_frames() -> usize {
    SPENT_FRAMES.load(Ordering::Relaxed)
}

/// Gives some frames of a spent block back; whether there was one. The caller may hold any lock but the frame policy's.
pub(super) fn give_spent_back() -> bool {
    if spent_frames() == 0 {
        return false;
    }
    let taken = SPENT.with(|spent| {
        let block = (*spent)?;
        let left = block.left.saturating_sub(AT_A_TIME);
        *spent = match left {
            // SAFETY: the first page of a spent block is mapped, is nobody else's, and begins with this, which `give` wrote.
            0 => unsafe { block.next().read() },
            _ => Some(Spent { left, ..block }),
        };
        SPENT_FRAMES.fetch_sub(block.left - left, Ordering::Relaxed);
        // SAFETY: by the contract of `give` nobody uses a spent block, and these pages are not in the list any more.
        unsafe { unmap(block.start, left..block.left) };
        Some((block, left))
    });
    let Some((block, left)) = taken else { return false };
    if left == 0 {
        end_place(block.start, block.pages);
    }
    true
}

/// Whether a pointer is into such a block.
#[inline(always)]
pub(super) fn has(pointer: *const u8) -> bool {
    pointer.addr().wrapping_sub(machine::blocks()) < machine::BLOCKS_LEN
}

/// Takes the first place that is free.
fn take_place() -> Option<usize> {
    USED.iter().enumerate().find_map(|(index, word)| {
        let first_free = |used: u64| index * 64 + used.trailing_ones() as usize;
        let is_free = |used: u64| used != u64::MAX && first_free(used) < PLACES;
        let taken =
            word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |used| is_free(used).then(|| used | (used + 1)));
        taken.ok().map(first_free)
    })
}

/// Takes a place where spent blocks have all of them.
#[cold]
fn take_spent_place() -> Option<usize> {
    core::iter::repeat_with(give_spent_back).take_while(|gives| *gives).find_map(|_| take_place())
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
    let start = machine::blocks() + take_place().or_else(take_spent_place)? * PLACE_BYTES;
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
    if pages <= AT_A_TIME {
        // SAFETY: the caller's promise.
        unsafe { unmap(start, 0..pages) };
        return end_place(start, pages);
    }
    let block = Spent { start, pages, left: pages };
    SPENT.with(|spent| {
        // SAFETY: by the caller's promise the first page is mapped and nobody else's; a page is large enough, and aligned.
        unsafe { block.next().write(spent.replace(block)) };
        SPENT_FRAMES.fetch_add(pages, Ordering::Relaxed);
    });
}

/// Gives back the frames of some pages of a block.
///
/// # Safety
/// The pages are the caller's, and nobody uses them any more.
unsafe fn unmap(start: usize, pages: Range<usize>) {
    for page in pages {
        // SAFETY: the caller's promise.
        let frame = unsafe { machine::unmap_block_page(start + page * PAGE_SIZE) };
        if let Some(frame) = frame {
            // SAFETY: the mapping was the only reference.
            unsafe { supply::give(frame) };
        }
    }
}

/// The place of a block of so many pages, of which nothing is mapped any more, can be used again once all cores have forgotten it.
fn end_place(start: usize, pages: usize) {
    STALE.add((start - machine::blocks()) / PLACE_BYTES, pages, give_place);
}
