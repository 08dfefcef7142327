//! Running a list of tasks on both systems, with progress and a report of the differences.

use crate::SystemArguments;
use crate::compare::{Comparison, Tally, Unit, compare};
use crate::system::{System, Systems, systems};
use crate::task::{Outcome, Task};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// A task's comparison.
pub struct Judged {
    pub task: Task,
    pub comparison: Comparison,
}

/// So many tasks the reference is ahead of Ebb at most.
const AHEAD: usize = 8;

/// Runs all tasks; prints the differences as they are found. The reference does one task after the other, a little ahead of Ebb's machines, of which each takes
/// the next task when it is through with one.
pub fn run_all(arguments: &SystemArguments, tasks: Vec<Task>, unit: Unit) -> Result<Vec<Judged>> {
    let Systems { mut reference, ebb } = systems(arguments, &tasks)?;
    let progress = ProgressBar::new(tasks.len() as u64);
    progress.set_style(
        ProgressStyle::with_template("{pos}/{len} {wide_bar} {msg} ").unwrap_or(ProgressStyle::default_bar()),
    );
    let mut judged = Vec::new();
    if ebb.is_empty() {
        for task in tasks {
            let expected = reference.run(&task)?;
            let comparison = show(&progress, reference.name(), &task, &expected);
            judged.push(Judged { task, comparison });
            progress.inc(1);
        }
    } else {
        let (sender, receiver) = sync_channel(AHEAD);
        let judging = Judging { expected: Mutex::new(Some(receiver)), progress: &progress, unit };
        let mut numbered = thread::scope(|scope| {
            let workers: Vec<_> = ebb.into_iter().map(|ebb| scope.spawn(|| judging.run(ebb))).collect();
            let told = tasks.into_iter().enumerate().try_for_each(|(number, task)| {
                let expected = reference.run(&task)?;
                // Nobody takes it if a machine could not be had: which one says why.
                let _ = sender.send((number, task, expected));
                Ok::<(), anyhow::Error>(())
            });
            drop(sender);
            let mut all = Vec::new();
            for worker in workers {
                all.extend(worker.join().unwrap_or_else(|panic| resume_unwind(panic))?);
            }
            told.map(|()| all)
        })?;
        numbered.sort_by_key(|(number, _)| *number);
        judged.extend(numbered.into_iter().map(|(_, judged)| judged));
    }
    progress.finish_and_clear();
    Ok(judged)
}

/// A task by its number, and what the reference did.
type Expected = (usize, Task, Outcome);

/// What Ebb's machines share.
struct Judging<'a> {
    /// The tasks that the reference is through with; `None` once a machine could not be had.
    expected: Mutex<Option<Receiver<Expected>>>,
    progress: &'a ProgressBar,
    unit: Unit,
}

impl Judging<'_> {
    /// Runs tasks on a machine until there are no more.
    fn run(&self, mut ebb: Box<dyn System + Send>) -> Result<Vec<(usize, Judged)>> {
        let mut judged = Vec::new();
        while let Some((number, task, expected)) = self.next() {
            self.progress.set_message(task.name.clone());
            let outcome = ebb.run(&task).inspect_err(|_| drop(self.queue().take()))?;
            let comparison = compare(&expected, &outcome, self.unit);
            if !comparison.differences.is_empty() {
                self.progress.suspend(|| {
                    println!("{}:", task.name);
                    for difference in &comparison.differences {
                        println!("    {difference}");
                    }
                });
            }
            judged.push((number, Judged { task, comparison }));
            self.progress.inc(1);
        }
        Ok(judged)
    }

    fn next(&self) -> Option<Expected> {
        self.queue().as_ref()?.recv().ok()
    }

    fn queue(&self) -> MutexGuard<'_, Option<Receiver<Expected>>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
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
