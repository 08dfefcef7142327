//! What each core keeps of its own for memory. It is a part of the core's block, so there is memory for the cores that there are, and for no others. Its fields are
//! atomic, and used with plain loads and stores: kernel code is not interrupted, so a core that changes its own is alone; others at most look at it.

use core::sync::atomic::AtomicBool;

use super::metadata::Metadata;
use super::{heap, machine, owner, supply, table, tlb};

/// What a core has at hand, and what it remembers.
#[repr(align(64))]
pub(crate) struct CoreLocal {
    /// What others look at, on a line of its own.
    pub(super) used: tlb::Used,
    pub(super) contexts: tlb::Contexts,
    /// Another core asks it to give all back that it has at hand.
    pub(super) is_to_trim: AtomicBool,
    pub(super) payer: owner::Payer,
    pub(super) frames: supply::Stack,
    pub(super) slots: heap::Magazines,
    pub(super) tables: table::Pool<64>,
    pub(super) roots: table::Pool<8>,
}

impl CoreLocal {
    pub(crate) const fn new() -> Self {
        CoreLocal {
            used: tlb::Used::new(),
            contexts: tlb::Contexts::new(),
            is_to_trim: AtomicBool::new(false),
            payer: owner::Payer::new(),
            frames: supply::Stack::new(),
            slots: heap::Magazines::new(),
            tables: table::Pool::new(),
            roots: table::Pool::new(),
        }
    }

    /// Runs `f` on the records of the tables that it has at hand.
    pub(super) fn each_table(&self, mut f: impl FnMut(&Metadata)) {
        self.tables.each(&mut f);
        self.roots.each(&mut f);
    }
}

/// This core's.
#[inline(always)]
pub(super) fn here() -> &'static CoreLocal {
    machine::core_local()
}

/// A core's, if there is that core.
#[inline]
pub(super) fn of(core: usize) -> Option<&'static CoreLocal> {
    machine::core_local_of(core)
}

/// Those of all cores.
pub(super) fn all() -> impl Iterator<Item = &'static CoreLocal> {
    (0..machine::core_count()).filter_map(of)
}
