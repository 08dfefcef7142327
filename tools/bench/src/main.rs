//! The command `ebb-bench`: measures Ebb against Linux.
//!
//! [`programs`] compiles the static programs of `user/bench`; [`machine`] boots each of them as process 1, on Ebb and
//! on Linux, under an emulator that counts instructions; [`rows`] knows what each figure means and what is already known
//! about it; [`report`] prints the table, and writes it into the book on request. [`cores`] measures what two cores reach, [`disks`] what
//! programs cost whose files are on a disk, [`network`] what sockets cost, [`groups`] what it takes to end a workload with very many objects, and [`study`] draws it. [`counting`] has QEMU
//! count instructions between two marks, and [`profile`] says in which functions they were.

#![forbid(unsafe_code)]

mod cores;
mod counting;
mod disks;
mod groups;
mod machine;
mod network;
mod profile;
mod programs;
mod report;
mod rows;
mod study;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use ebb_guest::artifacts;
use machine::{Kernels, Measured, measure};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measures Ebb against Linux, in guest instructions.
#[derive(Parser)]
#[command(version, max_term_width = 100, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    kernels: Kernels,

    /// An Ebb kernel that was built with `--features hold-strong`: shows beside Ebb what strong references cost.
    #[arg(long, value_name = "FILE")]
    strong: Option<PathBuf>,

    /// An Ebb kernel that was built with `--features stretch`: shows how long it keeps interrupts off where there are many of something.
    #[arg(long, value_name = "FILE")]
    stretch: Option<PathBuf>,

    /// Measure Linux only.
    #[arg(long, requires = "linux")]
    linux_only: bool,

    /// Measure this row only (its name in `tools/bench/src/rows.rs`); may be given several times.
    #[arg(long, value_name = "ROW", conflicts_with = "write")]
    only: Vec<String>,

    /// Measure Ebb's calls and faults outside of a control group, and in one with all controllers.
    #[arg(long, conflicts_with_all = ["linux", "strong", "stretch", "write"])]
    in_group: bool,

    /// Write the tables to docs/src/figures.md, too.
    #[arg(long)]
    write: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Measures how far work gets on two cores, beside one.
    Cores(cores::Arguments),
    /// Measures what programs cost whose files are on a disk.
    Disks(disks::Arguments),
    /// Measures what it takes to end a workload with very many objects, and what it costs to be in a group.
    Groups(groups::Arguments),
    /// Measures what sockets cost that talk to each other over the loopback device.
    Network(network::Arguments),
    /// Measures what a published study shows of how processes end, and writes tables and plots.
    Study(study::Arguments),
}

/// Figures by row name.
pub type Figures = HashMap<String, f64>;

fn main() -> ExitCode {
    match run(&CommandLine::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ebb-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &CommandLine) -> Result<()> {
    match &arguments.command {
        Some(Command::Cores(arguments)) => return cores::run(arguments),
        Some(Command::Disks(arguments)) => return disks::run(arguments),
        Some(Command::Groups(arguments)) => return groups::run(arguments),
        Some(Command::Network(arguments)) => return network::run(arguments),
        Some(Command::Study(arguments)) => return study::run(arguments),
        None => {}
    }
    let only = &arguments.only;
    rows::check_names(only, rows::keys())?;
    let directory = tempfile::tempdir().context("making a temporary directory")?;
    let programs = programs::compile(directory.path())?;
    if arguments.in_group {
        return in_group(arguments, &programs, directory.path());
    }
    let linux = match &arguments.kernels.linux {
        Some(image) => {
            eprintln!("measuring Linux ({})", image.display());
            Some(
                measure(&Measured::linux(image, directory.path())?, &programs, only, directory.path())
                    .context("on Linux")?,
            )
        }
        None => None,
    };
    let ebb = if arguments.linux_only {
        None
    } else {
        let kernel = artifacts::KERNEL.find(arguments.kernels.ebb.as_deref())?;
        eprintln!("measuring Ebb ({})", kernel.display());
        Some(measure(&Measured::ebb(kernel), &programs, only, directory.path()).context("on Ebb")?)
    };
    let strong = match &arguments.strong {
        Some(kernel) => {
            eprintln!("measuring Ebb with strong references ({})", kernel.display());
            Some(measure(&Measured::ebb(kernel.clone()), &programs, only, directory.path()).context("on Ebb")?)
        }
        None => None,
    };
    let stretch = match &arguments.stretch {
        Some(kernel) => {
            eprintln!("measuring how long Ebb keeps interrupts off ({})", kernel.display());
            Some(measure(&Measured::ebb(kernel.clone()), &programs, only, directory.path()).context("on Ebb")?)
        }
        None => None,
    };
    print!("{}", report::table(ebb.as_ref(), linux.as_ref(), report::Style::Terminal));
    print!("\n{}", report::many(ebb.as_ref(), linux.as_ref(), report::Style::Terminal));
    print!("\n{}", report::watched(ebb.as_ref(), linux.as_ref(), report::Style::Terminal));
    let references = ebb.as_ref().zip(strong.as_ref());
    if let Some((ebb, strong)) = references {
        print!("\n{}", report::references(ebb, strong, report::Style::Terminal));
    }
    if let Some(stretch) = &stretch {
        print!("\n{}", report::stretches(stretch, report::Style::Terminal));
    }
    if arguments.write {
        let path = "docs/src/figures.md";
        std::fs::write(path, report::page(ebb.as_ref(), linux.as_ref(), references, stretch.as_ref()))
            .with_context(|| format!("writing {path}"))?;
        eprintln!("wrote {path}");
    }
    Ok(())
}

/// Measures the program `bench` outside of a control group and in one, and prints both.
fn in_group(arguments: &CommandLine, programs: &programs::Programs, directory: &Path) -> Result<()> {
    let kernel = artifacts::KERNEL.find(arguments.kernels.ebb.as_deref())?;
    let of_bench = rows::ROWS.iter().map(|row| row.key).filter(|key| *key != rows::BOOT);
    let is_wanted = |key: &&str| arguments.only.is_empty() || arguments.only.iter().any(|name| name == key);
    let only: Vec<String> = of_bench.filter(is_wanted).map(str::to_owned).collect();
    let on = |kernel: Measured| measure(&kernel, programs, &only, directory).context("on Ebb");
    let (outside, inside) = (on(Measured::ebb(kernel.clone()))?, on(Measured::ebb(kernel).in_group())?);
    print!("{}", report::in_group(&outside, &inside));
    Ok(())
}
