//! [`Pids`]: how many processes and threads a group may have.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::{Event, Limit};

/// What the controller pids keeps of a group. The number itself is kept for every group, whether the controller is enabled or not.
///
/// A thread counts for as long as it exists, and the first one of a process until that was waited for.
#[derive(Default)]
pub struct Pids {
    /// In the group and all below it.
    count: AtomicUsize,
    peak: AtomicUsize,
    /// Limits are kept by forks only: others who come in are let in above it.
    pub max: Limit,
    /// How often the limit was in the way.
    pub denied_here: AtomicU64,
    /// How often this limit or one below was in the way.
    pub denied: AtomicU64,
    /// `pids.events`.
    pub event: Event,
    /// `pids.events.local`.
    pub local_event: Event,
}

impl Pids {
    /// The controller is enabled: what was counted before is not its peak.
    pub(super) fn begin(&self) {
        self.peak.store(self.count(), Ordering::Relaxed);
    }

    /// It was disabled.
    pub(super) fn reset(&self) {
        self.max.lift();
        self.denied_here.store(0, Ordering::Relaxed);
        self.denied.store(0, Ordering::Relaxed);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The most there were at once.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// One more, if the limit allows it.
    #[inline(always)]
    pub(super) fn try_add(&self) -> bool {
        let now = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if now > self.max.get() {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        self.note_peak(now);
        true
    }

    /// So many more come in, whatever the limit.
    pub(super) fn add(&self, count: usize) {
        let now = self.count.fetch_add(count, Ordering::Relaxed) + count;
        self.note_peak(now);
    }

    #[inline(always)]
    fn note_peak(&self, now: usize) {
        if now > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// So many are gone.
    pub(super) fn remove(&self, count: usize) {
        self.count.fetch_sub(count, Ordering::Relaxed);
    }
}
