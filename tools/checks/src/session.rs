//! Running a list of tasks on both systems, with progress and a report of the differences.

use crate::SystemArguments;
use crate::compare::{Comparison, Tally, Unit, compare};
use crate::system::{System, Systems, systems};
use crate::task::{Outcome, Task};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// A task's comparison.
pub struct Judged {
    pub task: Task,
    pub comparison: Comparison,
}

/// So many tasks the reference is ahead of Ebb at most.
const AHEAD: usize = 8;

/// Runs all tasks; prints the differences as they are found.
///
/// The reference does one task after the other, a little ahead of Ebb's machines, of which each takes the next task when it is through with one. Tasks that want all
/// cores come last, each alone on the reference and then alone on one machine.
pub fn run_all(arguments: &SystemArguments, tasks: Vec<Task>, unit: Unit) -> Result<Vec<Judged>> {
    let Systems { mut reference, mut ebb } = systems(arguments, &tasks)?;
    let progress = ProgressBar::new(tasks.len() as u64);
    progress.set_style(
        ProgressStyle::with_template("{pos}/{len} {wide_bar} {msg} ").unwrap_or(ProgressStyle::default_bar()),
    );
    let session = Session { progress: &progress, unit };
    let (alone, others): (Vec<_>, Vec<_>) = tasks.into_iter().enumerate().partition(|(_, task)| task.wants_all_cores());
    let mut judged;
    match ebb.pop() {
        None => {
            judged = session.show_each(&mut *reference, others)?;
            judged.extend(session.show_each(&mut *reference, alone)?);
        }
        Some(mut last) => {
            judged = session.side_by_side(&mut *reference, ebb, others)?;
            for (number, task) in alone {
                let expected = reference.run(&task)?;
                judged.push((number, session.judge(&mut *last, task, &expected)?));
            }
        }
    }
    progress.finish_and_clear();
    judged.sort_by_key(|(number, _)| *number);
    Ok(judged.into_iter().map(|(_, judged)| judged).collect())
}

/// What all parts of a run have in common.
struct Session<'a> {
    progress: &'a ProgressBar,
    unit: Unit,
}

impl Session<'_> {
    /// Runs a task on Ebb.
    fn judge(&self, ebb: &mut dyn System, task: Task, expected: &Outcome) -> Result<Judged> {
        self.progress.set_message(task.name.clone());
        let comparison = compare(expected, &ebb.run(&task)?, self.unit);
        if !comparison.differences.is_empty() {
            self.progress.suspend(|| {
                println!("{}:", task.name);
                for difference in &comparison.differences {
                    println!("    {difference}");
                }
            });
        }
        self.progress.inc(1);
        Ok(Judged { task, comparison })
    }

    /// Runs tasks on the reference only.
    fn show_each(&self, reference: &mut dyn System, tasks: Vec<(usize, Task)>) -> Result<Vec<(usize, Judged)>> {
        let show = |(number, task): (usize, Task)| {
            let expected = reference.run(&task)?;
            let comparison = show(self.progress, reference.name(), &task, &expected);
            self.progress.inc(1);
            Ok((number, Judged { task, comparison }))
        };
        tasks.into_iter().map(show).collect()
    }

    /// Runs tasks on the reference and on as many machines as there are.
    fn side_by_side(
        &self,
        reference: &mut dyn System,
        machines: Vec<Box<dyn System + Send>>,
        tasks: Vec<(usize, Task)>,
    ) -> Result<Vec<(usize, Judged)>> {
        let (sender, receiver) = sync_channel::<(usize, Task, Outcome)>(AHEAD);
        // Nothing is in it once a machine could not be had.
        let receiver = Mutex::new(Some(receiver));
        let queue = || receiver.lock().unwrap_or_else(PoisonError::into_inner);
        let next = || queue().as_ref()?.recv().ok();
        let work = |mut ebb: Box<dyn System + Send>| {
            let mut judged = Vec::new();
            while let Some((number, task, expected)) = next() {
                let one = self.judge(&mut *ebb, task, &expected).inspect_err(|_| drop(queue().take()))?;
                judged.push((number, one));
            }
            Ok::<_, anyhow::Error>(judged)
        };
        thread::scope(|scope| {
            let workers: Vec<_> = machines.into_iter().map(|ebb| scope.spawn(|| work(ebb))).collect();
            let tell = |(number, task): (usize, Task)| -> Result<bool> {
                let expected = reference.run(&task)?;
                // Nobody takes it if a machine could not be had, and that one says why.
                Ok(sender.send((number, task, expected)).is_ok())
            };
            let told = tasks.into_iter().map(tell).find(|told| !matches!(told, Ok(true)));
            drop(sender);
            let mut all = Vec::new();
            for worker in workers {
                all.extend(worker.join().unwrap_or_else(|panic| resume_unwind(panic))?);
            }
            told.unwrap_or(Ok(true)).map(|_| all)
        })
    }
}

/// The sum of all checks.
pub fn total(judged: &[Judged]) -> Tally {
    let mut tally = Tally::default();
    for one in judged {
        tally += one.comparison.tally;
    }
    tally
}

/// Prints what the reference did; only a task that hangs or takes it down counts as failed.
fn show(progress: &ProgressBar, system: &str, task: &Task, outcome: &Outcome) -> Comparison {
    let failed = Comparison { tally: Tally { passed: 0, failed: 1 }, differences: vec![format!("no end on {system}")] };
    let Outcome::Ended { stdout, stderr, exit } = outcome else {
        return failed;
    };
    progress.suspend(|| {
        println!("{} on {system}: {exit}", task.name);
        print!("{}{}", String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
    });
    Comparison { tally: Tally { passed: 1, failed: 0 }, differences: vec![] }
}
