//! Has a machine run rows, and reads what they print and what QEMU's plugin counted.

use super::rows::{ROWS, Unit};
use crate::counting::{Count, Plugin};
use crate::machine::{self, Measured};
use anyhow::{Context, Result, bail};
use ebb_guest::bare::BareEnd;
use indicatif::ProgressBar;
use std::collections::HashMap;
use std::path::Path;

/// What one kernel needs for one operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Figure {
    /// Instructions.
    Instructions(Count),
    /// Bytes of memory.
    Bytes(f64),
}

impl Figure {
    /// The number that is compared.
    pub fn total(&self) -> f64 {
        match self {
            Figure::Instructions(count) => count.total(),
            Figure::Bytes(bytes) => *bytes,
        }
    }

    /// The part of it that programs have no share in, where that is another.
    pub fn in_kernel(&self) -> Option<f64> {
        match self {
            Figure::Instructions(count) => Some(count.kernel),
            Figure::Bytes(_) => None,
        }
    }
}

/// What one kernel needs, by the rows' names.
pub type Figures = HashMap<&'static str, Figure>;

/// What all machines have in common.
pub struct Machines<'a> {
    /// Process 1.
    pub program: &'a Path,
    /// What counts instructions.
    pub plugin: &'a Plugin,
    /// Where files can be made.
    pub directory: &'a Path,
    /// Goes on by one with each row of a machine.
    pub progress: &'a ProgressBar,
}

impl Machines<'_> {
    /// Measures rows; those of servers need the disk with these. `modules` is the kernel whose modules the disk needs. With `profiles` the instructions of each block of the kernel's code are
    /// counted, too, in a file of that directory for each row that counts instructions. Gives the names of these rows in the order of the files.
    ///
    /// # Errors
    /// The machine did not start, or ended early.
    pub fn measure(
        &self,
        kernel: &Measured,
        modules: Option<&Path>,
        rows: &[String],
        disk: Option<&Path>,
        profiles: Option<&Path>,
    ) -> Result<(Figures, Vec<String>)> {
        let mut archive = machine::image(self.program, rows)?;
        if let Some(modules) = modules.filter(|_| disk.is_some()) {
            archive.add_modules(modules, &machine::DISK_MODULES)?;
        }
        let option = self.plugin.option(profiles)?;
        self.progress.set_message(kernel.name());
        let mut printed = Vec::new();
        let mut each_line = |_, line: &str| {
            if let Some((row, number)) = row(line) {
                self.progress.inc(1);
                self.progress.set_message(format!("{}: {} was the last", kernel.name(), ROWS[row].key));
                printed.push((row, number));
            }
        };
        let run =
            machine::measure_network(kernel, archive, disk, &option, self.directory, &mut each_line)
                .context("QEMU has to load the plugin in tools/bench/plugin, which is for QEMU 4.2 to 8.1: another QEMU can be first in PATH")?;
        if run.end == BareEnd::TimedOut || !run.console.contains("bench: done") {
            bail!(
                "the measurements ended early ({:?}): `--only ROW` runs a single one; the console's last lines:\n{}",
                run.end,
                run.last_lines(20)
            );
        }
        let counted = printed.iter().filter(|(row, _)| ROWS[*row].unit != Unit::Bytes);
        let names = counted.clone().map(|(row, _)| ROWS[*row].key.to_owned()).collect();
        let mut counts = self.plugin.counts(counted.count())?.into_iter();
        let mut figures = Figures::new();
        for (row, number) in printed {
            let row = &ROWS[row];
            let figure = match row.unit {
                Unit::Bytes => Some(Figure::Bytes(number)),
                Unit::Instructions | Unit::InstructionsPerKib => counts.next().map(|count| each(count, number)),
            };
            figures.extend(figure.map(|figure| (row.key, figure)));
        }
        Ok((figures, names))
    }
}

/// What one of so many operations needed.
fn each(count: Count, operations: f64) -> Figure {
    Figure::Instructions(Count { user: count.user / operations, kernel: count.kernel / operations })
}

/// A line of the program's, `row<TAB>number`: which row that is, and the number.
fn row(line: &str) -> Option<(usize, f64)> {
    let (key, number) = line.split_once('\t')?;
    Some((ROWS.iter().position(|row| row.key == key)?, number.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_from_other_text() {
        assert_eq!(row("tcp-round-trip\t1000"), Some((0, 1000.0)));
        assert_eq!(row("[    1.0]\t1500"), None);
        assert_eq!(row("tcp-round-trip\tmany"), None);
    }

    #[test]
    fn instructions_are_shared_among_the_operations() {
        let figure = each(Count { user: 100.0, kernel: 400.0 }, 10.0);
        assert_eq!(figure.total(), 50.0);
        assert_eq!(figure.in_kernel(), Some(40.0));
    }
}
