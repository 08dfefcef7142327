//! What cores remember of page tables.
//!
//! A core that runs in the kernel keeps the last address space it used, until it is told another or that space ends; one that idles when it is asked to
//! forget a part leaves it, so that it is asked once only. [`leave`] and the flushes below ask the cores that use the space, and wait until they have forgotten.
//!
//! Which those are is seen without a lock. A core that begins to use a root says so *before* it loads it, and what it used until then it says
//! until *after*; loading it is a full barrier. Who clears an entry does so by a locked instruction and looks then. So either the core is seen, or
//! it loads the root when the entry is cleared. What a core says first is looked at first: else one that comes and goes between the two looks is not seen.
//!
//! A processor walks tables whenever it likes and keeps what it found: translations of pages, and entries that lead to tables. So a
//! frame that was in a table, as a page or as a table below, may be used for something else only after a flush that comes *after*
//! its entry was cleared: before that, any present entry may be remembered again. Types say so: who clears an entry has an [`Unlinked`], which
//! only a flush, or that no core uses the address space ([`Unused`]), turns into a [`Forgotten`]; and only that can be given back.
//!
//! *The kernel's pages* are the same in all tables and remembered by all cores. Where one is mapped in the place of another, all are asked ([`forget_kernel_page`],
//! or [`forget_kernel`] for many at once). Where one is unmapped nobody is asked: only the address is not used again before all have forgotten it ([`super::stale_places`]).
//!
//! *Contexts.* Where the processor tags what it remembers with a process-context identifier, a core that loads another root keeps what it knows of the last few
//! ([`Contexts`]). It uses nothing of a context that is not the current one, and walks no tables for it: neither for an access nor ahead of one (Intel SDM volume 3, sections
//! 4.10.2 and 4.10.3). So a core that has loaded another root need not be asked; it must only not come back to what is out of date. For that each root has a
//! generation: whoever clears an entry begins the next one, before it looks who uses the root. A core that loads a root says so first, reads the generation then, and keeps what
//! the context has only if that is of this generation; else loading it forgets all of it, in one instruction. So either the core is seen and asked, or it reads the new
//! generation. What is remembered in the meantime leads to frames that may be in use for something else, and is never used. A core that forgot by a
//! request or by itself exactly what a generation began for is of that generation, and any other begins anew once more than it had to.
//! The end of an address space begins a generation as well, since its root becomes another's. Roots share generations where there are more of
//! them than counters, which makes some out of date that are not.
//!
//! The simulated machine remembers as much as a processor may, and ends the test in which a frame is given back that it remembers.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use super::core_local;
use super::metadata::{FrameNumber, Kind, Metadata};
use super::{PAGE_SHIFT, PAGE_SIZE, USER_END, kernel_space, machine};
use crate::core_set::CoreSet;

const NONE: u32 = u32::MAX;
/// No root either: in a request, that a core gives the frames and tables back that it keeps at hand.
const FRAMES: u32 = u32::MAX - 1;

/// The root tables that a core uses; [`NONE`] while it uses the boot code's or the kernel's own. Others look at it: a line of its own.
#[repr(align(64))]
pub(super) struct Used {
    active: AtomicU32,
    /// The one that it loads just now, or loaded last.
    next: AtomicU32,
}

impl Used {
    pub(super) const fn new() -> Self {
        Used { active: AtomicU32::new(NONE), next: AtomicU32::new(NONE) }
    }
}

/// Of which context what a processor remembers from now on is, and whether it keeps what it has of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    /// The process-context identifier. 0 is that of the kernel's own root, and everybody's where there are none.
    pub(crate) number: u16,
    pub(crate) keeps: bool,
}

/// How many roots a core keeps something of.
const KEPT: usize = 6;

/// The contexts of one core: number n + 1 is the one at index n. On lines of their own.
#[repr(align(64))]
pub(super) struct Contexts {
    kept: [Kept; KEPT],
    /// The index of the one that was loaded last.
    current: AtomicU32,
    /// The index of the one that another root takes next.
    oldest: AtomicU32,
}

/// Whose entries a context has, and up to which generation it forgot what it had to.
struct Kept {
    root: AtomicU32,
    generation: AtomicU64,
}

/// The generations of roots, by their numbers modulo how many there are.
static GENERATIONS: [AtomicU64; 1024] = [const { AtomicU64::new(1) }; 1024];

#[inline(always)]
fn generation(root: FrameNumber) -> &'static AtomicU64 {
    &GENERATIONS[root.0 as usize % GENERATIONS.len()]
}

/// Entries of `root` were cleared: what any core remembers of it is out of date. The number of the generation, or 0 where there are no contexts.
#[inline(always)]
fn begin_generation(root: FrameNumber) -> u64 {
    if machine::has_contexts() { generation(root).fetch_add(1, Ordering::SeqCst) + 1 } else { 0 }
}

impl Contexts {
    pub(super) const fn new() -> Self {
        Contexts {
            kept: [const { Kept { root: AtomicU32::new(NONE), generation: AtomicU64::new(0) } }; KEPT],
            current: AtomicU32::new(0),
            oldest: AtomicU32::new(0),
        }
    }

    /// The context to load a root in, which this core has said that it loads.
    #[cold]
    fn choose(&self, root: FrameNumber) -> Context {
        fence(Ordering::SeqCst);
        let now = generation(root).load(Ordering::Acquire);
        let known = self.kept.iter().position(|kept| kept.root.load(Ordering::Relaxed) == root.0);
        let index = known.unwrap_or_else(|| {
            let oldest = self.oldest.load(Ordering::Relaxed) as usize % KEPT;
            self.oldest.store((oldest + 1) as u32, Ordering::Relaxed);
            oldest
        });
        let kept = &self.kept[index];
        let keeps = known.is_some() && kept.generation.load(Ordering::Relaxed) == now;
        kept.root.store(root.0, Ordering::Relaxed);
        kept.generation.store(now, Ordering::Relaxed);
        self.current.store(index as u32, Ordering::Relaxed);
        Context { number: index as u16 + 1, keeps }
    }

    /// The current context has forgotten what a generation began for; if that is the next one, it is of that.
    #[inline(always)]
    fn forgot(&self, generation: u64) {
        let kept = &self.kept[self.current.load(Ordering::Relaxed) as usize % KEPT].generation;
        if kept.load(Ordering::Relaxed) + 1 == generation {
            kept.store(generation, Ordering::Relaxed);
        }
    }
}

/// What a core is asked to forget.
#[derive(Clone, Copy)]
pub(crate) struct Forget {
    /// The root table; or [`NONE`]: the page at `start` is the kernel's, or all of the kernel's are meant; or [`FRAMES`].
    pub(crate) root: u32,
    /// The generation that has begun for it.
    pub(crate) generation: u64,
    /// The range; if it is empty all of the root, which the core is not to use any more.
    pub(crate) start: usize,
    /// Its end.
    pub(crate) end: usize,
}

/// Forgets what another core asks this one to forget, which may have been idle.
#[cfg(target_os = "none")]
pub(crate) fn forget(what: Forget, idles: bool) {
    let root = FrameNumber(what.root);
    if what.root == FRAMES {
        super::table::trim();
        super::supply::trim();
    } else if what.root == NONE && what.start == what.end {
        machine::flush_all();
    } else if what.root == NONE {
        machine::flush_page(what.start);
    } else if what.start == what.end || idles {
        leave_here(root);
    } else if machine::has_contexts() {
        flush_context_here(root, what.start, what.end, what.generation);
    } else {
        flush_here(root, what.start, what.end);
    }
}

/// Makes all cores forget a page of the kernel's.
#[cfg(target_os = "none")]
pub(crate) fn forget_kernel_page(address: usize) {
    machine::flush_page(address);
    let others = all_others();
    if !others.is_empty() {
        machine::ask_others(others, Forget { root: NONE, generation: 0, start: address, end: address + PAGE_SIZE });
    }
}

/// Makes this core forget a page of the kernel's.
#[cfg(target_os = "none")]
pub(crate) fn flush_kernel_page(address: usize) {
    machine::flush_page(address);
}

/// Makes all cores forget all pages of the kernel's.
pub(crate) fn forget_kernel() {
    machine::flush_all();
    let others = all_others();
    if !others.is_empty() {
        machine::ask_others(others, Forget { root: NONE, generation: 0, start: 0, end: 0 });
    }
}

/// Has all other cores give the frames and tables back that they keep at hand. They may hold any lock but the frame policy's, as the caller may.
pub(super) fn ask_for_frames() {
    machine::ask_others(all_others(), Forget { root: FRAMES, generation: 0, start: 0, end: 0 });
}

/// All cores but this one.
fn all_others() -> CoreSet {
    let mut others = CoreSet::below(machine::core_count());
    others.remove(machine::core_number());
    others
}

/// The other cores that use a root.
#[cold]
fn other_users(root: FrameNumber) -> CoreSet {
    fence(Ordering::SeqCst);
    let uses = |core: usize| {
        // In this order: a core that leaves the root between the two looks says so in `next` before it has left, and then in `active`. (`frame/models` goes through it.)
        let uses = |used: &Used| [&used.next, &used.active].iter().any(|word| word.load(Ordering::Acquire) == root.0);
        core_local::of(core).is_some_and(|core| uses(&core.used))
    };
    let me = machine::core_number();
    (0..machine::core_count()).filter(|core| *core != me && uses(*core)).collect()
}

/// Up to how many pages are flushed one by one.
const SINGLY: usize = 32;

/// Makes `root` the table of this core.
///
/// # Safety
/// It is a root table (`table::new_root`) that stays one until it was left.
#[inline(always)]
pub(super) unsafe fn activate(root: FrameNumber) {
    let used = &core_local::here().used;
    if used.active.load(Ordering::Relaxed) != root.0 {
        // SAFETY: the caller's promise; each root maps the kernel in the same way.
        unsafe { load(used, root, root.0) };
    }
}

/// As [`activate`], where it is nearly always active: the way to load it is kept out of the caller's.
///
/// # Safety
/// That of [`activate`].
#[inline(always)]
pub(super) unsafe fn activate_again(root: FrameNumber) {
    if core_local::here().used.active.load(Ordering::Relaxed) != root.0 {
        // SAFETY: the caller's promise.
        unsafe { activate_other(root) };
    }
}

/// # Safety
/// That of [`activate`].
#[cold]
#[inline(never)]
unsafe fn activate_other(root: FrameNumber) {
    // SAFETY: the caller's promise.
    unsafe { activate(root) };
}

/// Loads a root on this core, and says so (`said`, in `used`, which is this core's) in the order that the module tells.
///
/// # Safety
/// That of [`activate`].
#[inline(always)]
unsafe fn load(used: &Used, root: FrameNumber, said: u32) {
    used.next.store(said, Ordering::Release);
    if machine::has_contexts() {
        // SAFETY: the caller's promise.
        unsafe { load_in_context(used, root, said) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { machine::set_root(root) };
        used.active.store(said, Ordering::Release);
    }
}

/// Loads a root of which it was said that this core loads it, and says that it is loaded.
///
/// # Safety
/// That of [`activate`].
#[cold]
#[inline(never)]
unsafe fn load_in_context(used: &Used, root: FrameNumber, said: u32) {
    let context =
        if said == NONE { Context { number: 0, keeps: false } } else { core_local::here().contexts.choose(root) };
    // SAFETY: the caller's promise. What a context keeps is the root's, and not out of date: see the module.
    unsafe { machine::set_root_in(root, context) };
    used.active.store(said, Ordering::Release);
}

/// A frame whose entry was taken out of an address space's tables. A core may still remember the way to it.
#[must_use]
pub(super) struct Unlinked(FrameNumber);

/// A frame that was in a table and is no more, and to which no core remembers a way.
#[must_use]
pub(super) struct Forgotten(FrameNumber);

/// No core remembers anything of an address space, and none begins to use it as long as this is there: it ends, or there is one core, which does something
/// else.
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

/// Makes no core use `root`, which is not used again.
pub(super) fn leave(root: FrameNumber) -> Unused {
    let generation = begin_generation(root);
    leave_here(root);
    // An empty range: all of it.
    flush_others(root, 0, 0, generation);
    Unused(())
}

/// Makes this core not use `root`.
fn leave_here(root: FrameNumber) {
    if is_active(root) {
        // SAFETY: the kernel's own table is for ever.
        unsafe { load(&core_local::here().used, kernel_space::root(), NONE) };
    }
}

/// Whether this core may remember entries of `root`.
#[inline(always)]
fn is_active(root: FrameNumber) -> bool {
    core_local::here().used.active.load(Ordering::Relaxed) == root.0
}

/// Whether the only core does not use `root`. (If it did before, it has loaded another root since, and forgot it.) Another core could begin to use it at
/// any time.
#[inline(always)]
pub(super) fn unused(root: FrameNumber) -> Option<Unused> {
    let is_unused = machine::core_count() == 1 && !is_active(root);
    is_unused.then(|| {
        // What it kept is out of date before it can come back.
        begin_generation(root);
        Unused(())
    })
}

/// Makes all cores forget one page of `root`.
#[inline(always)]
pub(super) fn flush_page(root: FrameNumber, address: usize) {
    if machine::has_contexts() {
        return flush_contexts(root, address, address + PAGE_SIZE);
    }
    if is_active(root) {
        machine::flush_page(address);
    }
    flush_others(root, address, address + PAGE_SIZE, 0);
}

/// Makes this core forget one page of `root`, now or as it comes back to it. Others may remember it as it was: with fewer rights, and they forget that when they fault.
#[inline(always)]
pub(super) fn flush_page_here(root: FrameNumber, address: usize) {
    if is_active(root) {
        machine::flush_page(address);
    } else {
        begin_generation(root);
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
    if machine::has_contexts() {
        return flush_contexts(root, start, end);
    }
    flush_here(root, start, end);
    flush_others(root, start, end, 0);
}

/// As [`flush`], where there are contexts.
#[cold]
#[inline(never)]
fn flush_contexts(root: FrameNumber, start: usize, end: usize) {
    let generation = begin_generation(root);
    flush_context_here(root, start, end, generation);
    flush_others(root, start, end, generation);
}

/// As [`flush`], on the other cores.
#[inline(always)]
fn flush_others(root: FrameNumber, start: usize, end: usize, generation: u64) {
    if machine::core_count() > 1 {
        flush_users(root, start, end, generation);
    }
}

#[cold]
#[inline(never)]
fn flush_users(root: FrameNumber, start: usize, end: usize, generation: u64) {
    let others = other_users(root);
    if !others.is_empty() {
        machine::ask_others(others, Forget { root: root.0, generation, start, end });
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

/// Makes all cores forget all of `root`, whose entries have been taken out: what they led to is reached from no root that a core may load, so it is unused from then on,
/// whoever uses `root`.
pub(super) fn flush_detached(root: FrameNumber) -> Unused {
    flush(root, 0, USER_END);
    Unused(())
}

/// As [`flush_contexts`], on this core.
fn flush_context_here(root: FrameNumber, start: usize, end: usize, generation: u64) {
    if !is_active(root) {
        return;
    }
    if (end - start) >> PAGE_SHIFT <= SINGLY {
        for address in (start..end).step_by(PAGE_SIZE) {
            machine::flush_page(address);
        }
        core_local::here().contexts.forgot(generation);
    } else {
        let context = Context { keeps: false, ..core_local::here().contexts.choose(root) };
        // SAFETY: it is the table in use, in its context.
        unsafe { machine::set_root_in(root, context) };
    }
}
