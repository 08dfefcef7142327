//! Kernel stacks: a page that is not mapped below each, and a pool of those that are not in use.
//!
//! A stack's memory is a block of the heap, mapped a second time in the stacks' area; a stack that has been made is kept for ever.

use alloc::vec::Vec;
use core::alloc::Layout;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use refs::SpinLock;
use tasks::{Stack, StackSource};

use super::kernel_map::{self, DIRECT_MAP, KERNEL_BASE, NO_EXECUTE, STACKS, WRITABLE};

/// Bytes of a kernel stack.
pub const STACK_BYTES: usize = 32 << 10;
const GUARD_BYTES: usize = 4096;
const SLOT_BYTES: usize = STACK_BYTES + GUARD_BYTES;
/// As many as fit into the part of the address space that is reserved for stacks.
const MAX_STACKS: usize = (256 << 30) / SLOT_BYTES;

static MADE: AtomicUsize = AtomicUsize::new(0);

/// The kernel's stacks that nothing runs on.
pub struct Pool(SpinLock<Vec<Stack>>);

/// The pool.
pub static POOL: Pool = Pool(SpinLock::new(Vec::new()));

impl StackSource for Pool {
    fn take(&self) -> Option<Stack> {
        self.0.with(Vec::pop).or_else(make)
    }

    fn give(&self, stack: Stack) {
        // The pool has room for all stacks that were made: this does not allocate.
        self.0.with(|pool| pool.push(stack));
    }
}

/// A new stack; `None` if there is no memory.
#[cold]
fn make() -> Option<Stack> {
    let number = MADE.load(Ordering::Relaxed);
    POOL.0.with(|pool| pool.try_reserve(number + 1)).ok()?;
    let layout = Layout::from_size_align(STACK_BYTES, 4096).ok()?;
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc::alloc::alloc(layout) };
    if memory.is_null() {
        return None;
    }
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    if number >= MAX_STACKS {
        return None;
    }
    let bottom = STACKS + number * SLOT_BYTES + GUARD_BYTES;
    // SAFETY: nobody else has that number, so nothing is mapped there; the memory is the heap's and now this stack's for ever.
    unsafe {
        kernel_map::map_pages(bottom, memory.addr() - DIRECT_MAP, STACK_BYTES, WRITABLE | NO_EXECUTE)
            .then(|| Stack::new(bottom, bottom + STACK_BYTES))
    }
}

fn slot_offset(address: usize) -> Option<usize> {
    let made = MADE.load(Ordering::Relaxed).min(MAX_STACKS);
    let offset = address.checked_sub(STACKS)?;
    (offset < made * SLOT_BYTES).then_some(offset % SLOT_BYTES)
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
