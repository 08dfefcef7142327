//! The Linux Test Project's tests of system calls: a list of tests that nobody here wrote, judged by their own words.
//!
//! [`suite`] builds it, [`batch`] is what its tests run in, [`verdict`] reads their ends; the rest is as with all [suites](crate::suites).

mod batch;
mod suite;
mod verdict;

use crate::SystemArguments;
use crate::book::replace_table;
use crate::compare::Tally;
use crate::suites::verdict::Verdict;
use crate::suites::{self, Results, SuiteArguments, batches::Suite as _, build};
use anyhow::Result;
use batch::Bootable;
use suite::Suite;

const NAME: &str = "ltp";
/// The page with the table.
const PAGE: &str = "docs/src/ltp.md";
/// Why tests do not pass.
const CAUSES: &str = "user/ltp/causes.txt";
const VERDICTS: [Verdict; 8] = [
    Verdict::Passed,
    Verdict::NotApplicable,
    Verdict::Failed,
    Verdict::Broken,
    Verdict::Warned,
    Verdict::Signal,
    Verdict::TimedOut,
    Verdict::SystemLost,
];

/// Runs the tests; the tally is of those that pass on the reference, where it is known.
pub fn run(systems: &SystemArguments, arguments: &SuiteArguments) -> Result<Tally> {
    let progress = suites::progress()?;
    let results = Results::of(NAME)?;
    let suite = Bootable::new(Suite::build(&arguments.checkout, |what| progress.set_message(what.to_owned()))?)?;
    suites::run(&suite, &results, (systems, arguments), &progress)?;
    progress.finish_and_clear();
    let report = results.report(&suite.tests(), CAUSES, &VERDICTS)?;
    print!("{}", report.text());
    println!("\nwhat each test said is in {}", build::directory(NAME).join("results").display());
    if arguments.write {
        replace_table(PAGE, |_| report.text())?;
    }
    Ok(suites::tally(&report))
}
