//! What cores remember of page tables.
//!
//! A core that runs in the kernel keeps the last address space it used, until it is told another or that space ends. [`leave`] and the flushes below ask
//! the cores that use the space, and wait until they have forgotten.
//!
//! Which those are is seen without a lock. A core that begins to use a root says so *before* it loads it, and what it used until then it says
//! until *after*; loading it is a full barrier. Who clears an entry does so by a locked instruction and looks then. So either the core is seen, or
//! it loads the root when the entry is cleared.
//!
//! A processor walks tables whenever it likes and keeps what it found: translations of pages, and entries that lead to tables. So a
//! frame that was in a table, as a page or as a table below, may be used for something else only after a flush that comes *after*
//! its entry was cleared: before that, any present entry may be remembered again. Types say so: who clears an entry has an [`Unlinked`], which
//! only a flush, or that no core uses the address space ([`Unused`]), turns into a [`Forgotten`]; and only that can be given back.
//!
//! The simulated machine remembers as much as a processor may, and ends the test in which a frame is given back that it remembers.

use core::sync::atomic::{AtomicU32, Ordering, fence};

use super::core_local::{CoreLocal, MAX_CORES};
use super::metadata::{FrameNumber, Kind, Metadata};
use super::{PAGE_SHIFT, PAGE_SIZE, kernel_space, machine};

/// Which root table each core uses.
static USED: CoreLocal<Used> =
    CoreLocal::new([const { Used { active: AtomicU32::new(NONE), next: AtomicU32::new(NONE) } }; MAX_CORES]);
const NONE: u32 = u32::MAX;

/// The root tables of one core; [`NONE`] while it uses the boot code's or the kernel's own.
struct Used {
    active: AtomicU32,
    /// The one that it loads just now, or loaded last.
    next: AtomicU32,
}

/// What a core is asked to forget.
#[derive(Clone, Copy)]
pub(crate) struct Forget {
    /// The root table, or [`NONE`]: the page at `start` is the kernel's.
    pub(crate) root: u32,
    /// The range; if it is empty all of the root, which the core is not to use any more.
    pub(crate) start: usize,
    /// Its end.
    pub(crate) end: usize,
}

/// Forgets what another core asks this one to forget.
#[cfg(target_os = "none")]
pub(crate) fn forget(what: Forget) {
    let root = FrameNumber(what.root);
    if what.root == NONE {
        machine::flush_page(what.start);
    } else if what.start == what.end {
        leave_here(root);
    } else {
        flush_here(root, what.start, what.end);
    }
}

/// Makes all cores forget a page of the kernel's.
#[cfg(target_os = "none")]
pub(crate) fn forget_kernel_page(address: usize) {
    machine::flush_page(address);
    let others = all_others();
    if others != 0 {
        machine::ask_others(others, Forget { root: NONE, start: address, end: address + PAGE_SIZE });
    }
}

/// All cores but this one, as a mask.
fn all_others() -> u64 {
    let count = machine::core_count();
    (u64::MAX >> (u64::BITS as usize - count)) & !(1 << machine::core_number())
}

/// The other cores that use a root, as a mask.
#[inline(always)]
fn users(root: FrameNumber) -> u64 {
    if machine::core_count() == 1 { 0 } else { other_users(root) }
}

#[cold]
fn other_users(root: FrameNumber) -> u64 {
    fence(Ordering::SeqCst);
    let uses = |core: usize| {
        let used = USED.of(core);
        [&used.active, &used.next].iter().any(|word| word.load(Ordering::Relaxed) == root.0)
    };
    (0..machine::core_count()).filter(|core| uses(*core)).fold(0, |mask, core| mask | 1 << core) & all_others()
}

/// Up to how many pages are flushed one by one.
const SINGLY: usize = 32;

/// Makes `root` the table of this core.
///
/// # Safety
/// It is a root table (`table::new_root`) that stays one until it was left.
#[inline(always)]
pub(super) unsafe fn activate(root: FrameNumber) {
    if USED.here().active.load(Ordering::Relaxed) != root.0 {
        // SAFETY: the caller's promise; each root maps the kernel in the same way.
        unsafe { load(root, root.0) };
    }
}

/// Loads a root on this core, and says so (`said`) in the order that the module tells.
///
/// # Safety
/// That of [`activate`].
#[inline(always)]
unsafe fn load(root: FrameNumber, said: u32) {
    let used = USED.here();
    used.next.store(said, Ordering::Relaxed);
    // SAFETY: the caller's promise.
    unsafe { machine::set_root(root) };
    used.active.store(said, Ordering::Release);
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
    leave_here(root);
    let others = users(root);
    if others != 0 {
        machine::ask_others(others, Forget { root: root.0, start: 0, end: 0 });
    }
    Unused(())
}

/// Makes this core not use `root`.
fn leave_here(root: FrameNumber) {
    if is_active(root) {
        // SAFETY: the kernel's own table is for ever.
        unsafe { load(kernel_space::root(), NONE) };
    }
}

/// Whether this core may remember entries of `root`.
#[inline(always)]
fn is_active(root: FrameNumber) -> bool {
    USED.here().active.load(Ordering::Relaxed) == root.0
}

/// Whether no core uses `root` now. (A core that used it before has loaded another root since, and forgot it.)
#[inline(always)]
pub(super) fn unused(root: FrameNumber) -> Option<Unused> {
    (!is_active(root) && users(root) == 0).then_some(Unused(()))
}

/// Makes all cores forget one page of `root`.
#[inline(always)]
pub(super) fn flush_page(root: FrameNumber, address: usize) {
    if is_active(root) {
        machine::flush_page(address);
    }
    let others = users(root);
    if others != 0 {
        machine::ask_others(others, Forget { root: root.0, start: address, end: address + PAGE_SIZE });
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
    if start >= end {
        return;
    }
    flush_here(root, start, end);
    let others = users(root);
    if others != 0 {
        machine::ask_others(others, Forget { root: root.0, start, end });
    }
}

/// As [`flush`], on this core.
fn flush_here(root: FrameNumber, start: usize, end: usize) {
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
