//! Running a list of tasks on both systems, with progress and a report of the differences.

use crate::SystemArguments;
use crate::compare::{Comparison, Tally, Unit, compare};
use crate::system::{Systems, systems};
use crate::task::{Outcome, Task};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

/// A task's comparison.
pub struct Judged {
    pub task: Task,
    pub comparison: Comparison,
}

/// Runs all tasks; prints the differences as they are found.
pub fn run_all(arguments: &SystemArguments, tasks: Vec<Task>, unit: Unit) -> Result<Vec<Judged>> {
    let Systems { mut reference, mut ebb } = systems(arguments, &tasks)?;
    let progress = ProgressBar::new(tasks.len() as u64);
    progress.set_style(
        ProgressStyle::with_template("{pos}/{len} {wide_bar} {msg} ").unwrap_or(ProgressStyle::default_bar()),
    );
    let mut judged = Vec::new();
    for task in tasks {
        progress.set_message(task.name.clone());
        let expected = reference.run(&task)?;
        let comparison = match &mut ebb {
            Some(ebb) => compare(&expected, &ebb.run(&task)?, unit),
            None => show(&progress, reference.name(), &task, &expected),
        };
        if !comparison.differences.is_empty() {
            progress.suspend(|| {
                println!("{}:", task.name);
                for difference in &comparison.differences {
                    println!("    {difference}");
                }
            });
        }
        judged.push(Judged { task, comparison });
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(judged)
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
