//! Has machines measure rows: one counts instructions, others measure time.

use super::image;
use crate::counting::{Count, Plugin};
use crate::machine::{self, Measured};
use anyhow::{Context, Result, bail};
use ebb_guest::bare::BareEnd;
use indicatif::ProgressBar;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What one kernel needs, by the rows' names.
#[derive(Default)]
pub struct Figures {
    /// Instructions.
    pub counts: HashMap<String, Count>,
    /// Nanoseconds, the fewest of all machines.
    pub times: HashMap<String, f64>,
}

/// What all machines have in common.
pub struct Machines<'a> {
    /// Process 1.
    pub program: PathBuf,
    /// The disk, of which each machine gets a copy.
    pub image: PathBuf,
    /// The rows; all if it is empty.
    pub only: &'a [String],
    /// Where files can be made.
    pub directory: &'a Path,
    /// Goes on by one with each row of a machine.
    pub progress: &'a ProgressBar,
}

impl Machines<'_> {
    /// Counts instructions; with `profiles` also those of each block of the kernel's code, in a file of that directory for each row. Gives the rows' names in the
    /// order of these files.
    ///
    /// # Errors
    /// The machine did not start, or ended early.
    pub fn count(
        &self,
        kernel: &Measured,
        modules: Option<&Path>,
        plugin: &Plugin,
        profiles: Option<&Path>,
        figures: &mut Figures,
    ) -> Result<Vec<String>> {
        let option = plugin.option(profiles)?;
        // A processor that waits lets the guest's clock run with the host's; one that works, with its instructions.
        let options = ["-icount", "shift=0", "-plugin", &option];
        let rows = self.run(kernel, modules, &options, "counting instructions").with_context(|| {
            "QEMU has to load the plugin in tools/bench/plugin, which is for QEMU 4.2 to 8.1; --time-only does without"
        })?;
        let counts = plugin.counts(rows.len()).context("--time-only does without it")?;
        let names: Vec<String> = rows.into_iter().map(|(name, _)| name).collect();
        figures.counts.extend(names.iter().cloned().zip(counts));
        Ok(names)
    }

    /// Measures time, and keeps it where no machine before was faster.
    ///
    /// # Errors
    /// The machine did not start, or ended early.
    pub fn time(&self, kernel: &Measured, modules: Option<&Path>, figures: &mut Figures) -> Result<()> {
        for (row, time) in self.run(kernel, modules, &[], "measuring time")? {
            let fastest = figures.times.entry(row).or_insert(time);
            *fastest = fastest.min(time);
        }
        Ok(())
    }

    /// Boots a machine with a fresh copy of the disk, and gives the rows that it ran, in its order, with their nanoseconds.
    fn run(
        &self,
        kernel: &Measured,
        modules: Option<&Path>,
        options: &[&str],
        what: &str,
    ) -> Result<Vec<(String, f64)>> {
        let disk = self.directory.join("copy.img");
        let copied =
            Command::new("cp").args(["--sparse=always", "--reflink=auto"]).arg(&self.image).arg(&disk).status();
        if !copied.context("running cp")?.success() {
            bail!(
                "the disk's image cannot be copied to {}; it takes up to 1 GiB (TMPDIR names another place)",
                disk.display()
            );
        }
        let mut archive = machine::image(&self.program, self.only)?;
        image::add_programs(&mut archive)?;
        if let Some(kernel) = modules {
            archive.add_modules(kernel, &machine::DISK_MODULES)?;
        }
        let mut rows = Vec::new();
        self.progress.set_message(format!("{}, {what}", kernel.name()));
        let run = machine::measure_disks(kernel, archive, &disk, options, self.directory, &mut |_, line| {
            if let Some((row, time)) = row(line) {
                self.progress.inc(1);
                self.progress.set_message(format!("{}, {what}: {row} was the last", kernel.name()));
                rows.push((row, time));
            }
        })?;
        if run.end == BareEnd::TimedOut || !run.console.contains("bench: done") {
            bail!("the measurements ended early ({:?}); the console's last lines:\n{}", run.end, run.last_lines(20));
        }
        Ok(rows)
    }
}

/// A line of the program's: `row<TAB>nanoseconds`.
fn row(line: &str) -> Option<(String, f64)> {
    let (row, time) = line.split_once('\t')?;
    super::rows::ROWS.iter().any(|known| known.key == row).then_some((row.to_owned(), time.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_from_other_text() {
        assert_eq!(row("tar-x\t1500"), Some(("tar-x".to_owned(), 1500.0)));
        assert_eq!(row("[    1.0]\t1500"), None);
        assert_eq!(row("tar-x\tmuch"), None);
    }
}
