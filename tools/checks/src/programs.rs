//! The behaviour checks: small programs that print facts, one line each.

use crate::SystemArguments;
use crate::compare::{Tally, Unit};
use crate::compile;
use crate::session::{self, Judged};
use crate::task::{Action, Task};
use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::time::Duration;

/// Far more than any task needs, however slow or busy the machine is: only a hang gets here.
pub const LIMIT: Duration = Duration::from_secs(600);

/// Compiles and runs the checks whose names contain one of the filters (all, if there is none), and prints a table.
pub fn run(arguments: &SystemArguments, filters: &[String]) -> Result<Tally> {
    let judged = session::run_all(arguments, tasks(filters)?, Unit::Line)?;
    print_table(&judged);
    Ok(session::total(&judged))
}

/// The checks whose names contain one of the filters (all, if there is none), compiled.
pub fn tasks(filters: &[String]) -> Result<Vec<Task>> {
    let selected = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()));
    let tasks: Vec<Task> = compile::all()?
        .into_iter()
        .filter(|program| selected(&program.name))
        .map(|program| Task { name: program.name, action: Action::Program(program.path), stdin: None, limit: LIMIT })
        .collect();
    if tasks.is_empty() {
        bail!("no check has a name with {}", filters.join(" or "));
    }
    Ok(tasks)
}

fn print_table(judged: &[Judged]) {
    let mut rows: BTreeMap<&str, (usize, Tally)> = BTreeMap::new();
    for one in judged {
        let subsystem = one.task.name.split('/').next().unwrap_or_default();
        let (programs, tally) = rows.entry(subsystem).or_default();
        *programs += 1;
        *tally += one.comparison.tally;
    }
    println!("{:<16} {:>8} {:>8} {:>8}", "subsystem", "programs", "passed", "failed");
    for (subsystem, (programs, tally)) in rows {
        println!("{subsystem:<16} {programs:>8} {:>8} {:>8}", tally.passed, tally.failed);
    }
}
