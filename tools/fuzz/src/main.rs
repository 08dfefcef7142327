//! The command `ebb-fuzz`: hostile input for the Ebb kernel, from a seed. Whatever it gets, the kernel must not panic.
//!
//! - `calls`: random system calls (`user/fuzz/fuzz.c`) for some seconds of guest time;
//! - `programs`: changed ELF files (`user/fuzz/programs.c`);
//! - `archives`: changed initial file systems ([`archives`]), each in a machine of its own;
//! - `packets`: frames with wrong numbers for the protocols of the network ([`packets`]), in this process;
//! - `stress`: all kinds of work on all cores against each other (`user/stress`), whose outcome must be right;
//! - `exhaust`: programs that take until there is no more (`user/fuzz/exhaust.c`), in machines of several sizes;
//! - `link`: bytes to a guest and back, over a link that damages frames ([`link`]), all of which must come back;
//! - `kills`: random workloads in control groups, which are killed (`user/kills`): no kill may take longer than was charged for it;
//! - without a subcommand: some of each.

#![forbid(unsafe_code)]

mod archives;
mod link;
mod packets;
mod random;
mod runs;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use ebb_guest::{Cpus, Kernel, artifacts};
use runs::{Kills, Machines, Time};
use std::path::PathBuf;
use std::process::ExitCode;

/// Hostile input for the Ebb kernel.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    what: Option<What>,

    /// The Ebb kernel [default: EBB_KERNEL, or the one that was built with this command].
    #[arg(long, global = true, value_name = "FILE")]
    kernel: Option<PathBuf>,

    /// The same seed makes the same input.
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,

    /// Cores of the machines; one always where instructions are counted.
    #[arg(long, global = true, value_name = "N", default_value_t = Cpus::TESTED)]
    cpus: Cpus,

    /// Measure for how long the kernel, which was built with `--features stretch`, keeps interrupts off: at most half a million guest
    /// instructions.
    #[arg(long, global = true)]
    stretch: bool,
}

#[derive(Subcommand, Clone)]
enum What {
    /// Random system calls.
    Calls {
        /// For so many seconds of guest time.
        #[arg(default_value_t = 600)]
        seconds: u32,
    },
    /// Changed ELF files.
    Programs {
        /// How many.
        #[arg(default_value_t = 5000)]
        count: u32,
    },
    /// Programs that take until there is no more, in a machine with so much memory.
    Exhaust {
        /// In MiB.
        #[arg(default_value_t = 64)]
        memory: u32,
        /// Which; all if none is named.
        trials: Vec<String>,
    },
    /// All kinds of work on all cores against each other, whose outcome must be right.
    Stress {
        /// For so many seconds to warm up, and as many again; between their ends no memory may be lost.
        #[arg(default_value_t = 300)]
        seconds: u32,
        /// Which families of work; all if none is named.
        families: Vec<String>,
    },
    /// Random workloads in control groups, which are killed at random moments. With --cpus 1 a guest's time is its instructions, and a kill that took longer than was
    /// charged for it has failed; with more it is only told.
    Kills(Kills),
    /// Changed frames for the protocols of the network; needs no kernel.
    Packets {
        /// How many.
        #[arg(default_value_t = 2_000_000)]
        count: u32,
    },
    /// Bytes to a guest and back over a link that loses, doubles, delays, reorders and changes frames; not among those that run without a subcommand.
    Link(link::Link),
    /// Changed initial file systems.
    Archives {
        /// How many.
        #[arg(default_value_t = 200)]
        count: u32,
    },
}

/// What runs when nothing is asked for: about two minutes.
const SAMPLE: [What; 6] = [
    What::Calls { seconds: 60 },
    What::Programs { count: 1500 },
    What::Archives { count: 40 },
    What::Packets { count: 200_000 },
    What::Exhaust { memory: 64, trials: Vec::new() },
    What::Stress { seconds: 10, families: Vec::new() },
];

fn main() -> ExitCode {
    match run(CommandLine::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failures) => {
            println!("{failures} failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("ebb-fuzz: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// How many inputs the kernel did not survive.
fn run(arguments: CommandLine) -> Result<u32> {
    if let Some(What::Packets { count }) = arguments.what {
        return Ok(packets::feed_all(arguments.seed, count));
    }
    let kernel = Kernel::Ebb(artifacts::KERNEL.find(arguments.kernel.as_deref())?);
    let directory = tempfile::tempdir().context("making a temporary directory")?;
    let (time, cpus) = if arguments.stretch { (Time::Stretched, Cpus::ONE) } else { (Time::Real, arguments.cpus) };
    let machines = Machines { kernel: &kernel, cpus, time, directory: directory.path() };
    let mut failures = 0;
    for what in arguments.what.map_or(SAMPLE.to_vec(), |what| vec![what]) {
        failures += match what {
            What::Calls { seconds } => runs::calls(&machines, arguments.seed, seconds)?,
            What::Programs { count } => runs::programs(&machines, arguments.seed, count)?,
            What::Exhaust { memory, trials } => runs::exhaust(&machines, memory, &trials)?,
            What::Stress { seconds, families } => runs::stress(&machines, arguments.seed, seconds, &families)?,
            What::Kills(kills) => runs::kills(&machines, arguments.seed, &kills)?,
            What::Packets { count } => packets::feed_all(arguments.seed, count),
            What::Link(link) => link::run(&kernel, cpus, arguments.seed, &link, directory.path())?,
            What::Archives { count } => archives::boot_all(&machines, arguments.seed, count)?,
        };
    }
    Ok(failures)
}
