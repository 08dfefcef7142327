//! [`Comparison`]: whether the counters of two cores, which are read as one clock, can be seen to go backwards.
//!
//! Both cores look at their counters, one at a time: who looks compares what it sees with the latest value that either has seen before, under a lock. So a counter
//! that is behind the other is found out as soon as its core looks within so many cycles of the other's look; nobody can see what is not seen so, since a time
//! has to come from core to core before it can be compared, as it does here. After many looks at their own pace both look once more, each after the other's first
//! look: what stands still is compared in any case.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use refs::RawSpin;

/// So often each core looks.
const LOOKS: usize = 2000;

/// A comparison of two cores' counters.
pub struct Comparison {
    looking: RawSpin,
    /// The last value that either of them has seen, which only the holder of the lock touches.
    last: AtomicU64,
    /// By how much one was behind the other.
    behind: AtomicU64,
    /// How many times one of the two has come to where it tells the other so.
    met: AtomicUsize,
}

impl Comparison {
    pub const fn new() -> Self {
        Comparison {
            looking: RawSpin::new(),
            last: AtomicU64::new(0),
            behind: AtomicU64::new(0),
            met: AtomicUsize::new(0),
        }
    }

    /// Compares the caller's counter with that of another core, which [takes part](Self::take_part) at the same time: by how much either was seen to be behind the
    /// other; 0 if the two are as good as one. Then it is ready for another two.
    pub fn compare(&self, counter: impl Fn() -> u64) -> u64 {
        self.take_part(counter);
        self.wait_for(6);
        // The other core is through.
        self.met.store(0, Ordering::Relaxed);
        self.last.store(0, Ordering::Relaxed);
        self.behind.swap(0, Ordering::Release)
    }

    /// Looks at the caller's counter while another core [compares](Self::compare). `counter` is not read before what stands before it in the program.
    pub fn take_part(&self, counter: impl Fn() -> u64) {
        self.meet();
        self.wait_for(2);
        for _ in 0..LOOKS {
            self.look(&counter);
            spin_loop();
        }
        self.meet();
        self.wait_for(4);
        self.look(&counter);
        self.meet();
    }

    fn look(&self, counter: &impl Fn() -> u64) {
        self.looking.lock();
        let (last, now) = (self.last.load(Ordering::Relaxed), counter());
        self.last.store(now.max(last), Ordering::Relaxed);
        self.behind.fetch_max(last.saturating_sub(now), Ordering::Relaxed);
        self.looking.unlock();
    }

    fn meet(&self) {
        self.met.fetch_add(1, Ordering::AcqRel);
    }

    fn wait_for(&self, met: usize) {
        while self.met.load(Ordering::Acquire) < met {
            spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::Comparison;

    /// By how much one of two cores is behind the other whose counters are ahead of a clock by so much. The clock stands still for `looks` looks at a time.
    fn behind(comparison: &Comparison, ahead: [u64; 2], looks: u64) -> u64 {
        let time = AtomicU64::new(0);
        let counter = |ahead| 1_000_000 + time.fetch_add(1, Ordering::Relaxed) / looks + ahead;
        thread::scope(|scope| {
            scope.spawn(|| comparison.take_part(|| counter(ahead[1])));
            comparison.compare(|| counter(ahead[0]))
        })
    }

    #[test]
    fn counters_that_are_the_same_agree() {
        for looks in [1, 10, u64::MAX] {
            assert_eq!(behind(&Comparison::new(), [7, 7], looks), 0);
        }
    }

    #[test]
    fn a_counter_that_is_behind_by_one_is_found_out() {
        for ahead in [[1, 0], [0, 1]] {
            assert_eq!(behind(&Comparison::new(), ahead, u64::MAX), 1, "{ahead:?}");
        }
    }

    #[test]
    fn a_counter_that_is_behind_by_more_than_passes_between_looks_is_found_out() {
        // 4002 looks are made.
        let behind = behind(&Comparison::new(), [5000, 0], 1);
        assert!((998..=5000).contains(&behind), "{behind}");
    }

    #[test]
    fn what_two_cores_have_seen_is_nothing_to_the_next() {
        let comparison = Comparison::new();
        for (ahead, by) in [([900, 905], 5), ([800, 800], 0), ([1, 0], 1), ([0, 0], 0)] {
            assert_eq!(behind(&comparison, ahead, u64::MAX), by);
        }
    }
}
