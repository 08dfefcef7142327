//! [`calibrate`]: measures what it costs on this machine to reclaim an object of a class.
//!
//! An agreed time is kept by upper bounds, not by averages: what counts is the value that one sample in a thousand exceeds, and half of that on
//! top for what did not happen while it was measured. Whoever calibrates makes the bad cases happen: cold caches, an outside lock that others want. Each class
//! is measured by itself: the difference of two such bounds is no bound.

use alloc::vec::Vec;

/// Tells the time, in the unit of the program's [`Cost`](crate::Cost)s. Never goes back.
pub trait Clock {
    /// The time now.
    fn now(&self) -> u64;
}

impl<F: Fn() -> u64> Clock for F {
    fn now(&self) -> u64 {
        self()
    }
}

/// How a class is measured.
#[derive(Clone, Copy, Debug)]
pub struct Samples {
    /// How many times. Below a thousand the slowest one decides.
    pub rounds: usize,
    /// How many objects each time; what they take together is divided by this. One shows the worst of a single object; more are for a clock
    /// that is too coarse for one, and hide how much single ones differ.
    pub objects: u32,
}

impl Default for Samples {
    /// 2,000 rounds with one object each.
    fn default() -> Self {
        Samples { rounds: 2_000, objects: 1 }
    }
}

/// A calibration that is taken round by round, by who has other things to do in between.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    taken: Vec<u64>,
}

impl Rounds {
    /// So many objects took so long.
    pub fn add(&mut self, time: u64, objects: u32) {
        self.taken.push(time.div_ceil(u64::from(objects.max(1))));
    }

    /// How many rounds there were.
    pub fn count(&self) -> usize {
        self.taken.len()
    }

    /// What an object costs: the 99.9th percentile of all rounds and half of it more, at least one.
    pub fn bound(self) -> u64 {
        self.bound_but_for(1)
    }

    /// As [`bound`](Self::bound), where so many rounds in a thousand do not count: on a machine that others take time from, which says nothing of what an object costs.
    pub fn bound_but_for(mut self, thousandths: usize) -> u64 {
        self.taken.sort_unstable();
        let beyond = self.taken.len() * thousandths.min(1_000) / 1_000;
        let slow = self.taken.len().checked_sub(1 + beyond).map_or(0, |at| self.taken[at]);
        slow.saturating_add(slow.div_ceil(2)).max(1)
    }
}

/// Measures what destroying an object costs: `make` makes so many, `destroy` ends them and is timed. The result is [`Rounds::bound`].
pub fn calibrate<T>(
    samples: Samples,
    clock: &impl Clock,
    mut make: impl FnMut(u32) -> T,
    mut destroy: impl FnMut(T),
) -> u64 {
    let objects = samples.objects.max(1);
    let mut rounds = Rounds { taken: Vec::with_capacity(samples.rounds) };
    for _ in 0..samples.rounds.max(1) {
        let made = make(objects);
        let start = clock.now();
        destroy(made);
        rounds.add(clock.now().saturating_sub(start), objects);
    }
    rounds.bound()
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    #[test]
    fn one_round_in_a_thousand_may_be_slower_than_what_is_found() {
        let (time, round) = (Cell::new(0), Cell::new(0));
        let destroy = |objects: u32| {
            round.set(round.get() + 1);
            let each = match round.get() {
                500 => 1_000_000,
                1_000..=1_002 => 200,
                _ => 100,
            };
            time.set(time.get() + each * u64::from(objects));
        };
        let cost = calibrate(Samples { rounds: 1_500, objects: 4 }, &|| time.get(), |objects| objects, destroy);
        assert_eq!(cost, 300);
    }

    #[test]
    fn what_takes_no_time_costs_one_unit() {
        assert_eq!(calibrate(Samples { rounds: 0, objects: 0 }, &|| 7, |_| (), |()| ()), 1);
    }
}
