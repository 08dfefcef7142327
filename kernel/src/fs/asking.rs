//! Whether any file shows something of whoever asks: [`File::poll_for`](super::File::poll_for).

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How many such files there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A file of which [`poll_for`](super::File::poll_for) says something else than `poll` has one.
pub struct AskerMatters(());

impl Default for AskerMatters {
    fn default() -> Self {
        COUNT.fetch_add(1, Relaxed);
        AskerMatters(())
    }
}

impl Drop for AskerMatters {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Relaxed);
    }
}

/// Whether there is any. Where there is none, nobody need say who asks.
#[inline(always)]
pub fn asker_matters() -> bool {
    COUNT.load(Relaxed) > 0
}
