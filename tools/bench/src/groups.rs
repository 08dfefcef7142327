//! `ebb-bench groups`: what it takes to end a workload that has very many objects of one class.
//!
//! The program is `user/bench/groups`. [`rows`] has the classes; [`cells`] is what is measured at one point and what came of it; [`machines`] has it
//! measured; [`report`] makes the tables, and the page of the book.

pub mod cells;
pub mod machines;
pub mod report;
pub mod rows;

use crate::machine::{Kernels, Measured};
use crate::programs;
use crate::report::Style;
use anyhow::{Context, Result};
use cells::{Outcomes, Way, cell};
use clap::Args;
use ebb_guest::artifacts;
use rows::{COUNTS, NOTHING, ROWS, Row, STARTS};
use std::path::PathBuf;

/// What `ebb-bench groups` takes.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    kernels: Kernels,

    /// Measure this row only (its name in `tools/bench/src/groups/rows.rs`); may be given several times.
    #[arg(long, value_name = "ROW", conflicts_with = "write")]
    only: Vec<String>,

    /// Measure no more objects than this.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    most: u64,

    /// Write the tables to docs/src/figures-groups.md, too.
    #[arg(long)]
    write: bool,
}

/// The rows in which poll(2) and reading are compared, and with how many objects.
const READ: ([&str; 3], u64) = ([NOTHING, "pages", "pipes"], 100);

/// How many objects a neighbour meets: with fewer, the end of the workload is one time slice.
const NEIGHBOUR: [u64; 3] = [10_000, 100_000, 1_000_000];

/// How many objects a workload makes whose creation outside of a group is compared at most; more of them say no more.
const CREATED: u64 = 10_000;

/// The names of a row's cells.
fn cells_of(row: &Row, most: u64) -> Vec<String> {
    let counts = COUNTS.into_iter().filter(|count| *count <= most.min(row.most));
    let mut cells = Vec::new();
    for count in counts {
        cells.push(cell(Way::Kill, row.key, count));
        if count <= CREATED {
            cells.push(cell(Way::End, row.key, count));
        }
        if (NEIGHBOUR.contains(&count) || row.key == NOTHING) && row.key != STARTS {
            cells.push(cell(Way::Gap, row.key, count));
        }
        if READ.0.contains(&row.key) && (count == READ.1 || row.key == NOTHING) {
            cells.push(cell(Way::Read, row.key, count));
        }
    }
    cells
}

/// Measures, prints the tables, and writes the page if it is asked for.
///
/// # Errors
/// There is no such row, a machine did not start, or the page cannot be written.
pub fn run(arguments: &Arguments) -> Result<()> {
    let only = &arguments.only;
    crate::rows::check_names(only, ROWS.iter().map(|row| row.key))?;
    let wanted = ROWS.iter().filter(|row| only.is_empty() || only.iter().any(|name| name == row.key));
    let classes: Vec<Vec<String>> = wanted.map(|row| cells_of(row, arguments.most)).collect();
    let ebb = artifacts::KERNEL.find(arguments.kernels.ebb.as_deref())?;
    let (ebb, linux) = measure(ebb, arguments.kernels.linux.as_deref(), &classes)?;
    println!("{}", report::groups(&ebb, linux.as_ref()));
    print!("{}", report::tables(&ebb, linux.as_ref(), Style::Terminal));
    if arguments.write {
        let path = "docs/src/figures-groups.md";
        std::fs::write(path, report::page(&ebb, linux.as_ref())).with_context(|| format!("writing {path}"))?;
        eprintln!("wrote {path}");
    }
    Ok(())
}

/// Has Ebb, and Linux if there is one, measure these cells by class.
///
/// # Errors
/// A machine did not start, or a program does not compile.
pub fn measure(
    ebb: PathBuf,
    linux: Option<&std::path::Path>,
    classes: &[Vec<String>],
) -> Result<(Outcomes, Option<Outcomes>)> {
    let directory = tempfile::tempdir().context("making a temporary directory")?;
    let program = programs::compile_groups(directory.path())?;
    let count: usize = classes.iter().map(Vec::len).sum();
    let progress = machines::progress(count * (1 + usize::from(linux.is_some())));
    let on = |kernel: &Measured| {
        machines::measure(kernel, &program, classes, directory.path(), &progress)
            .with_context(|| format!("on {}", kernel.name()))
    };
    let ebb = on(&Measured::ebb(ebb))?;
    let linux = match linux {
        Some(image) => Some(on(&Measured::linux(image, directory.path())?)?),
        None => None,
    };
    progress.finish_and_clear();
    Ok((ebb, linux))
}
