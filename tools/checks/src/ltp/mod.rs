//! The Linux Test Project's tests of system calls: a list of tests that nobody here wrote, judged by their own words.
//!
//! The user brings a checkout. [`suite`] builds it, [`batch`] runs its tests in machines, [`verdict`] keeps what came of each, and [`report`] makes the table by cause. With a reference in a machine
//! (`--reference`) the same tests run there too, and what counts is what passes there and not on Ebb. Results are kept from one run to the next, so that a few tests can be run
//! again (`--only`) and a reference need not be.

mod batch;
mod report;
mod suite;
mod verdict;

use crate::SystemArguments;
use crate::book::replace_table;
use crate::compare::Tally;
use anyhow::{Result, bail};
use batch::Batches;
use clap::Args;
use ebb_guest::{Kernel, artifacts};
use indicatif::{ProgressBar, ProgressStyle};
use report::{Causes, Report};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;
use suite::{Suite, Test};
use verdict::{Kept, Verdict};

/// The page with the table.
const PAGE: &str = "docs/src/ltp.md";

/// What to run.
#[derive(Args)]
pub struct LtpArguments {
    /// A checkout of the Linux Test Project.
    checkout: PathBuf,
    /// Only these tests; results of the others are kept.
    #[arg(long, num_args = 1.., value_name = "NAME")]
    only: Vec<String>,
    /// Machines that run at a time.
    #[arg(long, default_value_t = 1, value_name = "N")]
    jobs: usize,
    /// Write the table in the book.
    #[arg(long)]
    write: bool,
}

/// Runs the tests; the tally is of those that pass on the reference, where it is known.
pub fn run(systems: &SystemArguments, arguments: &LtpArguments) -> Result<Tally> {
    let progress = ProgressBar::new_spinner();
    progress.set_style(ProgressStyle::with_template("{spinner} {elapsed} {pos}/{len} {wide_msg}")?);
    progress.enable_steady_tick(Duration::from_millis(200));
    let causes = Causes::read()?;
    let suite = Suite::build(&arguments.checkout, |what| progress.set_message(what.to_owned()))?;
    let selected = selected(&suite.tests, &arguments.only)?;
    let kept = |name: &str| Kept::of(&name.to_lowercase());
    let (ebb, linux) = (kept("Ebb")?, kept("Linux")?);
    let mut kernels = Vec::new();
    if let Some(path) = &systems.reference {
        kernels.push((Kernel::open(path)?, &linux));
    }
    if !systems.reference_only {
        kernels.push((Kernel::open(&artifacts::KERNEL.find(systems.kernel.as_deref())?)?, &ebb));
    }
    for (kernel, kept) in kernels {
        run_on(kernel, kept, &suite, &selected, (systems, arguments), &progress)?;
    }
    progress.finish_and_clear();
    let report = Report::new(&suite.tests, &causes, &ebb, &linux);
    print!("{}", report.text());
    println!("\nwhat each test said is in {}", suite::directory().join("results").display());
    if arguments.write {
        replace_table(PAGE, |_| report.text())?;
    }
    let (passed, failed) = report.passed_and_missing();
    Ok(Tally { passed, failed })
}

fn selected<'a>(tests: &'a [Test], only: &[String]) -> Result<Vec<&'a Test>> {
    if let Some(unknown) = only.iter().find(|name| tests.iter().all(|test| test.name != **name)) {
        bail!("no test {unknown} in the list");
    }
    Ok(tests.iter().filter(|test| only.is_empty() || only.contains(&test.name)).collect())
}

/// Runs the tests on a kernel; a line for each that does not pass, or for each of a few.
fn run_on(
    kernel: Kernel,
    kept: &Kept,
    suite: &Suite,
    tests: &[&Test],
    (systems, arguments): (&SystemArguments, &LtpArguments),
    progress: &ProgressBar,
) -> Result<()> {
    let name = kernel.name();
    let batches = Batches::new(suite, kernel, systems, kept)?;
    progress.set_length(tests.len() as u64);
    progress.set_position(0);
    let is_whole = arguments.only.is_empty();
    let (sender, results) = channel::<(String, Verdict)>();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (test, verdict) in results {
                if !is_whole || !matches!(verdict, Verdict::Passed | Verdict::NotApplicable) {
                    progress.suspend(|| println!("{name}: {test}: {}", verdict.name()));
                }
            }
        });
        let ran = batches.run(tests, arguments.jobs, progress, &sender);
        drop(sender);
        ran
    })
}
