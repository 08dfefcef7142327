//! Who runs where: the forwarder has a core to itself, so that others' work does not disturb its measurement.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores that this program may use, in two parts. With a single core both have it.
pub struct Cores {
    one: CpuSet,
    others: CpuSet,
}

impl Cores {
    pub fn divide() -> Cores {
        let all = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        let (mut one, mut others) = (all, all);
        if let Some(first) = (0..CpuSet::MAX_CPU).find(|&core| all.is_set(core)).filter(|_| all.count() > 1) {
            one.clear();
            one.set(first);
            others.unset(first);
        }
        Cores { one, others }
    }

    /// Starts a process that has one core to itself.
    pub fn alone<T>(&self, start: impl FnOnce() -> T) -> T {
        // A process inherits what the thread that starts it may use. Where the system refuses, it runs anywhere.
        let _ = sched_setaffinity(None, &self.one);
        let started = start();
        let _ = sched_setaffinity(None, &self.others);
        started
    }
}
