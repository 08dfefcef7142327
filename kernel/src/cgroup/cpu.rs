//! [`Cpu`]: what the controller cpu keeps of a group, and the time that its members had.

use core::sync::atomic::{AtomicU64, Ordering};

use refs::{NoSuspend, SpinLock};

/// `cpu.weight` 100, in the unit in which weights are kept.
const DEFAULT_SHARES: u64 = 1024;

/// The shares of the nice values from -20 to 19: as the scheduler of Linux has them (`sched_prio_to_weight`), each about a quarter more than the next.
const SHARES_OF_NICE: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// What the controller cpu keeps of a group. The time is kept for every group, whether the controller is enabled or not.
pub struct Cpu {
    shares: AtomicU64,
    /// In user mode and in the kernel, in nanoseconds: of those who were members of the group or of one below it, and are not any more.
    past: [AtomicU64; 2],
    /// The times that were last told: what is told never shrinks.
    told: SpinLock<(u64, u64)>,
}

impl Default for Cpu {
    fn default() -> Self {
        Cpu {
            shares: AtomicU64::new(DEFAULT_SHARES),
            past: [const { AtomicU64::new(0) }; 2],
            told: SpinLock::new((0, 0)),
        }
    }
}

impl Cpu {
    /// The controller was disabled.
    pub(super) fn reset(&self) {
        self.shares.store(DEFAULT_SHARES, Ordering::Relaxed);
    }

    /// `cpu.weight`.
    pub fn weight(&self) -> u64 {
        div_round(self.shares.load(Ordering::Relaxed) * 100, 1024)
    }

    /// Sets `cpu.weight`, from 1 to 10000.
    pub fn set_weight(&self, weight: u64) {
        self.shares.store(div_round(weight * 1024, 100), Ordering::Relaxed);
    }

    /// `cpu.weight.nice`: the nice value whose share is nearest.
    pub fn nice(&self) -> i64 {
        let shares = self.shares.load(Ordering::Relaxed);
        let distance = |index: &usize| SHARES_OF_NICE[*index].abs_diff(shares);
        // Of two that are equally near the first.
        let nearest = (0..SHARES_OF_NICE.len()).min_by_key(distance).unwrap_or(20);
        nearest as i64 - 20
    }

    /// Sets `cpu.weight.nice`, from -20 to 19.
    pub fn set_nice(&self, nice: i64) {
        let shares = usize::try_from(nice + 20).ok().and_then(|index| SHARES_OF_NICE.get(index));
        self.shares.store(shares.copied().unwrap_or(DEFAULT_SHARES), Ordering::Relaxed);
    }

    /// A member is none any more: it had so much time in user mode and in the kernel.
    pub(super) fn add_past(&self, (user, system): (u64, u64)) {
        self.past[0].fetch_add(user, Ordering::Relaxed);
        self.past[1].fetch_add(system, Ordering::Relaxed);
    }

    /// The time in user mode and in the kernel of those who are members no more, in nanoseconds.
    pub fn past(&self) -> (u64, u64) {
        (self.past[0].load(Ordering::Relaxed), self.past[1].load(Ordering::Relaxed))
    }

    /// What is to be told where so much was found. (Who has ended while the others were counted may have been missed: then it is told next time.)
    pub fn tell(&self, (user, system): (u64, u64), cx: &impl NoSuspend) -> (u64, u64) {
        let mut told = self.told.lock(cx);
        *told = (told.0.max(user), told.1.max(system));
        *told
    }
}

fn div_round(number: u64, by: u64) -> u64 {
    (number + by / 2) / by
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_and_nice_values_are_two_views_of_one_number() {
        let cpu = Cpu::default();
        assert_eq!((cpu.weight(), cpu.nice()), (100, 0));
        for weight in [1, 2, 99, 100, 101, 9999, 10_000] {
            cpu.set_weight(weight);
            assert_eq!(cpu.weight(), weight);
        }
        for nice in -20..20 {
            cpu.set_nice(nice);
            assert_eq!(cpu.nice(), nice);
        }
        assert_eq!(cpu.weight(), 1);
    }
}
