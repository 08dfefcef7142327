//! [`Cpu`]: what the controller cpu keeps of a group, and the time that its members had.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use refs::{NoSuspend, SpinLock, StrongRc};

use super::Cgroup;
use crate::error::{Errno, Result};
use crate::sched::{self, Quota, SHARES, Throttling};

/// The shares of the nice values from -20 to 19: as the scheduler of Linux has them (`sched_prio_to_weight`), each about a quarter more than the next.
const SHARES_OF_NICE: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// What the controller cpu keeps of a group. While it is enabled the scheduler knows the group; else its members share the processor as those of the nearest group above that it knows. The time is
/// kept for every group, whether the controller is enabled or not.
pub struct Cpu {
    shares: AtomicU64,
    group: SpinLock<Option<sched::Group>>,
    /// Its number; 0: there is none.
    number: AtomicU32,
    /// In user mode and in the kernel, in nanoseconds: of those who were members of the group or of one below it, and are not any more.
    past: [AtomicU64; 2],
    /// The times that were last told: what is told never shrinks.
    told: SpinLock<(u64, u64)>,
}

impl Default for Cpu {
    fn default() -> Self {
        Cpu {
            shares: AtomicU64::new(SHARES),
            group: SpinLock::new(None),
            number: AtomicU32::new(0),
            past: [const { AtomicU64::new(0) }; 2],
            told: SpinLock::new((0, 0)),
        }
    }
}

impl Cpu {
    /// The controller is enabled for the group.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn begin(group: &Cgroup) -> Result<()> {
        let above = group.parent.as_ref().map_or(0, |parent| parent.with(|parent| parent.cpu_group()));
        let new = sched::Group::new(above)?;
        let number = new.number();
        group.cpu.group.with(|own| *own = Some(new));
        group.cpu.number.store(number, Ordering::Release);
        Ok(())
    }

    /// The controller is disabled.
    pub(super) fn end(&self) {
        self.number.store(0, Ordering::Release);
        let group = self.group.with(Option::take);
        drop(group);
        self.shares.store(SHARES, Ordering::Relaxed);
    }

    /// Runs `f` on what the scheduler knows, which is the group's as long as that runs.
    ///
    /// # Errors
    /// ENODEV: the controller is not enabled any more.
    fn with_group<R: Send>(&self, f: impl FnOnce(&sched::Group) -> R + Send) -> Result<R> {
        self.group.with(|group| group.as_ref().map(f).ok_or(Errno::ENODEV))
    }

    fn set_shares(&self, shares: u64) {
        self.shares.store(shares, Ordering::Relaxed);
        // Of a controller that was disabled meanwhile nothing is kept.
        let _ = self.with_group(|group| group.set_shares(shares));
    }

    /// `cpu.max` and `cpu.max.burst`.
    ///
    /// # Errors
    /// ENODEV: the controller is not enabled any more.
    pub fn quota(&self) -> Result<Quota> {
        self.with_group(sched::Group::quota)
    }

    /// Changes them. It takes effect before this returns.
    ///
    /// # Errors
    /// ENODEV: the controller is not enabled any more.
    pub fn set_quota(&self, quota: Quota) -> Result<()> {
        self.with_group(|group| group.set_quota(quota))?.tell();
        Ok(())
    }

    /// How often and how long the members had to wait for that.
    ///
    /// # Errors
    /// ENODEV: the controller is not enabled any more.
    pub fn throttling(&self) -> Result<Throttling> {
        self.with_group(sched::Group::throttling)
    }

    /// `cpu.weight`.
    pub fn weight(&self) -> u64 {
        div_round(self.shares.load(Ordering::Relaxed) * 100, SHARES)
    }

    /// Sets `cpu.weight`, from 1 to 10000.
    pub fn set_weight(&self, weight: u64) {
        self.set_shares(div_round(weight * SHARES, 100));
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
        self.set_shares(shares.copied().unwrap_or(SHARES));
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

impl Cgroup {
    /// The number of the scheduler's group in which its members are; 0: none.
    pub fn cpu_group(&self) -> u32 {
        let own = self.cpu.number.load(Ordering::Acquire);
        if own != 0 {
            return own;
        }
        let mut above = self.parent.as_ref().map(StrongRc::share);
        while let Some(group) = above {
            let number = group.with(|group| group.cpu.number.load(Ordering::Acquire));
            if number != 0 {
                return number;
            }
            above = group.with(|group| group.parent.as_ref().map(StrongRc::share));
        }
        0
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
