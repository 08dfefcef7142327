//! What cores remember of page tables.
//!
//! A core that runs in the kernel keeps the last address space it used, until it is told another or that space ends. Today
//! one core runs; with more, [`leave`] and the flushes below are the places that have to ask the others, and their callers
//! free frames and tables only behind them.

use core::sync::atomic::{AtomicU32, Ordering};

use super::core_local::{CoreLocal, MAX_CORES};
use super::metadata::FrameNumber;
use super::{PAGE_SHIFT, PAGE_SIZE, kernel_space, machine};

/// The root table that each core uses; `u32::MAX` while it is the boot code's or the kernel's own.
static ACTIVE: CoreLocal<AtomicU32> = CoreLocal::new([const { AtomicU32::new(NONE) }; MAX_CORES]);
const NONE: u32 = u32::MAX;

/// Up to how many pages are flushed one by one.
const SINGLY: usize = 32;

/// Makes `root` the table of this core.
///
/// # Safety
/// It is a root table (`table::new_root`) that stays one until it was left.
#[inline(always)]
pub(super) unsafe fn activate(root: FrameNumber) {
    let active = ACTIVE.here();
    if active.load(Ordering::Relaxed) != root.0 {
        active.store(root.0, Ordering::Relaxed);
        // SAFETY: the caller's promise; each root maps the kernel in the same way.
        unsafe { machine::set_root(root) };
    }
}

/// Makes no core use `root`.
pub(super) fn leave(root: FrameNumber) {
    if is_active(root) {
        ACTIVE.here().store(NONE, Ordering::Relaxed);
        // SAFETY: the kernel's own table is for ever.
        unsafe { machine::set_root(kernel_space::root()) };
    }
}

/// Whether a core may remember entries of `root`.
#[inline(always)]
pub(super) fn is_active(root: FrameNumber) -> bool {
    ACTIVE.here().load(Ordering::Relaxed) == root.0
}

/// Makes all cores forget one page of `root`.
#[inline(always)]
pub(super) fn flush_page(root: FrameNumber, address: usize) {
    if is_active(root) {
        machine::flush_page(address);
    }
}

/// Makes all cores forget the pages of a range of `root`.
pub(super) fn flush(root: FrameNumber, start: usize, end: usize) {
    if !is_active(root) {
        return;
    }
    if (end - start) >> PAGE_SHIFT <= SINGLY {
        for address in (start..end).step_by(PAGE_SIZE) {
            machine::flush_page(address);
        }
    } else {
        // SAFETY: it is the table in use.
        unsafe { machine::set_root(root) };
    }
}
