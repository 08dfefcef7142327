//! `ebb-bench network`: what sockets cost that talk to each other over the loopback device, on Ebb and on Linux.
//!
//! The program is `user/bench/network`, process 1 of a machine with one core; servers of Debian's are on a disk of another. [`rows`] has what is measured; [`machines`] has machines measure; [`report`] makes the table, and the page
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
use machines::{Figures, Machines};
use rows::Talk;
use std::path::PathBuf;

/// How one gets a disk with the servers.
const MAKE_SERVERS: &str =
    "`ebb image debian --include nginx-light,redis-server,redis-tools,apache2-utils` makes one, and prints its path";

/// What `ebb-bench network` takes.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    kernels: Kernels,

    /// Measure this row only (its name in `tools/bench/src/network/rows.rs`); may be given several times.
    #[arg(long, value_name = "ROW", conflicts_with = "write")]
    only: Vec<String>,

    /// Measure nginx and redis, too, which are in this image of Debian: `ebb image debian --include nginx-light,redis-server,redis-tools,apache2-utils` makes one.
    #[arg(long, value_name = "IMAGE")]
    servers: Option<PathBuf>,

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
    crate::rows::check_names(only, rows::ROWS.iter().map(|row| row.key))?;
    let servers = arguments.servers.as_deref();
    let asked = |row: &&rows::Row| {
        if only.is_empty() {
            servers.is_some() || row.talk == Talk::Own
        } else {
            only.iter().any(|name| name == row.key)
        }
    };
    let wanted: Vec<_> = rows::ROWS.iter().filter(asked).collect();
    let of = |talk| wanted.iter().filter(|row| row.talk == talk).map(|row| row.key.to_owned()).collect::<Vec<_>>();
    if servers.is_none()
        && let [first, ..] = &of(Talk::Servers)[..]
    {
        bail!("{first} needs --servers with a disk: {MAKE_SERVERS}");
    }
    let parts = [(of(Talk::Own), None), (of(Talk::Servers), servers)];
    let directory = tempfile::tempdir().context("making a temporary directory")?;
    let program = programs::compile_network(directory.path())?;
    let plugin = Plugin::compile(directory.path())?;
    let ebb = artifacts::KERNEL.find(arguments.kernels.ebb.as_deref())?;
    let mut kernels = vec![(Measured::ebb(ebb.clone()), None, Figures::default())];
    if let Some(linux) = &arguments.kernels.linux {
        kernels.push((Measured::linux(linux, directory.path())?, Some(linux.as_path()), Figures::default()));
    }
    let progress = groups::machines::progress(wanted.len() * kernels.len());
    let machines = Machines { program: &program, plugin: &plugin, directory: directory.path(), progress: &progress };
    for (kernel, modules, figures) in &mut kernels {
        let profiles = arguments.profile.as_deref().filter(|_| modules.is_none());
        for (rows, disk) in parts.iter().filter(|(rows, _)| !rows.is_empty()) {
            let measured = machines.measure(kernel, *modules, rows, *disk, profiles);
            let (found, counted) = measured.with_context(|| format!("on {}", kernel.name()))?;
            figures.extend(found);
            if let Some(profiles) = profiles {
                profile::write(&ebb, profiles, &counted)?;
            }
        }
    }
    progress.finish_and_clear();
    let (_, _, ebb) = kernels.remove(0);
    let linux = kernels.pop().map(|(_, _, figures)| figures);
    print!("{}", report::table(&ebb, linux.as_ref(), Style::Terminal));
    if let Some(directory) = &arguments.profile {
        println!("The functions of each row are in {}.", directory.display());
    }
    if arguments.write {
        let path = "docs/src/figures-network.md";
        std::fs::write(path, report::page(&ebb, linux.as_ref())).with_context(|| format!("writing {path}"))?;
        eprintln!("wrote {path}");
    }
    Ok(())
}
