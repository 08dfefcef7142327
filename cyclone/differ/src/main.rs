//! `make cyclone-differ`: random programs through `cyc` with several C compilers and levels of optimisation.
//!
//! Three sorts of programs: [`agree`] tries all of the language, and all ways to compile a program must do the same; [`bounds`] tries
//! what proofs leave of checks, and a program must do what an interpreter says; [`owners`] tries what the rules of ownership accept, and the address
//! sanitizer must have nothing to say. A difference is an error of the compiler or of its run-time library.

#![forbid(unsafe_code)]

mod agree;
mod bounds;
mod generate;
mod owners;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// Finds random Cyclone programs that do not do what they must.
#[derive(Parser)]
struct Options {
    /// The compiler `cyc`.
    #[arg(long, default_value = "cyc")]
    cyc: PathBuf,
    /// The sort of programs.
    #[arg(long, default_value = "all")]
    mode: Mode,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many programs that must do the same however they are compiled.
    #[arg(long, default_value_t = 100)]
    count: u64,
    /// How many functions over pointers and indices.
    #[arg(long, default_value_t = 2000)]
    functions: u64,
    /// How many functions over owners.
    #[arg(long, default_value_t = 4000)]
    owners: u64,
    /// After so many functions that go wrong no more are tried.
    #[arg(long, default_value_t = 10)]
    at_most: usize,
    /// Only print the program of `--seed`.
    #[arg(long)]
    print: bool,
    /// Another compiler to compare with, called as `FILE -o OUT` (the original, where you have it).
    #[arg(long)]
    original: Option<PathBuf>,
    /// Where programs that made a difference are kept.
    #[arg(long, default_value = "target/differ")]
    keep: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// All.
    All,
    /// Programs that must do the same however they are compiled.
    Agree,
    /// Functions whose checks must be there.
    Bounds,
    /// Functions over owners that must be safe if they are accepted.
    Owners,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ebb-cyclone-differ: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    if options.print {
        print!(
            "{}",
            match options.mode {
                Mode::Bounds => bounds::program(options.seed, options.functions),
                Mode::Owners => owners::program(options.seed),
                _ => generate::program(options.seed),
            }
        );
        return Ok(());
    }
    let mut different = 0;
    if matches!(options.mode, Mode::All | Mode::Agree) {
        let progress = progress(options.count, "programs")?;
        different += agree::run(options, &progress)?;
    }
    if matches!(options.mode, Mode::All | Mode::Bounds) {
        let progress = progress(options.functions, "functions")?;
        let directory = tempfile::tempdir()?;
        let numbers = options.seed..options.seed + options.functions;
        let report = bounds::run(&options.cyc, directory.path(), is_there, numbers, options.at_most, &progress)?;
        progress.finish_and_clear();
        let bounds::Report { functions, calls, rejected, .. } = report;
        println!("{functions} functions, {calls} calls ({rejected} rejected): {} wrong", report.different);
        different += report.different;
    }
    if matches!(options.mode, Mode::All | Mode::Owners) {
        let progress = progress(options.owners, "functions over owners")?;
        let directory = tempfile::tempdir()?;
        let numbers = options.seed..options.seed + options.owners;
        let report = owners::run(&options.cyc, directory.path(), numbers, options.at_most, &progress)?;
        progress.finish_and_clear();
        let owners::Report { functions, accepted, wrong } = report;
        println!("{functions} functions over owners ({accepted} accepted): {wrong} wrong");
        different += wrong;
    }
    if different > 0 {
        bail!("{different} differences");
    }
    Ok(())
}

fn progress(count: u64, what: &str) -> Result<ProgressBar> {
    let template = format!("{{pos}}/{{len}} {what} {{wide_bar}} {{eta}}");
    Ok(ProgressBar::new(count).with_style(ProgressStyle::with_template(&template)?))
}

fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
