//! `ebb-bench network`: what sockets cost that talk to each other over the loopback device, on Ebb and on Linux.
//!
//! The program is `user/bench/network`, process 1 of a machine with one core. [`rows`] has what is measured; [`machines`] has machines measure; [`report`] makes the table, and the page
//! of the book.

mod machines;
mod report;
mod rows;

use crate::counting::Plugin;
use crate::machine::{Kernels, Measured};
use crate::report::Style;
use crate::{groups, profile, programs};
use anyhow::{Context, Result, bail};
use clap::Args;
use ebb_guest::artifacts;
use machines::Machines;
use std::path::PathBuf;

/// What `ebb-bench network` takes.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    kernels: Kernels,

    /// Measure this row only (its name in `tools/bench/src/network/rows.rs`); may be given several times.
    #[arg(long, value_name = "ROW", conflicts_with = "write")]
    only: Vec<String>,

    /// Write to this directory, for each row, in which functions of Ebb the instructions were.
    #[arg(long, value_name = "DIRECTORY")]
    profile: Option<PathBuf>,

    /// Write the table to docs/src/figures-network.md, too.
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
    if let Some(unknown) = only.iter().find(|name| !keys().any(|key| key == **name)) {
        bail!("there is no row {unknown}; there are {}", keys().collect::<Vec<_>>().join(", "));
    }
    let wanted = keys().filter(|key| only.is_empty() || only.iter().any(|name| name == key)).count();
    let directory = tempfile::tempdir().context("making a temporary directory")?;
    let program = programs::compile_network(directory.path())?;
    let plugin = Plugin::compile(directory.path())?;
    let ebb = artifacts::KERNEL.find(arguments.kernels.ebb.as_deref())?;
    let progress = groups::machines::progress(wanted * (1 + usize::from(arguments.kernels.linux.is_some())));
    let machines =
        Machines { program: &program, plugin: &plugin, only, directory: directory.path(), progress: &progress };
    let profiles = arguments.profile.as_deref();
    let (figures, counted) = machines.measure(&Measured::ebb(ebb.clone()), profiles).context("on Ebb")?;
    if let Some(profiles) = profiles {
        profile::write(&ebb, profiles, &counted)?;
    }
    let linux = match &arguments.kernels.linux {
        Some(image) => {
            let kernel = Measured::linux(image, directory.path())?;
            Some(machines.measure(&kernel, None).context("on Linux")?.0)
        }
        None => None,
    };
    progress.finish_and_clear();
    print!("{}", report::table(&figures, linux.as_ref(), Style::Terminal));
    if let Some(directory) = profiles {
        println!("The functions of each row are in {}.", directory.display());
    }
    if arguments.write {
        let path = "docs/src/figures-network.md";
        std::fs::write(path, report::page(&figures, linux.as_ref())).with_context(|| format!("writing {path}"))?;
        eprintln!("wrote {path}");
    }
    Ok(())
}
