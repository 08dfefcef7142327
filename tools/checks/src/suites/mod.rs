//! What the runs of other people's test suites share: a suite's tests run in machines ([`batches`]), what came of each is kept from one run to the next ([`verdict`]), and a table says why tests do
//! not pass ([`report`]).
//!
//! The user brings a checkout, a copy of which is built below the build's directory ([`build`]). With a reference in a machine (`--reference`) the same tests run there too, and what counts is what passes there
//! and not on Ebb.

pub mod batches;
pub mod build;
pub mod report;
pub mod verdict;

use crate::SystemArguments;
use crate::compare::Tally;
use anyhow::{Result, bail};
use batches::{Suite, Worker};
use clap::Args;
use ebb_guest::{Kernel, artifacts};
use indicatif::{ProgressBar, ProgressStyle};
use report::{Causes, Report};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;
use verdict::{Kept, Verdict};

/// What to run of a suite.
#[derive(Args)]
pub struct SuiteArguments {
    /// A checkout of the suite.
    pub checkout: PathBuf,
    /// Only these tests; results of the others are kept.
    #[arg(long, num_args = 1.., value_name = "NAME")]
    pub only: Vec<String>,
    /// Machines that run at a time.
    #[arg(long, default_value_t = 1, value_name = "N")]
    jobs: usize,
    /// Write the table in the book.
    #[arg(long)]
    pub write: bool,
}

/// A line that shows what is being done.
pub fn progress() -> Result<ProgressBar> {
    let progress = ProgressBar::new_spinner();
    progress.set_style(ProgressStyle::with_template("{spinner} {elapsed} {pos}/{len} {wide_msg}")?);
    progress.enable_steady_tick(Duration::from_millis(200));
    Ok(progress)
}

/// What is kept of both kernels.
pub struct Results {
    pub ebb: Kept,
    pub linux: Kept,
}

impl Results {
    /// Those below a suite's directory.
    pub fn of(name: &str) -> Result<Self> {
        let results = build::directory(name).join("results");
        Ok(Self { ebb: Kept::at(results.join("ebb"))?, linux: Kept::at(results.join("linux"))? })
    }

    /// The report of these tests, whose causes are in the file `causes`.
    pub fn report(&self, tests: &[String], causes: &'static str, verdicts: &'static [Verdict]) -> Result<Report> {
        Ok(Report::new(tests, &Causes::read(causes)?, (&self.ebb, &self.linux), verdicts))
    }
}

/// Runs what was chosen of a suite's tests on the reference, if there is one in a machine, and on Ebb.
pub fn run<S: Suite>(
    suite: &S,
    results: &Results,
    (systems, arguments): (&SystemArguments, &SuiteArguments),
    progress: &ProgressBar,
) -> Result<()> {
    let names = suite.tests();
    if let Some(unknown) = arguments.only.iter().find(|name| !names.contains(name)) {
        bail!("no test {unknown} in the list");
    }
    let chosen: Vec<String> =
        names.into_iter().filter(|name| arguments.only.is_empty() || arguments.only.contains(name)).collect();
    let mut kernels = Vec::new();
    if let Some(path) = &systems.reference {
        kernels.push((Kernel::open(path)?, &results.linux));
    }
    if !systems.reference_only {
        kernels.push((Kernel::open(&artifacts::KERNEL.find(systems.kernel.as_deref())?)?, &results.ebb));
    }
    for (kernel, kept) in kernels {
        run_on(suite, &kernel, kept, &chosen, (systems, arguments), progress)?;
    }
    Ok(())
}

/// Runs the tests on a kernel; a line for each that does not pass, or for each of a few.
fn run_on<S: Suite>(
    suite: &S,
    kernel: &Kernel,
    kept: &Kept,
    tests: &[String],
    (systems, arguments): (&SystemArguments, &SuiteArguments),
    progress: &ProgressBar,
) -> Result<()> {
    let name = kernel.name();
    progress.set_length(tests.len() as u64);
    progress.set_position(0);
    let is_whole = arguments.only.is_empty();
    let (sender, results) = channel::<(String, Verdict)>();
    let machine = suite.machine(kernel.clone(), systems);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (test, verdict) in results {
                if !is_whole || !matches!(verdict, Verdict::Passed | Verdict::NotApplicable) {
                    progress.suspend(|| println!("{name}: {test}: {}", verdict.name()));
                }
            }
        });
        let ran = Worker { suite, machine, kept, progress, done: sender.clone() }.run(tests, arguments.jobs);
        drop(sender);
        ran
    })
}

/// So many tests pass, and so many that should do not.
pub fn tally(report: &Report) -> Tally {
    let (passed, failed) = report.passed_and_missing();
    Tally { passed, failed }
}
