//! `ebb-bench cores`: how far work gets on two cores, beside one, and how soon memory comes back while the other core is busy.
//!
//! The programs are `user/bench/cores.c` and `reuse.c`, which print a line for each measurement. Time is the host's, so what else the host does shows: machines
//! of both kernels take turns, every measurement is done many times, the fastest counts of those from which other work took least (what is outside of the host, as where it is a machine of a cloud,
//! shows nowhere, and never makes anything faster), and the first row, which computes and calls no kernel, says what two cores of the emulator can reach at best.

pub mod host;
mod report;
mod reuse;
mod rows;

use crate::machine::{self, Kernels, Measured};
use crate::programs;
use crate::report::Style;
use anyhow::{Context, Result};
use clap::Args;
use ebb_guest::{Cpus, artifacts};
use host::{Load, Waits};
use std::collections::HashMap;

/// What `ebb-bench cores` takes.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    kernels: Kernels,

    /// How many machines of each kernel take turns.
    #[arg(long, value_name = "N", default_value_t = 3)]
    machines: u32,

    /// How often each machine measures everything.
    #[arg(long, value_name = "N", default_value_t = 6)]
    rounds: u32,

    /// For how long one measurement works.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 250)]
    time: u32,

    /// Measure this row only; may be given several times.
    #[arg(long, value_name = "ROW", conflicts_with = "write")]
    only: Vec<String>,

    /// Write the table to docs/src/figures-cores.md, too.
    #[arg(long)]
    write: bool,
}

/// One measurement.
#[derive(Clone, Copy)]
struct Sample {
    /// Operations a second.
    rate: f64,
    /// The share of its time that went to other work of the host.
    lost: f64,
}

/// How many operations a second, by row and number of workers, in every measurement.
#[derive(Default)]
pub struct Rates {
    samples: HashMap<(String, usize), Vec<Sample>>,
    /// How many cores the kernel has; 0 if it was not measured.
    cores: usize,
}

impl Rates {
    /// The half of the measurements from which other work took least.
    fn quiet(&self, row: &str, workers: usize) -> Option<Vec<Sample>> {
        let mut samples = self.samples.get(&(row.to_owned(), workers))?.clone();
        samples.sort_by(|a, b| a.lost.total_cmp(&b.lost));
        let most = samples.get((samples.len() - 1) / 2)?.lost;
        samples.retain(|sample| sample.lost <= most);
        Some(samples)
    }

    /// The most that this many workers reached together.
    pub fn most(&self, row: &str, workers: usize) -> Option<f64> {
        self.quiet(row, workers)?.iter().map(|sample| sample.rate).max_by(f64::total_cmp)
    }

    /// How much more two workers reach than one.
    pub fn ratio(&self, row: &str) -> Option<f64> {
        let (one, two) = (self.most(row, 1)?, self.most(row, 2)?);
        (one > 0.0).then_some(two / one)
    }

    /// The largest share that other work took from a measurement that counts.
    pub fn lost(&self) -> f64 {
        let quiet = self.samples.keys().filter_map(|(row, workers)| self.quiet(row, *workers));
        quiet.flatten().map(|sample| sample.lost).fold(0.0, f64::max)
    }

    /// Adds a line that a machine printed; `lost` says, for a number of workers, which share of its time went to other work.
    fn read(&mut self, line: &str, lost: impl FnOnce(usize) -> f64) {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["cores", count] => self.cores = count.parse().unwrap_or(self.cores),
            [row, workers, rate] => {
                if let (Ok(workers), Ok(rate)) = (workers.parse(), rate.parse()) {
                    let sample = Sample { rate, lost: lost(workers) };
                    self.samples.entry((row.to_owned(), workers)).or_default().push(sample);
                }
            }
            _ => {}
        }
    }
}

/// Measures, prints the table, and writes the page if it is asked for.
///
/// # Errors
/// There is no such row, a machine did not start or end, or the page cannot be written.
pub fn run(arguments: &Arguments) -> Result<()> {
    let only = &arguments.only;
    let keys = || rows::ROWS.iter().map(|row| row.key);
    crate::rows::check_names(only, keys())?;
    if Cpus::of_host() == Cpus::ONE {
        eprintln!("note: this host has one core, so two workers cannot reach more than one");
    }
    let directory = tempfile::tempdir().context("making a temporary directory")?;
    let [cores, reuse] = programs::compile_cores(directory.path())?;
    let ebb = Measured::ebb(artifacts::KERNEL.find(arguments.kernels.ebb.as_deref())?);
    let mut kernels = vec![(ebb, Rates::default(), reuse::Times::default())];
    if let Some(image) = &arguments.kernels.linux {
        kernels.push((Measured::linux(image, directory.path())?, Rates::default(), reuse::Times::default()));
    }
    let settings = format!("{} {}", arguments.rounds, arguments.time);
    let host = Load::start();
    for number in 1..=arguments.machines {
        for (kernel, rates, times) in &mut kernels {
            eprintln!("measuring {}, machine {number} of {}", kernel.name(), arguments.machines);
            let on = || format!("on {}", kernel.name());
            let mut waits = Waits::start();
            let mut each_line = |pid, line: &str| rates.read(line, |workers| waits.share(pid, workers));
            machine::measure_cores(kernel, &cores, &settings, only, directory.path(), &mut each_line)
                .with_context(on)?;
            if only.is_empty() {
                let mut each_line = |_, line: &str| times.read(line);
                machine::measure_cores(kernel, &reuse, reuse::TRIALS, only, directory.path(), &mut each_line)
                    .with_context(on)?;
            }
        }
    }
    let load = host.and_then(Load::others);
    let (_, ebb, ebb_times) = kernels.remove(0);
    let (linux, linux_times) = kernels.pop().map(|(_, rates, times)| (rates, times)).unzip();
    print!("{}", report::table(&ebb, linux.as_ref(), Style::Terminal));
    if only.is_empty() {
        print!("\n{}", reuse::table(&ebb_times, linux_times.as_ref(), Style::Terminal));
    }
    if ebb.cores < 2 {
        println!("This Ebb has one core, so what two workers reach was not measured.");
    }
    for (name, rates) in [("Ebb", Some(&ebb)), ("Linux", linux.as_ref())] {
        let ceiling = rates.and_then(|rates| rates.ratio(rows::CEILING)).filter(|ceiling| *ceiling < report::GOAL);
        if let Some(ceiling) = ceiling {
            println!("On {name} computation itself reached {ceiling:.2}: this host gave too little for a verdict.");
        }
    }
    if let Some(load) = load {
        let lost = linux.as_ref().map_or(0.0, Rates::lost).max(ebb.lost()) * 100.0;
        println!(
            "The host spent {:.0} % of its processors' time on other things, of which the measurements that count lost {lost:.0} % at most.",
            load * 100.0
        );
    }
    if arguments.write {
        let path = "docs/src/figures-cores.md";
        let soon = reuse::table(&ebb_times, linux_times.as_ref(), Style::Page);
        std::fs::write(path, report::page(&ebb, linux.as_ref(), &soon, load))
            .with_context(|| format!("writing {path}"))?;
        eprintln!("wrote {path}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_was_reached_where_others_left_it_alone_counts() {
        let mut rates = Rates::default();
        for (line, lost) in [
            ("cores\t2", 0.0),
            ("null\t1\t100.0", 0.0),
            ("null\t1\t80.0", 0.0),
            ("null\t1\t120.0", 0.0),
            ("null\t2\t90.0", 0.5),
            ("null\t2\t180.0", 0.01),
            ("null\t2\t100.0", 0.4),
            ("[    1.0]\tb", 0.0),
        ] {
            rates.read(line, |_| lost);
        }
        assert_eq!(rates.cores, 2);
        assert_eq!(rates.most("null", 1), Some(120.0));
        assert_eq!(rates.most("null", 2), Some(180.0));
        rates.read("null\t2\t182.0", |_| 0.02);
        assert_eq!(rates.ratio("null"), Some(182.0 / 120.0));
        assert_eq!(rates.lost(), 0.02);
        assert_eq!(rates.ratio("stat"), None);
    }
}
