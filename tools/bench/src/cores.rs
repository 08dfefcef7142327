//! `ebb-bench cores`: how far work gets on two cores, beside one, and how soon memory comes back while the other core is busy.
//!
//! The programs are `user/bench/cores.c` and `reuse.c`, which print a line for each measurement. Time is the host's, so what else the host does shows: machines
//! of both kernels take turns, every measurement is done many times, the median counts, and the first row, which computes and calls no
//! kernel, says what two cores of the emulator can reach at best.

mod report;
mod reuse;
mod rows;

use crate::machine::{self, Measured};
use crate::programs;
use crate::report::Style;
use anyhow::{Context, Result, bail};
use clap::Args;
use ebb_guest::{Cpus, artifacts};
use std::collections::HashMap;
use std::path::PathBuf;

/// What `ebb-bench cores` takes.
#[derive(Args)]
pub struct Arguments {
    /// The Ebb kernel [default: EBB_KERNEL, or the one that was built with this command].
    #[arg(long, value_name = "FILE")]
    kernel: Option<PathBuf>,

    /// The Linux kernel (a bzImage) to compare with; without one, Ebb is measured alone.
    #[arg(long, value_name = "FILE")]
    linux: Option<PathBuf>,

    /// How many machines of each kernel take turns.
    #[arg(long, value_name = "N", default_value_t = 3)]
    machines: u32,

    /// How often each machine measures everything.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,

    /// For how long one measurement works.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 500)]
    time: u32,

    /// Measure this row only; may be given several times.
    #[arg(long, value_name = "ROW", conflicts_with = "write")]
    only: Vec<String>,

    /// Write the table to docs/src/figures-cores.md, too.
    #[arg(long)]
    write: bool,
}

/// How many operations a second, by row and number of workers, in every measurement.
#[derive(Default)]
pub struct Rates {
    samples: HashMap<(String, usize), Vec<f64>>,
    /// How many cores the kernel has; 0 if it was not measured.
    cores: usize,
}

impl Rates {
    /// The median of what this many workers reached together.
    pub fn median(&self, row: &str, workers: usize) -> Option<f64> {
        let mut values = self.samples.get(&(row.to_owned(), workers))?.clone();
        values.sort_by(f64::total_cmp);
        // The lower one of two in the middle.
        values.get((values.len() - 1) / 2).copied()
    }

    /// How much more two workers reach than one.
    pub fn ratio(&self, row: &str) -> Option<f64> {
        let (one, two) = (self.median(row, 1)?, self.median(row, 2)?);
        (one > 0.0).then_some(two / one)
    }

    /// Adds what a machine printed.
    fn read(&mut self, console: &str) {
        for line in console.lines() {
            let fields: Vec<&str> = line.trim_end().split('\t').collect();
            match fields[..] {
                ["cores", count] => self.cores = count.parse().unwrap_or(self.cores),
                [row, workers, rate] => {
                    if let (Ok(workers), Ok(rate)) = (workers.parse(), rate.parse()) {
                        self.samples.entry((row.to_owned(), workers)).or_default().push(rate);
                    }
                }
                _ => {}
            }
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
    if let Some(unknown) = only.iter().find(|name| !keys().any(|key| key == **name)) {
        bail!("there is no row {unknown}; there are {}", keys().collect::<Vec<_>>().join(", "));
    }
    if Cpus::of_host() == Cpus::ONE {
        eprintln!("note: this host has one core, so two workers cannot reach more than one");
    }
    let directory = tempfile::tempdir().context("making a temporary directory")?;
    let [cores, reuse] = programs::compile_cores(directory.path())?;
    let ebb = Measured::ebb(artifacts::KERNEL.find(arguments.kernel.as_deref())?);
    let mut kernels = vec![(ebb, Rates::default(), reuse::Times::default())];
    if let Some(image) = &arguments.linux {
        kernels.push((Measured::linux(image, directory.path())?, Rates::default(), reuse::Times::default()));
    }
    let settings = format!("{} {}", arguments.rounds, arguments.time);
    let host = HostLoad::start();
    for number in 1..=arguments.machines {
        for (kernel, rates, times) in &mut kernels {
            eprintln!("measuring {}, machine {number} of {}", kernel.name(), arguments.machines);
            let measure = |program, settings| {
                machine::measure_cores(kernel, program, settings, only, directory.path())
                    .with_context(|| format!("on {}", kernel.name()))
            };
            rates.read(&measure(&cores, &settings)?);
            if only.is_empty() {
                times.read(&measure(&reuse, reuse::TRIALS)?);
            }
        }
    }
    let load = host.and_then(HostLoad::others);
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
        println!("The host spent {:.0} % of its processors' time on other things.", load * 100.0);
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

/// The time of the host's processors from some moment on, in clock ticks.
struct HostLoad {
    all: u64,
    busy: u64,
    machines: u64,
}

impl HostLoad {
    /// From now on; `None` where procfs does not say.
    fn start() -> Option<Self> {
        // proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let times: Vec<u64> =
            stat.lines().next()?.split_ascii_whitespace().skip(1).take(8).map_while(|time| time.parse().ok()).collect();
        let all: u64 = times.iter().sum();
        let idle = times.get(3)? + times.get(4)?;
        // The times of children that have ended, the machines' among them: fields 16 and 17, counted from the state, which is field 3.
        let own = std::fs::read_to_string("/proc/self/stat").ok()?;
        let fields: Vec<&str> = own.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
        let machines = fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?;
        Some(Self { all, busy: all - idle, machines })
    }

    /// The share that others than the machines had since then.
    fn others(self) -> Option<f64> {
        let now = Self::start()?;
        let others = (now.busy - self.busy).saturating_sub(now.machines - self.machines);
        (now.all > self.all).then(|| others as f64 / (now.all - self.all) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_all_machines_counts() {
        let mut rates = Rates::default();
        rates.read("cores\t2\nnull\t1\t100.0\nnull\t2\t150.0\r\n[ 1.0] a\tb\n");
        rates.read("null\t1\t80.0\nnull\t2\t190.0\nnull\t1\t120.0\nnull\t2\t180.0\nbench: done\n");
        assert_eq!(rates.cores, 2);
        assert_eq!(rates.median("null", 1), Some(100.0));
        assert_eq!(rates.ratio("null"), Some(1.8));
        assert_eq!(rates.ratio("stat"), None);
    }
}
