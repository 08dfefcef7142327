//! Memory: frames, untyped user memory, page tables, heap.
//!
//! From the bottom up:
//!
//! | file | what it holds |
//! | --- | --- |
//! | `machine` | the way to a frame's bytes, copies, the page-table register: real, or simulated where the tests run on a host |
//! | `metadata` | one record for each frame: what it is used as, how often, the policies' words |
//! | `supply` | unused frames: a stack of them for each core, behind it the policy; the checks of invariant 1 |
//! | `owner` | who pays for the frames of user programs |
//! | `boot_module` | the initial ram disk, whose frames come back as it is read |
//! | `frame`, `typed` | counted handles: untyped frames ([`UFrame`], [`USegment`]), frames with typed metadata ([`Frame`], [`Segment`]) |
//! | `io` | [`Reader`] and [`Writer`]: the only way to untyped bytes (invariant 4) |
//! | `table`, `walk`, `tlb`, `kernel_space`, `vm_space`, `detached` | page tables, what cores remember of them, user address spaces (invariant 5), and what is left of those that have ended |
//! | `slab`, `heap`, `scattered` | the kernel's heap (invariants 9 and 10) |
//! | `stale_places` | addresses of the kernel's that wait until all cores have forgotten what was mapped there |
//!
//! Kernel code runs with interrupts off, so what belongs to a core needs no lock as long as it is not entered twice on one
//! stack; each use says why it is not.
mod boot_module;
mod core_local;
mod detached;
mod frame;
mod heap;
mod io;
mod kernel_space;
mod machine;
mod metadata;
mod owner;
mod scattered;
mod slab;
mod stale_places;
mod supply;
mod table;
mod tlb;
mod typed;
mod vm_space;
mod walk;

#[cfg(test)]
mod tests;

use core::ops::Range;
use core::sync::atomic::Ordering;

pub use boot_module::BootModule;
pub(crate) use core_local::CoreLocal;
pub use detached::DetachedPages;
#[cfg(not(target_os = "none"))]
pub(crate) use frame::untyped_frame;
pub use frame::{UFrame, USegment, Word};
pub use heap::Heap;
#[cfg(feature = "scarce")]
pub use heap::{LARGE_PAGES, refuse_blocks_from};
pub use io::{Access, Fault, Reader, Writer};
pub use metadata::{FrameLink, FrameNumber, frame_count, frame_link};
pub use owner::{
    Accounts, Charged, Cores, NOBODY, Need, Part, charge_by, gather_all_stocks, gather_stocks, in_stock, owner,
    tables_in_stock, work_for,
};
pub use slab::{HeapSlots, SizeClass, Slab, SlabPolicy, SlotsOut};
pub use supply::{FramePolicy, Recovery, free_frames, recover_by, set_reserve};
pub(crate) use supply::{claim_idle, give_block, release_block};
#[cfg(target_os = "none")]
pub(crate) use supply::{give_stack_page, take_stack_page};
pub(crate) use tlb::{Context, Forget};
#[cfg(target_os = "none")]
pub(crate) use tlb::{flush_kernel_page, forget, forget_kernel, forget_kernel_page};
pub use typed::{Frame, FrameMeta, Segment};
pub use vm_space::{Entry, LEAF_BYTES, Noted, OutOfMemory, Prot, RightsChange, Sharing, USER_END, VmSpace};

/// Whether other cores may know what was mapped in the kernel's address space.
#[cfg(target_os = "none")]
pub(crate) fn has_other_cores() -> bool {
    machine::core_count() != 1
}

/// Bytes in a page and in a frame.
pub const PAGE_SIZE: usize = 4096;

/// log2 of [`PAGE_SIZE`].
const PAGE_SHIFT: u32 = 12;

/// Takes over the machine's memory. `usable` are the physical ranges that nobody uses, in any order and of any alignment;
/// they do not overlap, and all of them are in the direct map. `filled` is memory that a [`BootModule`] will give back. The frames' metadata are taken
/// from the first range that has room for them. The current page table becomes the kernel's own.
///
/// Called once, on the boot core, before anything else here.
pub(crate) fn init(
    usable: impl Iterator<Item = Range<usize>> + Clone,
    filled: Range<usize>,
    frames: &'static dyn FramePolicy,
    slabs: &'static dyn SlabPolicy,
) {
    let taken = metadata::init(usable.clone(), filled);
    supply::init(frames);
    for range in usable {
        for part in [range.start..range.end.min(taken.start), range.start.max(taken.end)..range.end] {
            if let Some((first, count)) = metadata::whole_frames(part) {
                frames.add(first, count);
            }
        }
    }
    kernel_space::init();
    heap::init(slabs);
}

/// Gives back all memory that this core keeps at hand only to be quick: free slots of the heap and empty slabs, empty page
/// tables, single frames. For when memory is short, before somebody is made to suffer.
pub fn trim() {
    heap::trim();
    table::trim();
    supply::trim();
}

/// How many frames large blocks of the heap have that were given back: they count as free, and [`give_spent_back`] gives them back.
pub(crate) fn spent_frames() -> usize {
    scattered::spent_frames()
}

/// Gives some frames of such a block back; whether there was one. The caller may hold any lock but the frame policy's.
pub(crate) fn give_spent_back() -> bool {
    scattered::give_spent_back()
}

/// Brings together what cores keep at hand only to be quick, before somebody is told that there is no memory or is ended for it: this core's frames, tables and slots,
/// and the frames and tables of all others. (Their slots they give back when [asked](ask_for_slots).) The caller holds no lock of the heap's or of frames.
#[cold]
pub fn gather() {
    trim();
    supply::gather(1);
}

/// Asks other cores to [trim](self::trim) all that they keep at hand. Each does so when it is next in user mode, idle, or lets interrupts in.
#[cold]
pub fn ask_for_slots() {
    let here = core_local::here();
    for core in 0..machine::core_count() {
        if let Some(other) = core_local::of(core)
            && !core::ptr::eq(other, here)
        {
            other.is_to_trim.store(true, Ordering::Release);
            crate::cpu::interrupt(core);
        }
    }
}

/// Whether no core has yet to do what it was [asked for](ask_for_slots).
pub fn slots_have_come() -> bool {
    core_local::all().all(|core| !core.is_to_trim.load(Ordering::Acquire))
}

/// Another core has interrupted this one, which holds no lock.
#[cfg(target_os = "none")]
pub(crate) fn was_interrupted() {
    let is_to_trim = &core_local::here().is_to_trim;
    if is_to_trim.load(Ordering::Acquire) {
        trim();
        is_to_trim.store(false, Ordering::Release);
    }
}

/// Gives a test on a host `frames` frames of simulated memory, under these policies. They last for the process.
///
/// Simulated memory is one core's: tests that use it run one at a time.
#[cfg(not(target_os = "none"))]
pub fn simulate(frames: usize, policy: &'static dyn FramePolicy, slabs: &'static dyn SlabPolicy) {
    // A hole, at whose start the loader put something, and a range that is not whole frames, as real machines have.
    let end = frames * PAGE_SIZE;
    let loaded = end / 8..end / 8 + 16 * PAGE_SIZE;
    init([PAGE_SIZE + 1..end / 8, end / 4..end].into_iter(), loaded, policy, slabs);
}
