//! `ebb-forwarder`: builds the packet forwarder of `cyclone/` in several ways, sends packets of several sizes through it over
//! loopback sockets, and prints for each the throughput, the forwarder's processor time and its memory, or how late packets are.
//!
//! The builds differ in who frees what: a garbage collector, or the program (stream buffers have one owner, data is reference
//! counted).
#![forbid(unsafe_code)]

mod build;
mod cores;
mod measured;
mod plot;
mod run;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use build::Build;
use cores::Cores;
use measured::{Load, Measured};

/// Measures a packet forwarder written in Cyclone, with and without a garbage collector.
#[derive(Parser)]
#[command(version, max_term_width = 100, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    role: Option<Role>,

    /// The packets' sizes in bytes, 8 to 65536; with --rate at least 12.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768])]
    sizes: Vec<u32>,

    /// How many packets of each size.
    #[arg(long, default_value_t = 100_000)]
    packets: u32,

    /// To how many receivers each packet goes.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    receivers: u8,

    /// How many routes the forwarder has; with 0 it looks up none.
    #[arg(long, value_delimiter = ',', default_values_t = [0])]
    routes: Vec<u32>,

    /// How many bytes the forwarder reads and sends with one system call; at least one packet.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [14_336])]
    batch: Vec<u32>,

    /// How many packets are sent each second; with 0 as many as go. With a rate, tells how late they are received.
    #[arg(long, default_value_t = 0)]
    rate: u32,

    /// How often each is measured; the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: u32,

    /// Write the plots there, as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Role {
    /// Be the Cyclone compiler. For `ebb-forwarder` itself.
    #[command(hide = true)]
    Cyc {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let mut arguments = CommandLine::parse();
    if let Some(Role::Cyc { arguments }) = arguments.role.take() {
        return ebb_cyclone::driver::main(arguments);
    }
    match in_scratch_directory(|directory| measure_all(&arguments, directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ebb-forwarder: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn in_scratch_directory(work: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let directory = std::env::temp_dir().join(format!("ebb-forwarder-{}", std::process::id()));
    std::fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let outcome = work(&directory);
    std::fs::remove_dir_all(&directory).with_context(|| format!("removing {}", directory.display()))?;
    outcome
}

fn measure_all(arguments: &CommandLine, directory: &Path) -> Result<()> {
    let builds = build::all(directory)?;
    let cores = Cores::divide();
    print!(
        "{:>8}  {:24} {:>9} {:>12} {:>10} {:>10} {:>10} {:>12} {:>10} {:>8}",
        "bytes", "build", "MB/s", "packets/s", "us/packet", "system's", "KiB", "above idle", "routes", "batch"
    );
    println!("{}", if arguments.rate > 0 { "   half late us     99 % us     all us" } else { "" });
    let mut rows = Vec::new();
    for load in arguments.loads() {
        let row = measure(&builds, load, arguments.rounds, &cores)?;
        for (build, seen) in builds.iter().zip(&row) {
            print(build, seen);
        }
        rows.push(row);
    }
    if let Some(file) = &arguments.plot {
        plot::draw(file, &builds, &rows).with_context(|| format!("drawing {}", file.display()))?;
        println!("wrote {}", file.display());
    }
    Ok(())
}

impl CommandLine {
    /// Each size with each batch and each number of routes.
    fn loads(&self) -> Vec<Load> {
        let mut loads = Vec::new();
        for &bytes in &self.sizes {
            for &batch in &self.batch {
                for &routes in &self.routes {
                    let Self { packets, rate, receivers, .. } = *self;
                    loads.push(Load { packets, bytes, rate, receivers, routes, batch });
                }
            }
        }
        loads
    }
}

fn print(build: &Build, seen: &Measured) {
    print!(
        "{:>8}  {:24} {:>9.1} {:>12.0} {:>10.2} {:>10.2} {:>10} {:>12} {:>10} {:>8}",
        seen.load.bytes,
        build.name,
        seen.megabytes_per_second(),
        seen.packets_per_second(),
        seen.processor_micros_per_packet(),
        seen.system_micros_per_packet(),
        seen.memory_kib,
        seen.above_idle_kib(),
        seen.load.routes,
        seen.load.batch
    );
    match seen.late {
        Some(late) => println!(" {:>14} {:>11} {:>10}", late.half, late.most, late.all),
        None => println!(),
    }
}

/// Several rounds of each build as one result. The builds take turns, so that a disturbance hits all of them.
fn measure(builds: &[Build], load: Load, rounds: u32, cores: &Cores) -> Result<Vec<Measured>> {
    let mut runs: Vec<Vec<Measured>> = vec![Vec::new(); builds.len()];
    for _ in 0..rounds.max(1) {
        for (build, runs) in builds.iter().zip(&mut runs) {
            let seen = run::forward(build, load, cores)
                .with_context(|| format!("{}: packets of {} bytes", build.name, load.bytes))?;
            runs.push(seen);
        }
    }
    Ok(runs.iter().filter_map(|runs| Measured::median(runs)).collect())
}
