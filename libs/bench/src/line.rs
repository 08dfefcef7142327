//! [`Line`]: one thing that is measured, by ours and by peers; [`Samples`]: what a contender fills in.

use std::time::{Duration, Instant};

use crate::clock;

/// How many runs each contender gets; the figure is the median over them of each one's median batch.
pub const RUNS: usize = 7;
/// A run ends after so many batches, or after [`RUN_TIME`], whichever is first, but not before [`LEAST_BATCHES`].
const MOST_BATCHES: usize = 2000;
const LEAST_BATCHES: usize = 3;
const RUN_TIME: Duration = Duration::from_millis(25);
/// Operations per batch, where the operation itself does not ask for another number.
pub const BATCH: usize = 1000;

/// One run of one contender.
#[derive(Default)]
pub struct Samples {
    values: Vec<f64>,
    overhead: u64,
    end: Option<Instant>,
}

impl Samples {
    /// An empty run.
    pub fn new() -> Self {
        Samples { values: Vec::with_capacity(MOST_BATCHES), overhead: clock::overhead(clock::now), end: None }
    }

    /// Whether another batch is wanted. The time of the run starts at the first call.
    #[inline]
    pub fn more(&mut self) -> bool {
        let end = *self.end.get_or_insert_with(|| Instant::now() + RUN_TIME);
        self.values.len() < LEAST_BATCHES || (self.values.len() < MOST_BATCHES && Instant::now() < end)
    }

    /// Enters a batch: `operations` took `ticks`, the clock's own among them.
    #[inline]
    pub fn push(&mut self, operations: usize, ticks: u64) {
        self.values.push(ticks.saturating_sub(self.overhead) as f64 / operations as f64);
    }

    /// Enters a value that is not a time.
    pub fn push_value(&mut self, value: f64) {
        self.values.push(value);
    }

    /// Runs batches of `operations` each until there are enough.
    #[inline(always)]
    pub fn batches(&mut self, operations: usize, mut batch: impl FnMut()) {
        while self.more() {
            let start = clock::now();
            batch();
            let ticks = clock::now() - start;
            self.push(operations, ticks);
        }
    }

    /// Runs batches of [`BATCH`] operations.
    #[inline(always)]
    pub fn each(&mut self, mut operation: impl FnMut()) {
        self.batches(BATCH, || {
            for _ in 0..BATCH {
                operation();
            }
        });
    }

    /// Times operations one by one, each from when all before it is done until it is done itself, so that nothing overlaps.
    #[inline(always)]
    pub fn single(&mut self, mut operation: impl FnMut()) {
        while self.more() {
            let start = clock::now();
            operation();
            let ticks = clock::now() - start;
            self.push(1, ticks);
        }
    }

    /// Times operations one by one with the bare counter, which is how the thesis did it: what it reads is when the processor
    /// comes by, while the operation may still be under way.
    #[inline(always)]
    pub fn single_unordered(&mut self, mut operation: impl FnMut()) {
        self.overhead = clock::overhead(clock::now_unordered);
        while self.more() {
            let start = clock::now_unordered();
            operation();
            let ticks = clock::now_unordered() - start;
            self.push(1, ticks);
        }
    }

    /// The smallest and the median value, if there is any.
    pub fn summary(mut self) -> Option<(f64, f64)> {
        self.values.sort_by(f64::total_cmp);
        Some((*self.values.first()?, self.values[self.values.len() / 2]))
    }
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Ticks of the time-stamp counter per operation: less is better.
    Cycles,
    /// Messages or calls per 10,000 ticks: more is better. Contenders enter ticks per message.
    PerTenThousand,
    /// Bytes per task: less is better.
    Bytes,
}

impl Unit {
    /// As the tables write it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Cycles => "cycles",
            Unit::PerTenThousand => "per 10,000 cycles",
            Unit::Bytes => "bytes",
        }
    }
}

/// What ours is to reach.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// At most so much, in the line's unit.
    Most(f64),
    /// At least so much, in the line's unit.
    Least(f64),
    /// At most so much of the named contender's figure in the same run.
    ShareOf(f64, &'static str),
    /// At most so many cycles more than the named contender's figure in the same run.
    Above(f64, &'static str),
}

/// By what share medians differ from run to run.
const NOISE: f64 = 0.03;

type Run = Box<dyn FnMut(&mut Samples)>;

/// Who is measured in a line.
pub struct Contender {
    /// Its name in the tables.
    pub who: &'static str,
    /// Whether it is one of this project's.
    pub ours: bool,
    /// Does one run; `None` where it is not installed here.
    pub run: Option<Run>,
}

/// One thing that is measured.
pub struct Line {
    /// What an operation is.
    pub title: &'static str,
    /// What the figures count.
    pub unit: Unit,
    /// What ours is to reach; it is asked of the first of ours.
    pub goal: Option<Goal>,
    /// Ours first.
    pub contenders: Vec<Contender>,
    /// How many runs each gets.
    runs: usize,
}

impl Line {
    /// A line in cycles, without a goal and without contenders.
    pub fn new(title: &'static str) -> Self {
        Line { title, unit: Unit::Cycles, goal: None, contenders: Vec::new(), runs: RUNS }
    }

    /// Counts in `unit` instead.
    pub fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// Sets the goal.
    pub fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    /// One run each, where runs do not differ.
    pub fn once(mut self) -> Self {
        self.runs = 1;
        self
    }

    /// Adds one of ours.
    pub fn ours(mut self, who: &'static str, run: impl FnMut(&mut Samples) + 'static) -> Self {
        self.contenders.push(Contender { who, ours: true, run: Some(Box::new(run)) });
        self
    }

    /// Adds one of ours that may not be there.
    pub fn ours_if(mut self, who: &'static str, run: Option<fn(&mut Samples)>) -> Self {
        self.contenders.push(Contender { who, ours: true, run: run.map(|run| Box::new(run) as Run) });
        self
    }

    /// Adds a peer.
    pub fn peer(mut self, who: &'static str, run: impl FnMut(&mut Samples) + 'static) -> Self {
        self.contenders.push(Contender { who, ours: false, run: Some(Box::new(run)) });
        self
    }

    /// Adds a peer that may not be installed.
    pub fn peer_if(mut self, who: &'static str, run: Option<fn(&mut Samples)>) -> Self {
        self.contenders.push(Contender { who, ours: false, run: run.map(|run| Box::new(run) as Run) });
        self
    }
}

/// What was measured for one contender, in its line's unit.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name.
    pub who: &'static str,
    /// Whether it is ours.
    pub ours: bool,
    /// The median over the runs of each run's median batch; `None` where it is not installed.
    pub median: Option<f64>,
    /// The best batch of all.
    pub best: Option<f64>,
}

/// What was measured for one line.
pub struct Measured {
    /// The line's title.
    pub title: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its goal.
    pub goal: Option<Goal>,
    /// The figures, in the line's order.
    pub figures: Vec<Figure>,
}

impl Line {
    /// Runs all contenders in turn, [`RUNS`] times over.
    pub fn measure(mut self) -> Measured {
        let mut summaries: Vec<Vec<(f64, f64)>> = self.contenders.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.runs {
            for (contender, summaries) in self.contenders.iter_mut().zip(&mut summaries) {
                if let Some(run) = &mut contender.run {
                    let mut samples = Samples::new();
                    run(&mut samples);
                    summaries.extend(samples.summary());
                }
            }
        }
        let in_unit = |cycles: f64| match self.unit {
            Unit::PerTenThousand => 10_000.0 / cycles,
            Unit::Cycles | Unit::Bytes => cycles,
        };
        let figures = self.contenders.iter().zip(summaries).map(|(contender, mut summaries)| {
            summaries.sort_by(|a, b| a.1.total_cmp(&b.1));
            let best = summaries.iter().map(|summary| summary.0).min_by(f64::total_cmp);
            let median = summaries.get(summaries.len() / 2).map(|summary| summary.1);
            Figure { who: contender.who, ours: contender.ours, median: median.map(in_unit), best: best.map(in_unit) }
        });
        Measured { title: self.title, unit: self.unit, goal: self.goal, figures: figures.collect() }
    }
}

/// How ours stands to its goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Reached.
    Met,
    /// Missed by less than the figures differ from run to run.
    Level,
    /// Missed, by this factor (above 1).
    MissedBy(f64),
}

impl Measured {
    /// The goal as a number in the line's unit, and how ours stands to it; `None` where either was not measured.
    pub fn verdict(&self) -> Option<(f64, Verdict)> {
        let of = |who: &str| self.figures.iter().find(|figure| figure.who == who)?.median;
        let ours = self.figures.iter().find(|figure| figure.ours)?.median?;
        let (limit, missed_by) = match self.goal? {
            Goal::Most(limit) => (limit, ours / limit),
            Goal::Least(limit) => (limit, limit / ours),
            Goal::ShareOf(share, who) => (share * of(who)?, ours / (share * of(who)?)),
            Goal::Above(above, who) => (above + of(who)?, ours / (above + of(who)?)),
        };
        let verdict = if missed_by <= 1.0 {
            Verdict::Met
        } else if missed_by < 1.0 + NOISE || (ours - limit).abs() < 0.1 {
            Verdict::Level
        } else {
            Verdict::MissedBy(missed_by)
        };
        Some((limit, verdict))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(goal: Goal, ours: f64, peer: f64) -> Measured {
        let figure = |who, ours, value| Figure { who, ours, median: Some(value), best: Some(value) };
        let figures = vec![figure("ours", true, ours), figure("peer", false, peer)];
        Measured { title: "t", unit: Unit::Cycles, goal: Some(goal), figures }
    }

    #[test]
    fn the_verdict_compares_ours_with_the_goal_and_with_the_peer_of_the_same_run() {
        assert_eq!(measured(Goal::Most(5.0), 4.0, 9.0).verdict(), Some((5.0, Verdict::Met)));
        assert_eq!(measured(Goal::Most(5.0), 10.0, 9.0).verdict(), Some((5.0, Verdict::MissedBy(2.0))));
        assert_eq!(measured(Goal::Most(5.0), 5.1, 9.0).verdict(), Some((5.0, Verdict::Level)));
        assert_eq!(measured(Goal::Least(64.0), 32.0, 1.0).verdict(), Some((64.0, Verdict::MissedBy(2.0))));
        assert_eq!(measured(Goal::ShareOf(0.5, "peer"), 4.0, 8.0).verdict(), Some((4.0, Verdict::Met)));
        assert_eq!(measured(Goal::Above(1.0, "peer"), 18.0, 8.0).verdict(), Some((9.0, Verdict::MissedBy(2.0))));
        assert_eq!(measured(Goal::ShareOf(0.5, "nobody"), 4.0, 8.0).verdict(), None);
    }

    #[test]
    fn a_peer_that_is_not_installed_has_no_figure_and_does_not_stop_the_others() {
        let line = Line::new("t").ours("ours", |s| s.push_value(3.0)).peer_if("absent", None);
        let measured = line.measure();
        assert_eq!(measured.figures[0].median, Some(3.0));
        assert_eq!(measured.figures[1].median, None);
    }

    #[test]
    fn throughput_is_the_inverse_of_the_time_per_message() {
        let line = Line::new("t").unit(Unit::PerTenThousand).ours("ours", |s| {
            s.push_value(100.0);
            s.push_value(200.0);
            s.push_value(400.0);
        });
        let measured = line.measure();
        assert_eq!((measured.figures[0].median, measured.figures[0].best), (Some(50.0), Some(100.0)));
    }
}
