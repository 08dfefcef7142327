//! Kernel stacks: a page that is not mapped below each, and a pool of those that are not in use. Each core keeps a few for itself, which are in its cache, so that
//! cores whose tasks wait do not meet at the pool.
//!
//! A stack's pages are the heap's, mapped a second time in the stacks' area; when many tasks have stopped waiting, the pages go
//! back to the heap.

use alloc::vec::Vec;
use core::alloc::Layout;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use refs::SpinLock;
use tasks::{Stack, StackSource};

use super::kernel_map::{self, DIRECT_MAP, KERNEL_BASE, NO_EXECUTE, STACKS, WRITABLE};
use crate::mm::StalePlaces;

/// Bytes of a kernel stack.
pub const STACK_BYTES: usize = 32 << 10;
const PAGE: usize = 4096;
const GUARD_BYTES: usize = PAGE;
const SLOT_BYTES: usize = STACK_BYTES + GUARD_BYTES;
/// As many as fit into the part of the address space that is reserved for stacks.
const MAX_STACKS: usize = (256 << 30) / SLOT_BYTES;

/// So many stacks that nothing runs on are kept; the memory of the others goes back.
const KEPT: usize = 32;

/// The kernel's stacks that nothing runs on.
pub struct Pool(SpinLock<Free>);

struct Free {
    stacks: Vec<Stack>,
    /// Places in the stacks' area that were used before and are not now.
    places: Vec<usize>,
}

/// The pool.
pub static POOL: Pool = Pool(SpinLock::new(Free { stacks: Vec::new(), places: Vec::new() }));

/// The places that were used before and are not yet in the pool again.
static STALE: StalePlaces = StalePlaces::new();

/// How many places were ever used.
static PLACES: AtomicUsize = AtomicUsize::new(0);

impl StackSource for Pool {
    fn take(&self) -> Option<Stack> {
        self.0.with(|free| free.stacks.pop()).or_else(|| self.make())
    }

    unsafe fn give(&self, stack: Stack) {
        let surplus = self.0.with(|free| {
            if free.stacks.len() >= KEPT {
                return Some(stack);
            }
            // There is room: `make` saw to it.
            free.stacks.push(stack);
            None
        });
        if let Some(stack) = surplus {
            self.unmake(stack);
        }
    }
}

/// So many stacks that nothing runs on each core keeps for itself.
const KEPT_BY_CORE: usize = 8;

/// The stacks that a core keeps for itself, in front of the pool; on lines of their own.
#[repr(align(64))]
pub struct OfCore(SpinLock<Few>);

struct Few {
    stacks: [Option<Stack>; KEPT_BY_CORE],
    count: usize,
}

impl OfCore {
    /// None, so far.
    pub const fn new() -> Self {
        OfCore(SpinLock::new(Few { stacks: [const { None }; KEPT_BY_CORE], count: 0 }))
    }
}

impl StackSource for OfCore {
    fn take(&self) -> Option<Stack> {
        let own = self.0.with(|few| {
            few.count = few.count.checked_sub(1)?;
            few.stacks.get_mut(few.count)?.take()
        });
        own.or_else(|| POOL.take())
    }

    unsafe fn give(&self, stack: Stack) {
        let surplus = self.0.with(|few| {
            let Some(place) = few.stacks.get_mut(few.count) else { return Some(stack) };
            *place = Some(stack);
            few.count += 1;
            None
        });
        if let Some(stack) = surplus {
            // SAFETY: as this function's contract.
            unsafe { POOL.give(stack) };
        }
    }
}

const PAGE_LAYOUT: Layout = match Layout::from_size_align(PAGE, PAGE) {
    Ok(layout) => layout,
    Err(_) => panic!("the page size is a power of two"),
};

impl Pool {
    /// A new stack; `None` if there is no memory.
    #[cold]
    fn make(&self) -> Option<Stack> {
        let place = self.0.with(|free| {
            free.stacks.try_reserve(KEPT).ok()?;
            free.places.try_reserve(PLACES.load(Ordering::Relaxed) + 1).ok()?;
            free.places.pop().or_else(|| {
                let new = PLACES.load(Ordering::Relaxed);
                (new < MAX_STACKS).then(|| PLACES.store(new + 1, Ordering::Relaxed))?;
                Some(new)
            })
        })?;
        let bottom = STACKS + place * SLOT_BYTES + GUARD_BYTES;
        // SAFETY: the place is ours alone, and what is below `bottom` is never mapped.
        let stack = unsafe { Stack::new(bottom, bottom + STACK_BYTES) };
        for page in (bottom..bottom + STACK_BYTES).step_by(PAGE) {
            // SAFETY: the layout is not empty. The page is the heap's and now this stack's; nothing is mapped at its place.
            let mapped = unsafe {
                let memory = alloc::alloc::alloc(PAGE_LAYOUT);
                let mapped =
                    !memory.is_null() && kernel_map::map_page(page, memory.addr() - DIRECT_MAP, WRITABLE | NO_EXECUTE);
                if !mapped && !memory.is_null() {
                    alloc::alloc::dealloc(memory, PAGE_LAYOUT);
                }
                mapped
            };
            if !mapped {
                self.unmake(stack);
                return None;
            }
        }
        Some(stack)
    }

    /// Gives back the memory of a stack that nothing runs on (or of the part that was made).
    #[cold]
    fn unmake(&self, stack: Stack) {
        for page in (stack.bottom()..stack.top()).step_by(PAGE) {
            // SAFETY: whoever has a `Stack` may use its memory, and now nobody has.
            unsafe {
                if let Some(memory) = kernel_map::unmap_page(page) {
                    alloc::alloc::dealloc((DIRECT_MAP + memory) as *mut u8, PAGE_LAYOUT);
                }
            }
        }
        let place = (stack.bottom() - GUARD_BYTES - STACKS) / SLOT_BYTES;
        STALE.add(place, STACK_BYTES / PAGE, |place| {
            // There is room: `make` saw to it.
            self.0.with(|free| free.places.push(place));
        });
    }
}

fn slot_offset(address: usize) -> Option<usize> {
    let places = PLACES.load(Ordering::Relaxed);
    let offset = address.checked_sub(STACKS)?;
    (offset < places * SLOT_BYTES).then_some(offset % SLOT_BYTES)
}

/// Whether the address is in the page below a stack.
pub fn is_guard(address: usize) -> bool {
    slot_offset(address).is_some_and(|offset| offset < GUARD_BYTES)
}

/// What lies on a stack from `address` to its top; of an overflown stack, all of it.
pub fn rest_of(address: usize) -> Option<Range<usize>> {
    if let Some(offset) = slot_offset(address) {
        let slot = address - offset;
        return Some(address.max(slot + GUARD_BYTES)..slot + SLOT_BYTES);
    }
    // The stack of the boot core, or one for double faults: at most 16 KiB of it.
    let end = kernel_map::image().end + KERNEL_BASE;
    (address >= kernel_map::text().end && address < end).then_some(address..end.min(address + (16 << 10)))
}
