//! The command `ebb-checks`: runs the same programs on Linux and on Ebb and compares what they do.
//!
//! Linux is the reference, so nobody has to write down what is right, and a wrong idea of it shows. A subcommand per kind
//! of program: [`programs`] (the checks in `user/checks`), [`applets`] (one command per BusyBox applet) and [`script`]
//! (a long shell script); [`mutations`] runs the first of them under other conditions, and [`stretch`] measures Ebb
//! meanwhile; [`workloads`] are programs of Debian's that use all cores, [`debian`] a whole Debian on a disk, [`ltp`] the Linux Test Project's tests, [`xfstests`] those of file systems. Each of the others makes a list of [`task::Task`]s; [`session`] runs them on both [`system`]s and reports.
//! The last line is `N passed, N failed`; the exit code is 0 only if none failed.

#![forbid(unsafe_code)]

mod applets;
mod book;
mod compare;
mod compile;
mod debian;
mod locks;
mod ltp;
mod mutations;
mod programs;
mod ran;
mod script;
mod session;
mod stretch;
mod suites;
mod system;
mod task;
mod workloads;
mod xfstests;

use clap::{Args, Parser, Subcommand};
use ebb_guest::Cpus;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the same programs on Linux and on Ebb and compares what they do.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    systems: SystemArguments,
}

/// Which two systems to compare.
#[derive(Args, Clone)]
pub struct SystemArguments {
    /// The Ebb kernel [default: EBB_KERNEL, or the one that was built with this command].
    #[arg(long, global = true, value_name = "FILE")]
    kernel: Option<PathBuf>,

    /// The reference: this Linux kernel (a bzImage) in a machine of the same kind, instead of this host's.
    #[arg(long, global = true, value_name = "FILE")]
    reference: Option<PathBuf>,

    /// Run on the reference only, and show what the programs print.
    #[arg(long, global = true)]
    reference_only: bool,

    /// Ebb's working directories are on a disk with a file system of this type: ext2, ext3 or ext4.
    #[arg(long, global = true, value_name = "TYPE")]
    on_disk: Option<String>,

    /// Show Ebb's log on standard error.
    #[arg(long, global = true)]
    kernel_log: bool,

    /// Cores of the machines; one always where instructions are counted.
    #[arg(long, global = true, value_name = "N", default_value_t = Cpus::TESTED)]
    cpus: Cpus,

    /// Machines with Ebb, which take tasks in turn.
    #[arg(long, global = true, value_name = "N", default_value_t = suites::build::parallel())]
    machines: usize,
}

#[derive(Subcommand)]
enum Command {
    /// The behaviour checks in user/checks.
    Programs {
        /// Only those whose names (subsystem/program) contain one of these.
        filters: Vec<String>,
    },
    /// A command for every BusyBox applet; the results are kept in docs/src/busybox.md.
    Applets {
        /// Write the table instead of checking that it is up to date.
        #[arg(long)]
        write: bool,
        /// Only these applets; the table is left alone.
        applets: Vec<String>,
    },
    /// The shell script user/busybox/script.sh.
    Script,
    /// Programs of Debian's that use threads and processes for real: the same output on both, and the time of both.
    Workloads {
        /// Only those whose names contain one of these.
        filters: Vec<String>,
    },
    /// Debian's programs in a root file system on a disk: the same output on both, and the time of both. Wants a reference in a machine (--reference).
    Debian {
        /// Write the table in the book.
        #[arg(long)]
        write: bool,
        /// Make the image anew, though it is in the cache.
        #[arg(long)]
        refresh: bool,
        /// Only the rows with these names.
        rows: Vec<String>,
    },
    /// The Linux Test Project's tests of system calls, which a checkout has: counts, and why tests do not pass. With a reference in a machine (--reference) the tests run there as well.
    Ltp(suites::SuiteArguments),
    /// xfstests' generic tests on ext4, in a Debian on a disk: counts, why tests do not run and why they do not pass. With a reference in a machine (--reference) the tests run there as well.
    Xfstests(suites::SuiteArguments),
    /// The behaviour checks on an Ebb that measures for how long it keeps interrupts off (`--features stretch`): at most half a million
    /// guest instructions.
    Stretch {
        /// Only the checks whose names contain one of these.
        filters: Vec<String>,
    },
    /// The behaviour checks on an Ebb that checks in which order locks are taken (`--features check-locks`): what is held at once must agree with the
    /// ranks in docs/src/locks.md.
    Locks {
        /// Counts guest instructions, on one core, and prints for how long locks are held.
        #[arg(long)]
        times: bool,
        /// Only the checks whose names contain one of these.
        filters: Vec<String>,
    },
    /// The behaviour checks again, each time on a machine that is busy, or from a process in an unusual state: no verdict may
    /// depend on it.
    Mutations {
        /// Only the checks whose names contain one of these.
        filters: Vec<String>,
    },
}

fn main() -> ExitCode {
    let CommandLine { command, systems } = CommandLine::parse();
    let tally = match command {
        Command::Programs { filters } => programs::run(&systems, &filters),
        Command::Applets { write, applets } => applets::run(&systems, write, &applets),
        Command::Script => script::run(&systems),
        Command::Workloads { filters } => workloads::run(&systems, &filters),
        Command::Debian { write, refresh, rows } => debian::run(&systems, write, refresh, &rows),
        Command::Ltp(arguments) => ltp::run(&systems, &arguments),
        Command::Xfstests(arguments) => xfstests::run(&systems, &arguments),
        Command::Stretch { filters } => stretch::run(&systems, &filters),
        Command::Locks { times, filters } => locks::run(&systems, &filters, times),
        Command::Mutations { filters } => mutations::run(&systems, &filters),
    };
    match tally {
        Ok(tally) => {
            println!("{} passed, {} failed", tally.passed, tally.failed);
            if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("ebb-checks: {error:#}");
            ExitCode::from(2)
        }
    }
}
