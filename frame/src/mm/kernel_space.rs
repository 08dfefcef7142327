//! The kernel's own root table, whose upper half is in every address space. What is mapped there is the architecture's.

use core::sync::atomic::{AtomicU32, Ordering};

use super::machine;
use super::metadata::{FrameNumber, Metadata};
use super::table::Table;

static ROOT: AtomicU32 = AtomicU32::new(u32::MAX);

/// The kernel's own root table. Its entries never change.
#[inline(always)]
pub(super) fn root() -> FrameNumber {
    FrameNumber(ROOT.load(Ordering::Relaxed))
}

/// Takes the page table in use as the kernel's own.
pub(super) fn init() {
    let mut root = machine::root();
    if Metadata::get(root).is_none() {
        // Where the tests run there is no table yet.
        root = Table::new().expect("there is memory at boot").0;
    }
    ROOT.store(root.0, Ordering::Relaxed);
}
