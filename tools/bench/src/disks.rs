//! `ebb-bench disks`: what programs cost whose files are on a disk, on Ebb and on Linux.
//!
//! The program is `user/bench/disks`, process 1 of a machine with a disk. [`rows`] has what is measured; [`image`] makes the disk, of which every machine gets a
//! copy, and [`tree`] what is on it; [`machines`] has machines measure; [`profile`] says where in Ebb the instructions were; [`report`] makes the table, and the page of the book.

mod image;
mod machines;
mod report;
mod rows;
mod tree;

use crate::cores::host::Load;
use crate::counting::Plugin;
use crate::machine::{Kernels, Measured};
use crate::report::Style;
use crate::{groups, profile, programs};
use anyhow::{Context, Result};
use clap::Args;
use ebb_guest::artifacts;
use machines::{Figures, Machines};
use std::path::PathBuf;

/// What `ebb-bench disks` takes.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    kernels: Kernels,

    /// Measure this row only (its name in `tools/bench/src/disks/rows.rs`); may be given several times.
    #[arg(long, value_name = "ROW", conflicts_with = "write")]
    only: Vec<String>,

    /// Count instructions only, and do not measure time.
    #[arg(long, conflicts_with = "time_only")]
    count_only: bool,

    /// Measure time only, which takes no plugin of QEMU's.
    #[arg(long, conflicts_with = "profile")]
    time_only: bool,

    /// How many machines of each kernel measure time; the fastest counts.
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: u32,

    /// Write to this directory, for each row, in which functions of Ebb the instructions were.
    #[arg(long, value_name = "DIRECTORY")]
    profile: Option<PathBuf>,

    /// Write the table to docs/src/figures-disks.md, too.
    #[arg(long)]
    write: bool,
}

/// Measures, prints the table, and writes the page if it is asked for.
///
/// # Errors
/// There is no such row, something that is needed is not installed, a machine did not start or end, or the page cannot be written.
pub fn run(arguments: &Arguments) -> Result<()> {
    let only = &arguments.only;
    let keys = || rows::ROWS.iter().map(|row| row.key);
    crate::rows::check_names(only, keys())?;
    let wanted = keys().filter(|key| only.is_empty() || only.iter().any(|name| name == key)).count();
    let directory = tempfile::tempdir().context("making a temporary directory")?;
    let program = programs::compile_disks(directory.path())?;
    let ebb = artifacts::KERNEL.find(arguments.kernels.ebb.as_deref())?;
    let mut kernels = vec![(Measured::ebb(ebb.clone()), None, Figures::default())];
    if let Some(linux) = &arguments.kernels.linux {
        kernels.push((Measured::linux(linux, directory.path())?, Some(linux.as_path()), Figures::default()));
    }
    let counting = u32::from(!arguments.time_only);
    let timing = if arguments.count_only { 0 } else { arguments.runs };
    let progress = groups::machines::progress(wanted * kernels.len() * (counting + timing) as usize);
    progress.set_message("making the disk");
    let image = image::make(directory.path())?;
    let machines = Machines { program, image, only, directory: directory.path(), progress: &progress };
    if counting > 0 {
        let plugin = Plugin::compile(directory.path())?;
        for (kernel, modules, figures) in &mut kernels {
            let profiles = arguments.profile.as_deref().filter(|_| modules.is_none());
            let count = || machines.count(kernel, *modules, &plugin, profiles, figures);
            let windows = { count }().with_context(|| format!("on {}", kernel.name()))?;
            if let Some(profiles) = profiles {
                profile::write(&ebb, profiles, &windows)?;
            }
        }
    }
    let host = Load::start().filter(|_| timing > 0);
    for _ in 0..timing {
        for (kernel, modules, figures) in &mut kernels {
            machines.time(kernel, *modules, figures).with_context(|| format!("on {}", kernel.name()))?;
        }
    }
    progress.finish_and_clear();
    let load = host.and_then(Load::others);
    let (_, _, ebb) = kernels.remove(0);
    let linux = kernels.pop().map(|(_, _, figures)| figures);
    print!("{}", report::table(&ebb, linux.as_ref(), Style::Terminal));
    if let Some(directory) = &arguments.profile {
        println!("The functions of each row are in {}.", directory.display());
    }
    if arguments.write {
        let path = "docs/src/figures-disks.md";
        std::fs::write(path, report::page(&ebb, linux.as_ref(), load)).with_context(|| format!("writing {path}"))?;
        eprintln!("wrote {path}");
    }
    Ok(())
}
