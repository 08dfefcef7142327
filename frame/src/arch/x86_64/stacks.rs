//! Kernel stacks: a page that is not mapped below each, and a pool of those that are not in use. Each core keeps a few for itself, which are in its cache, so that
//! cores whose tasks wait do not meet at the pool.
//!
//! When many tasks have stopped waiting, their stacks stay in the pool. Those beyond [`KEPT`] are *spare*: their frames count as free ([`spare_frames`]), and who finds no memory takes
//! them apart ([`give_spare_back`]). So the end of many threads does not pay for it.

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use refs::SpinLock;
use tasks::{Stack, StackSource};

use super::kernel_map::{self, KERNEL_BASE, NO_EXECUTE, STACKS, WRITABLE};
use crate::mm;

/// Bytes of a kernel stack.
pub const STACK_BYTES: usize = 32 << 10;
const PAGE: usize = 4096;
const GUARD_BYTES: usize = PAGE;
const SLOT_BYTES: usize = STACK_BYTES + GUARD_BYTES;
/// As many as fit into the part of the address space that is reserved for stacks.
const MAX_STACKS: usize = (256 << 30) / SLOT_BYTES;

/// So many stacks that nothing runs on are kept.
const KEPT: usize = 32;

/// So many places wait until all cores are asked to forget what was mapped there.
const ASKED_AT_A_TIME: usize = 32;

/// The kernel's stacks that nothing runs on. The lock is not held over an allocation, which may take spare stacks apart.
pub struct Pool(SpinLock<Free>);

/// There is room in each list for all places that were ever used.
struct Free {
    stacks: Vec<Stack>,
    /// Places in the stacks' area that were used before and are not now.
    places: Vec<usize>,
    /// Those of which some core may still know what was mapped there, in the order in which they came.
    stale: Vec<usize>,
    /// How many are not stale any more.
    forgotten: usize,
}

/// The pool.
pub static POOL: Pool =
    Pool(SpinLock::new(Free { stacks: Vec::new(), places: Vec::new(), stale: Vec::new(), forgotten: 0 }));

/// How many places were ever used.
static PLACES: AtomicUsize = AtomicUsize::new(0);

/// How many stacks there are in the pool beyond those that are kept.
static SPARE: AtomicUsize = AtomicUsize::new(0);

/// How many frames the spare stacks have.
pub fn spare_frames() -> usize {
    SPARE.load(Ordering::Relaxed) * (STACK_BYTES / PAGE)
}

/// Gives the memory of a spare stack back; whether there was one. The caller may hold any lock but the frame policy's.
pub fn give_spare_back() -> bool {
    if SPARE.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let spare = POOL.0.with(|free| if free.stacks.len() > KEPT { free.take() } else { None });
    spare.map(|stack| POOL.unmake(stack)).is_some()
}

impl Free {
    fn take(&mut self) -> Option<Stack> {
        let stack = self.stacks.pop();
        SPARE.store(self.stacks.len().saturating_sub(KEPT), Ordering::Relaxed);
        stack
    }

    fn has_room_for(&self, places: usize) -> bool {
        self.stacks.capacity() >= places && self.places.capacity() >= places && self.stale.capacity() >= places
    }
}

impl StackSource for Pool {
    fn take(&self) -> Option<Stack> {
        self.0.with(Free::take).or_else(|| self.make())
    }

    unsafe fn give(&self, stack: Stack) {
        self.0.with(|free| {
            // There is room: `make` saw to it.
            free.stacks.push(stack);
            SPARE.store(free.stacks.len().saturating_sub(KEPT), Ordering::Relaxed);
        });
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

impl Pool {
    /// A new stack; `None` if there is no memory.
    #[cold]
    fn make(&self) -> Option<Stack> {
        self.make_room()?;
        let place = self.take_place()?;
        let bottom = STACKS + place * SLOT_BYTES + GUARD_BYTES;
        // SAFETY: the place is ours alone, and what is below `bottom` is never mapped.
        let stack = unsafe { Stack::new(bottom, bottom + STACK_BYTES) };
        for page in (bottom..bottom + STACK_BYTES).step_by(PAGE) {
            let mapped = mm::take_stack_page().is_some_and(|frame| {
                // SAFETY: the frame is new and now this stack's; nothing is mapped at its place.
                let mapped = unsafe { kernel_map::map_page(page, frame.0 as usize * PAGE, WRITABLE | NO_EXECUTE) };
                if !mapped {
                    // SAFETY: nobody has seen it.
                    unsafe { mm::give_stack_page(frame) };
                }
                mapped
            });
            if !mapped {
                self.unmake(stack);
                return None;
            }
        }
        Some(stack)
    }

    /// Makes room in the lists for one more place.
    fn make_room(&self) -> Option<()> {
        fn larger<T>(count: usize) -> Option<Vec<T>> {
            let mut list = Vec::new();
            list.try_reserve_exact(count).ok()?;
            Some(list)
        }
        fn replace<T>(list: &mut Vec<T>, mut larger: Vec<T>) -> Vec<T> {
            larger.append(list);
            core::mem::replace(list, larger)
        }
        loop {
            let needed = PLACES.load(Ordering::Relaxed) + 1;
            if self.0.with(|free| free.has_room_for(needed)) {
                return Some(());
            }
            let count = needed.next_power_of_two().max(2 * KEPT);
            let (stacks, places, stale) = (larger(count)?, larger(count)?, larger(count)?);
            let _smaller = self.0.with(|free| {
                (!free.has_room_for(count)).then(|| {
                    let stacks = replace(&mut free.stacks, stacks);
                    (stacks, replace(&mut free.places, places), replace(&mut free.stale, stale))
                })
            });
        }
    }

    /// A place in which nothing is mapped, and of which no core knows anything else; `None` if there are too many stacks.
    fn take_place(&self) -> Option<usize> {
        self.0.with(|free| free.places.pop()).or_else(|| self.take_stale_place()).or_else(|| {
            self.0.with(|free| {
                let new = PLACES.load(Ordering::Relaxed);
                // Others may have taken the room since it was made.
                (new < MAX_STACKS && free.has_room_for(new + 1)).then(|| PLACES.store(new + 1, Ordering::Relaxed))?;
                Some(new)
            })
        })
    }

    /// Asks all cores to forget stale places, if these are many, and takes one of them.
    fn take_stale_place(&self) -> Option<usize> {
        let (forgotten, count) = self.0.with(|free| (free.forgotten, free.stale.len()));
        if count < ASKED_AT_A_TIME {
            return None;
        }
        mm::forget_kernel();
        self.0.with(|free| {
            // Another core may have asked as well meanwhile.
            let count = (forgotten + count).saturating_sub(free.forgotten);
            free.forgotten += count;
            free.places.extend(free.stale.drain(..count));
            free.places.pop()
        })
    }

    /// Gives back the memory of a stack that nothing runs on (or of the part that was made).
    #[cold]
    fn unmake(&self, stack: Stack) {
        for page in (stack.bottom()..stack.top()).step_by(PAGE) {
            // SAFETY: whoever has a `Stack` may use its memory, and now nobody has.
            unsafe {
                if let Some(memory) = kernel_map::unmap_page(page) {
                    mm::give_stack_page(mm::FrameNumber((memory / PAGE) as u32));
                }
            }
        }
        let place = (stack.bottom() - GUARD_BYTES - STACKS) / SLOT_BYTES;
        // There is room: `make` saw to it. The memory is given back before others have forgotten it: see `StalePlaces`.
        self.0.with(|free| if mm::has_other_cores() { free.stale.push(place) } else { free.places.push(place) });
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
