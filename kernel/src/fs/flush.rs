//! Whether closing a descriptor matters to any file, whoever has others: [`File::flush`](super::File::flush).

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How many files it matters to.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Held as long as [`flush`](super::File::flush) of some file has something to do.
pub struct FlushWanted(());

impl Default for FlushWanted {
    fn default() -> Self {
        COUNT.fetch_add(1, Relaxed);
        FlushWanted(())
    }
}

impl Drop for FlushWanted {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Relaxed);
    }
}

/// Whether there is any.
#[inline(always)]
pub(super) fn is_wanted() -> bool {
    COUNT.load(Relaxed) > 0
}
