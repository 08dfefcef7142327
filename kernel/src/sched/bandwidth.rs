//! [`Bandwidth`]: how long the tasks of a group may run in each period: `cpu.max`.
//!
//! Periods follow one another as long as the group runs; one in which nobody looks begins when somebody looks again. So nothing goes off for a group that does not run. What a group has run
//! beyond its quota (in the kernel, or on several cores at the same time) it has less of in the next period.

use super::FAIR_SLICE;

/// No quota.
pub const UNLIMITED: u64 = u64::MAX;
/// How long a period is at first, in nanoseconds.
pub const PERIOD: u64 = 100_000_000;
/// On several cores each task runs for no less than this, in nanoseconds, before what is left is looked at again. All cores together go beyond the quota by no more than this for each.
const LEAST_PIECE: u64 = 500_000;

/// How much a group may run, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// In each period; [`UNLIMITED`].
    pub runtime: u64,
    /// How long a period is.
    pub period: u64,
    /// How much of what was left over in earlier periods may come on top.
    pub burst: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Quota { runtime: UNLIMITED, period: PERIOD, burst: 0 }
    }
}

/// What happened to a group that had a quota, as `cpu.stat` tells it. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which it ran or was to run.
    pub periods: u64,
    /// Those among them at whose end its tasks were waiting for the next one.
    pub throttled: u64,
    /// For how long they waited: one time, however many cores or tasks there were.
    pub throttled_time: u64,
    /// Periods in which it ran for more than its quota, as it may after periods with less.
    pub bursts: u64,
    /// By how much.
    pub burst_time: u64,
}

/// What a group may run and has run.
#[derive(Debug, Default)]
pub struct Bandwidth {
    quota: Quota,
    /// What is left for this period; less than 0: what it had too much.
    left: i64,
    /// How much it was when the period began.
    left_at_first: i64,
    /// When the period ends.
    ends: u64,
    /// It has run in this period.
    has_run: bool,
    /// Since when its tasks wait; 0: they do not.
    waits_since: u64,
    told: Throttling,
}

impl Bandwidth {
    /// What it may run.
    pub fn quota(&self) -> Quota {
        self.quota
    }

    /// Changes that. A period begins, with all that there is for it.
    pub fn set(&mut self, quota: Quota, now: u64) {
        self.look(now);
        if self.waits_since != 0 {
            // The period that is cut short was one.
            self.told.periods += 1;
            self.told.throttled += 1;
        }
        self.end_wait(now);
        self.quota = quota;
        self.left = quota.runtime.min(i64::MAX as u64) as i64;
        self.left_at_first = self.left;
        self.ends = now.saturating_add(quota.period);
        self.has_run = false;
    }

    /// What is to be told of it: of the periods that are over.
    pub fn throttling(&mut self, now: u64) -> Throttling {
        self.look(now);
        let begun = self.ends.saturating_sub(self.quota.period);
        let waits = if self.waits_since == 0 { 0 } else { begun.saturating_sub(self.waits_since) };
        Throttling { throttled_time: self.told.throttled_time + waits, ..self.told }
    }

    /// Whether there is nothing left for this period.
    pub fn is_used_up(&self) -> bool {
        self.quota.runtime != UNLIMITED && self.left <= 0
    }

    /// It has run for so long, until now.
    pub fn charge(&mut self, ran: u64, now: u64) {
        if self.quota.runtime != UNLIMITED {
            self.look(now);
            self.has_run = true;
            self.left = self.left.saturating_sub_unsigned(ran);
        }
    }

    /// For how long a task may run before what is left is looked at again, where so many cores can run others; 0: not at all.
    pub fn piece(&mut self, cores: usize, now: u64) -> u64 {
        self.look(now);
        match u64::try_from(self.left) {
            _ if self.quota.runtime == UNLIMITED => u64::MAX,
            Ok(left @ 1..) if cores <= 1 => left,
            Ok(left @ 1..) => (left / cores as u64).max(LEAST_PIECE.min(left)).min(FAIR_SLICE),
            _ => 0,
        }
    }

    /// A task would run now: when the next period begins, if it has to wait for that.
    pub fn waits_until(&mut self, now: u64) -> Option<u64> {
        self.look(now);
        if !self.is_used_up() {
            return None;
        }
        if self.waits_since == 0 {
            self.waits_since = now.max(1);
        }
        Some(self.ends)
    }

    /// Nobody waits any more, or nobody has to.
    fn end_wait(&mut self, at: u64) {
        let since = core::mem::take(&mut self.waits_since);
        if since != 0 {
            self.told.throttled_time += at.saturating_sub(since);
        }
    }

    /// Begins the period that it is now.
    fn look(&mut self, now: u64) {
        let Quota { runtime, period, burst } = self.quota;
        if runtime == UNLIMITED || now < self.ends {
            return;
        }
        let over = (now - self.ends) / period + 1;
        // In how many of those it waited: until there was something left.
        let (mut active, mut waited) = (if self.has_run { over.min(2) } else { 0 }, 0);
        if self.waits_since != 0 {
            waited = (self.left.min(0).unsigned_abs() / runtime + 1).min(over);
            if self.left.saturating_add_unsigned(runtime.saturating_mul(waited)) > 0 {
                self.end_wait(self.ends.saturating_add((waited - 1).saturating_mul(period)));
            }
            active = active.max(waited);
        }
        self.told.periods += active;
        self.told.throttled += waited;
        let more = (self.left_at_first - self.left.max(0)).saturating_sub_unsigned(runtime);
        if more > 0 {
            self.told.bursts += 1;
            self.told.burst_time += more.unsigned_abs();
        }
        let most = runtime.saturating_add(burst).min(i64::MAX as u64) as i64;
        self.left = self.left.saturating_add_unsigned(runtime.saturating_mul(over)).min(most);
        self.left_at_first = self.left;
        self.has_run = false;
        self.ends = self.ends.saturating_add(over.saturating_mul(period));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// 20 ms of each 100 ms, from time 1000 ms on.
    fn a_fifth(burst: u64) -> Bandwidth {
        let mut bandwidth = Bandwidth::default();
        bandwidth.set(Quota { runtime: 20 * MS, period: 100 * MS, burst }, 1000 * MS);
        bandwidth
    }

    #[test]
    fn without_a_quota_nothing_is_counted() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.charge(u64::MAX / 4, 1000 * MS);
        assert_eq!((bandwidth.piece(4, 2000 * MS), bandwidth.waits_until(2000 * MS)), (u64::MAX, None));
        assert_eq!(bandwidth.throttling(3000 * MS), Throttling::default());
    }

    #[test]
    fn what_has_run_its_quota_waits_for_the_next_period() {
        let mut bandwidth = a_fifth(0);
        assert_eq!(bandwidth.piece(1, 1000 * MS), 20 * MS);
        bandwidth.charge(20 * MS, 1020 * MS);
        assert_eq!((bandwidth.piece(1, 1020 * MS), bandwidth.waits_until(1020 * MS)), (0, Some(1100 * MS)));
        assert_eq!(bandwidth.throttling(1090 * MS), Throttling::default(), "the period is not over");
        assert_eq!(bandwidth.waits_until(1100 * MS), None);
        assert_eq!(bandwidth.piece(1, 1100 * MS), 20 * MS);
        let told = Throttling { periods: 1, throttled: 1, throttled_time: 80 * MS, ..Throttling::default() };
        assert_eq!(bandwidth.throttling(1100 * MS), told);
    }

    #[test]
    fn what_it_ran_too_much_it_has_less_of_later() {
        let mut bandwidth = a_fifth(0);
        bandwidth.charge(65 * MS, 1065 * MS);
        assert_eq!(bandwidth.waits_until(1065 * MS), Some(1100 * MS));
        assert_eq!(bandwidth.waits_until(1100 * MS), Some(1200 * MS));
        let told = bandwidth.throttling(1150 * MS);
        assert_eq!((told.periods, told.throttled, told.throttled_time), (1, 1, 35 * MS));
        assert_eq!(bandwidth.waits_until(1200 * MS), Some(1300 * MS));
        assert_eq!((bandwidth.waits_until(1300 * MS), bandwidth.piece(1, 1300 * MS)), (None, 15 * MS));
        let told = bandwidth.throttling(1300 * MS);
        assert_eq!((told.periods, told.throttled, told.throttled_time), (3, 3, 235 * MS));
    }

    #[test]
    fn a_wait_that_nobody_saw_the_end_of_ended_when_there_was_something_left() {
        let mut bandwidth = a_fifth(0);
        bandwidth.charge(65 * MS, 1065 * MS);
        assert!(bandwidth.waits_until(1065 * MS).is_some());
        let told = bandwidth.throttling(5000 * MS);
        assert_eq!((told.throttled, told.throttled_time), (3, 235 * MS));
    }

    #[test]
    fn what_is_left_over_is_kept_up_to_the_burst() {
        for (burst, most) in [(0, 20), (10 * MS, 30), (20 * MS, 40)] {
            let mut bandwidth = a_fifth(burst);
            bandwidth.charge(5 * MS, 1010 * MS);
            // 15 ms and several quotas.
            assert_eq!(bandwidth.piece(1, 1710 * MS), most * MS);
            bandwidth.charge(most * MS, 1750 * MS);
            let told = bandwidth.throttling(1800 * MS);
            assert_eq!((told.bursts, told.burst_time), (u64::from(most > 20), (most - 20) * MS));
        }
    }

    #[test]
    fn a_raised_quota_holds_at_once() {
        let mut bandwidth = a_fifth(0);
        bandwidth.charge(300 * MS, 1050 * MS);
        assert!(bandwidth.waits_until(1050 * MS).is_some());
        bandwidth.set(Quota { runtime: 50 * MS, period: 100 * MS, burst: 0 }, 1060 * MS);
        assert_eq!((bandwidth.waits_until(1060 * MS), bandwidth.piece(1, 1060 * MS)), (None, 50 * MS));
        let told = Throttling { periods: 1, throttled: 1, throttled_time: 10 * MS, ..Throttling::default() };
        assert_eq!(bandwidth.throttling(1060 * MS), told);
    }

    #[test]
    fn several_cores_share_what_is_left() {
        let mut bandwidth = a_fifth(0);
        assert_eq!(bandwidth.piece(8, 1000 * MS), 5 * MS / 2);
        bandwidth.charge(18 * MS, 1010 * MS);
        assert_eq!(bandwidth.piece(8, 1010 * MS), LEAST_PIECE);
        bandwidth.charge(2 * MS - 7, 1012 * MS);
        assert_eq!(bandwidth.piece(8, 1012 * MS), 7);
    }

    #[test]
    fn what_runs_now_and_then_has_its_quota_each_time() {
        let mut bandwidth = a_fifth(0);
        for round in 1..=10 {
            let now = (1000 + round * 1000) * MS;
            assert_eq!(bandwidth.piece(1, now), 20 * MS);
            bandwidth.charge(19 * MS, now + 19 * MS);
        }
        let told = bandwidth.throttling(20_000 * MS);
        assert_eq!((told.throttled, told.throttled_time), (0, 0));
        assert!((10..=20).contains(&told.periods), "{}", told.periods);
    }
}
