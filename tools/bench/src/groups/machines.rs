//! Has machines measure cells, each class in one of its own; what takes a machine down costs the cell that was begun.

use super::cells::Outcomes;
use crate::machine::{self, Measured};
use anyhow::{Result, bail};
use ebb_guest::bare::BareEnd;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;

/// A bar for so many cells.
pub fn progress(cells: usize) -> ProgressBar {
    let bar = ProgressBar::new(cells as u64);
    bar.set_style(
        ProgressStyle::with_template("{pos}/{len} {wide_bar} {msg} ").unwrap_or(ProgressStyle::default_bar()),
    );
    bar
}

/// Measures the cells of one class after the other; `classes` has the cells' names.
///
/// # Errors
/// A machine did not start, or ended before it began a cell.
pub fn measure(
    kernel: &Measured,
    program: &Path,
    classes: &[Vec<String>],
    directory: &Path,
    progress: &ProgressBar,
) -> Result<Outcomes> {
    let mut outcomes = Outcomes::default();
    for cells in classes {
        let mut left = &cells[..];
        while let Some(first) = left.first() {
            progress.set_message(format!("{} {first}", kernel.name()));
            let run = machine::measure_groups(kernel, program, left, directory, &mut |_, line| {
                if outcomes.read(line) {
                    progress.inc(1);
                } else if let Some(cell) = line.strip_prefix("begin\t") {
                    progress.set_message(format!("{} {cell}", kernel.name()));
                }
            })?;
            if run.console.contains("bench: done") {
                break;
            }
            let lines = run.last_lines(8);
            let how = match run.end {
                BareEnd::TimedOut => "hung",
                BareEnd::Panicked => "panicked",
                BareEnd::PoweredOff | BareEnd::Died => "ended the machine",
            };
            let Some(cell) = outcomes.lose(&format!("the kernel {how}")) else {
                bail!("{} {how} before a measurement began; the console's last lines:\n{lines}", kernel.name());
            };
            progress.suspend(|| eprintln!("{} {how} in {cell}; the console's last lines:\n{lines}", kernel.name()));
            progress.inc(1);
            left = left.iter().position(|name| *name == cell).map_or(&[], |at| &left[at + 1..]);
        }
    }
    Ok(outcomes)
}
