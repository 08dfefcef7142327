//! What cores remember of page tables.
//!
//! A core that runs in the kernel keeps the last address space it used, until it is told another or that space ends. Today
//! one core runs; with more, [`leave`] and the flushes below are the places that have to ask the others.
//!
//! A processor walks tables whenever it likes and keeps what it found: translations of pages, and entries that lead to tables. So a
//! frame that was in a table, as a page or as a table below, may be used for something else only after a flush that comes *after*
//! its entry was cleared: before that, any present entry may be remembered again. Types say so: who clears an entry has an [`Unlinked`], which
//! only a flush, or that no core uses the address space ([`Unused`]), turns into a [`Forgotten`]; and only that can be given back.
//!
//! The simulated machine remembers as much as a processor may, and ends the test in which a frame is given back that it remembers.

use core::sync::atomic::{AtomicU32, Ordering};

use super::core_local::{CoreLocal, MAX_CORES};
use super::metadata::{FrameNumber, Kind, Metadata};
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

/// A frame whose entry was taken out of an address space's tables. A core may still remember the way to it.
#[must_use]
pub(super) struct Unlinked(FrameNumber);

/// A frame that was in a table and is no more, and to which no core remembers a way.
#[must_use]
pub(super) struct Forgotten(FrameNumber);

/// No core remembers anything of an address space. True as long as the space's lock is held and nobody activates it.
#[derive(Clone, Copy)]
pub(super) struct Unused(());

impl Unlinked {
    /// # Safety
    /// The frame was in an entry that is cleared now, and in the caller's name: a page with the entry's reference, or a table without
    /// entries to which none other leads.
    #[inline(always)]
    pub(super) unsafe fn new(frame: FrameNumber) -> Self {
        Unlinked(frame)
    }

    /// From an address space that no core uses.
    #[inline(always)]
    pub(super) fn forgotten(self, _unused: Unused) -> Forgotten {
        Forgotten(self.0)
    }
}

impl Forgotten {
    /// Whether it was a table; else it was a page.
    #[inline(always)]
    pub(super) fn is_table(&self) -> bool {
        // SAFETY: a frame in use has a number in range.
        unsafe { Metadata::of(self.0) }.is(Kind::Table)
    }

    /// The frame, with what [`Unlinked::new`] was promised.
    #[inline(always)]
    pub(super) fn frame(self) -> FrameNumber {
        self.0
    }
}

/// Makes no core use `root`.
pub(super) fn leave(root: FrameNumber) -> Unused {
    if is_active(root) {
        ACTIVE.here().store(NONE, Ordering::Relaxed);
        // SAFETY: the kernel's own table is for ever.
        unsafe { machine::set_root(kernel_space::root()) };
    }
    Unused(())
}

/// Whether a core may remember entries of `root`.
#[inline(always)]
fn is_active(root: FrameNumber) -> bool {
    ACTIVE.here().load(Ordering::Relaxed) == root.0
}

/// Whether no core uses `root` now. (A core that used it before has loaded another root since, and forgot it.)
#[inline(always)]
pub(super) fn unused(root: FrameNumber) -> Option<Unused> {
    (!is_active(root)).then_some(Unused(()))
}

/// Makes all cores forget one page of `root`.
#[inline(always)]
pub(super) fn flush_page(root: FrameNumber, address: usize) {
    if is_active(root) {
        machine::flush_page(address);
    }
}

/// As [`flush_page`], for a page whose entry is another's now.
#[inline(always)]
pub(super) fn flush_replaced(root: FrameNumber, address: usize, page: Unlinked) -> Forgotten {
    flush_page(root, address);
    Forgotten(page.0)
}

/// As [`flush`], for frames that were unlinked in that range. Each is handed to `give_back`, which leaves the slice's value unused.
#[inline]
pub(super) fn flush_unlinked(
    root: FrameNumber,
    start: usize,
    end: usize,
    unlinked: &[Unlinked],
    mut give_back: impl FnMut(Forgotten),
) {
    flush(root, start, end);
    for frame in unlinked {
        give_back(Forgotten(frame.0));
    }
}

/// Makes all cores forget the pages of a range of `root`, and the tables on the way to them.
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
