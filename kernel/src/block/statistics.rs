//! [`Statistics`]: what a device has done, as `/proc/diskstats` shows it (Linux, Documentation/admin-guide/iostats.rst).

use core::sync::atomic::{AtomicU64, Ordering};

use super::{Operation, Request};

/// What was done of one kind.
#[derive(Debug, Default)]
struct Kind {
    requests: AtomicU64,
    sectors: AtomicU64,
    nanoseconds: AtomicU64,
}

/// What a device has done.
#[derive(Debug, Default)]
pub struct Statistics {
    reads: Kind,
    writes: Kind,
    discards: Kind,
    flushes: Kind,
    under_way: AtomicU64,
    /// How long anything was under way, and since when it is.
    busy: AtomicU64,
    busy_since: AtomicU64,
}

impl Statistics {
    /// A request begins; the time.
    pub fn begin(&self) -> u64 {
        let now = frame::time::now();
        if self.under_way.fetch_add(1, Ordering::Relaxed) == 0 {
            self.busy_since.store(now, Ordering::Relaxed);
        }
        now
    }

    /// A request that began was refused.
    pub fn take_back(&self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }

    /// A request that began at `began` is done.
    pub fn end(&self, request: &Request, began: u64) {
        let now = frame::time::now();
        if self.under_way.fetch_sub(1, Ordering::Relaxed) == 1 {
            let since = self.busy_since.load(Ordering::Relaxed);
            self.busy.fetch_add(now.saturating_sub(since), Ordering::Relaxed);
        }
        let kind = match request.operation {
            Operation::Read => &self.reads,
            Operation::Write => &self.writes,
            Operation::Discard | Operation::WriteZeroes => &self.discards,
            Operation::Flush => &self.flushes,
            Operation::Identify => return,
        };
        kind.requests.fetch_add(1, Ordering::Relaxed);
        kind.sectors.fetch_add(request.sectors.into(), Ordering::Relaxed);
        kind.nanoseconds.fetch_add(now.saturating_sub(began), Ordering::Relaxed);
    }

    /// The 17 figures: for reads, writes and (behind what is under way, how long, and how long for all) discards: requests, merged ones, sectors, milliseconds; flushes: requests, milliseconds.
    pub fn figures(&self) -> [u64; 17] {
        let get = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let four = |kind: &Kind| [get(&kind.requests), 0, get(&kind.sectors), get(&kind.nanoseconds) / 1_000_000];
        let (reads, writes, discards) = (four(&self.reads), four(&self.writes), four(&self.discards));
        let flushes = [get(&self.flushes.requests), get(&self.flushes.nanoseconds) / 1_000_000];
        let all = reads[3] + writes[3] + discards[3] + flushes[1];
        let mut figures = [0; 17];
        figures[..4].copy_from_slice(&reads);
        figures[4..8].copy_from_slice(&writes);
        figures[8..11].copy_from_slice(&[get(&self.under_way), get(&self.busy) / 1_000_000, all]);
        figures[11..15].copy_from_slice(&discards);
        figures[15..].copy_from_slice(&flushes);
        figures
    }
}
