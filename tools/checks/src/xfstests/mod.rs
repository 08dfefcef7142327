//! xfstests' generic tests, of the groups `auto` and `quick`, on ext4: tests of file systems that nobody here wrote, judged by their own words.
//!
//! [`suite`] builds it and makes a disk of what is built, [`machine`] is what its tests run in (a Debian on a disk), [`verdict`] reads what the suite says of a test, and [`reasons`] lists why tests
//! do not run; the rest is as with all [suites](crate::suites).

mod machine;
mod reasons;
mod suite;
mod verdict;

use crate::SystemArguments;
use crate::book::replace_table;
use crate::compare::Tally;
use crate::suites::verdict::Verdict;
use crate::suites::{self, Results, SuiteArguments, batches::Suite as _, build};
use anyhow::Result;
use machine::Bootable;
use suite::Suite;

const NAME: &str = "xfstests";
/// The page with the table.
const PAGE: &str = "docs/src/xfstests.md";
/// Why tests do not pass.
const CAUSES: &str = "user/xfstests/causes.txt";
const VERDICTS: [Verdict; 5] =
    [Verdict::Passed, Verdict::NotApplicable, Verdict::Failed, Verdict::TimedOut, Verdict::SystemLost];

/// Runs the tests; the tally is of those that pass on the reference, where it is known.
pub fn run(systems: &SystemArguments, arguments: &SuiteArguments) -> Result<Tally> {
    let progress = suites::progress()?;
    let mut doing = |what: &str| progress.set_message(what.to_owned());
    let results = Results::of(NAME)?;
    let suite = Bootable::new(Suite::build(&arguments.checkout, &mut doing)?, &mut doing)?;
    suites::run(&suite, &results, (systems, arguments), &progress)?;
    progress.finish_and_clear();
    let report = results.report(&suite.tests(), CAUSES, &VERDICTS)?;
    let text = format!("{}\n{}", report.text(), reasons::table(&suite.tests(), &results));
    print!("{text}");
    println!("\nwhat each test said is in {}", build::directory(NAME).join("results").display());
    if arguments.write {
        replace_table(PAGE, |_| text)?;
    }
    Ok(suites::tally(&report))
}
