//! Memory: address spaces, and how much of the machine's is free.
//!
//! | file | what it is |
//! | --- | --- |
//! | `vma` | which ranges are mapped, and how: pure bookkeeping |
//! | `backing`, `pages`, `page_map`, `shared` | what a VMA shows: nothing, a file's pages, shared anonymous memory |
//! | `layout`, `overcommit` | the VMAs of an address space with what is counted of them, and what may be promised |
//! | `space` | the address space: layout and page tables together |
//! | `fault` | making a page accessible: copy-on-write, files, stack growth |
//! | `change` | changes that take several steps |
//! | `unmap` | taking pages of an object out of all address spaces |
//! | `mmap`, `mremap`, `madvise`, `fork`, `teardown` | the changes |
//! | [`account`] | how much memory a group of programs has and may have |
//! | [`remains`] | what is left of large address spaces that have ended |
//! | `vdso` | the code and data that every process has mapped |
//!
//! Which frame and which slab is used is what [`allocators`] says.

pub mod account;
mod backing;
mod change;
mod fault;
mod fork;
mod layout;
mod madvise;
mod mmap;
mod mremap;
pub mod overcommit;
mod page_map;
mod pages;
pub mod remains;
mod shared;
mod space;
pub mod teardown;
mod unmap;
mod vdso;
mod vma;

use alloc::boxed::Box;
use core::sync::atomic::{AtomicUsize, Ordering};

use allocators::buddy;
use frame::Cx;
use frame::mm::{FramePolicy, UFrame};
use tasks::StaticRef;

use crate::error::{Errno, Result};
use crate::step::{Absent, Stop};

pub use backing::{Backing, BackingObject, WritableMappings};
pub use fault::{RemoteRight, Resident};
pub use fork::Fork;
pub use layout::FREE_MAPPINGS;
pub use madvise::{Advice, Advise, Durability, Lock, Populate, SetLock, Synchronise};
pub use mmap::{Limits, Map, Mapping, Placement, Protect, SetBreak, Unmap, page_range};
pub use mremap::{Move, Origin, Remap};
pub use page_map::{PageMap, leave_gathered};
pub use pages::{Mappable, Pages};
pub use shared::SharedMemory;
pub use space::{AddressSpace, Executable, Image, LOWEST, Sizes, VmaName, VmaReport};
pub use unmap::{Mapped, begin_unmapping, finish_unmapping, unmap_pages};
pub use vdso::VDSO_PAGES;
pub use vma::{MAX_AREAS, VmaFlags};

/// The frames that programs cannot have, of a machine with `total`: for what is under way in the kernel, and for the end of a
/// program that is killed because there is no more memory.
fn reserve(total: usize) -> usize {
    (total / 64).clamp(64, 1024)
}

/// The reserve, and a kernel stack for each thread.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// So few free frames are only for the end of programs.
static EXHAUSTED: AtomicUsize = AtomicUsize::new(0);

/// Sets the reserve of frames aside, and makes what every program has mapped: code, and the page of data (`clocks`) that it reads. Called once, before the
/// first program.
pub fn start(clocks: UFrame) {
    buddy::FRAMES.begin();
    vdso::start(clocks);
    overcommit::start();
    EXHAUSTED.store(reserve(frame::mm::frame_count()) / 4, Ordering::Relaxed);
    keep_stacks(0);
    remains::start();
    account::start();
}

/// For so many more threads, or fewer, [`keep_stacks`] keeps other memory.
pub const STACKS_AT_A_TIME: usize = 8;

/// Keeps memory aside for the kernel stacks of so many threads. A thread takes a stack only when it blocks in the kernel, but then it must get
/// one: those that wait for memory could not be left otherwise, and nobody could run to give any back.
pub fn keep_stacks(threads: usize) {
    const FRAMES: usize = frame::KERNEL_STACK_BYTES / frame::mm::PAGE_SIZE + 1;
    // All calls read what is written here: not each fork and end of a thread changes it.
    let threads = threads.next_multiple_of(STACKS_AT_A_TIME);
    let total = frame::mm::frame_count();
    let kept = reserve(total) + threads.saturating_mul(FRAMES).min(total / 4);
    if KEPT.load(Ordering::Relaxed) != kept {
        KEPT.store(kept, Ordering::Relaxed);
        frame::mm::set_reserve(kept);
    }
}

/// Whether even what the kernel keeps for itself is nearly gone: calls wait until somebody has ended, or fail.
#[inline(always)]
pub fn is_exhausted() -> bool {
    buddy::FRAMES.available() < EXHAUSTED.load(Ordering::Relaxed) && remains::owed_at_once() == 0
}

/// Whether there is memory for one more kernel object (a process, an open file, a pipe, ...): asked by every call that makes one.
///
/// # Errors
/// ENOMEM.
#[inline]
pub fn admit() -> Result<()> {
    let least = KEPT.load(Ordering::Relaxed) - reserve(frame::mm::frame_count()) / 2;
    if buddy::FRAMES.available() > least { Ok(()) } else { admit_after_gathering(least) }
}

/// What cores have at hand counts as well, once it has been brought together.
#[cold]
fn admit_after_gathering(least: usize) -> Result<()> {
    loop {
        frame::mm::gather();
        if buddy::FRAMES.available() > least {
            return Ok(());
        }
        if !remains::settle_some() {
            // What that gives back is more than an object takes, and is there before the next call.
            return if remains::end_objects() { Ok(()) } else { Err(Errno::ENOMEM) };
        }
    }
}

/// Whether there is memory for programs.
pub fn has_memory() -> bool {
    buddy::FRAMES.available() + remains::owed() > KEPT.load(Ordering::Relaxed)
}

/// Brings together what all cores have at hand, if there is no memory for programs otherwise: whether there is then, and was not before.
#[cold]
pub fn gather() -> bool {
    let has_memory = || buddy::FRAMES.available() > KEPT.load(Ordering::Relaxed);
    if has_memory() {
        return false;
    }
    remains::settle_some();
    frame::mm::gather();
    has_memory()
}

/// Whoever has memory that belongs to nobody just now.
static MORE: StaticRef<fn(&Cx) -> bool> = StaticRef::none();

/// Says who is asked for memory before somebody is ended for want of it. It says whether it gave some, and takes no lock but of drivers. Called once, at boot.
pub fn ask_for_more_by(more: fn(&Cx) -> bool) {
    MORE.set(Some(Box::leak(Box::new(more))));
}

/// Asks for memory that belongs to nobody just now; whether there was some.
#[cold]
pub fn ask_for_more(cx: &Cx) -> bool {
    MORE.get().is_some_and(|more| more(cx))
}

/// Why a page cannot be made accessible, as the signal that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadAccess {
    /// SIGSEGV, SEGV_MAPERR: nothing is mapped there.
    NotMapped,
    /// SIGSEGV, SEGV_ACCERR: what is mapped there does not allow it.
    NotAllowed,
    /// SIGBUS, BUS_ADRERR: beyond the end of the mapped file.
    BeyondFile,
    /// No signal: a device was asked for the page, and the access is to be tried again when it has come.
    Absent(Absent),
    /// No memory: the process is killed (SIGKILL) or, inside a system call, gets ENOMEM.
    NoMemory,
}

impl BadAccess {
    /// What a system call says of it.
    pub fn errno(self) -> Errno {
        match self {
            BadAccess::NoMemory => Errno::ENOMEM,
            _ => Errno::EFAULT,
        }
    }

    /// The same in a step, which can wait for what is absent.
    pub fn stop(self) -> Stop {
        match self {
            BadAccess::Absent(absent) => Stop::Absent(absent),
            bad => bad.errno().into(),
        }
    }
}
