//! `ebb-corpus`: our Cyclone compiler on the programs of the original compiler's public repository.
//!
//! Five stages: what parses, what is accepted, where errors are found, what behaves as the original's binaries did, and what its own
//! tools and compiler make when our compiler has built them. Nothing of
//! that repository is in this one: the tables in `cyclone/corpus` name its files, and say what was recorded from them. What is known to work
//! stands in `cyclone/corpus/passing`; a run fails if something of that is lost.
#![forbid(unsafe_code)]

mod build;
mod builds;
mod check;
mod errors;
mod execute;
mod parse;
mod passing;
mod process;
mod programs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use execute::Library;
use passing::{Passing, Results};
use process::Limits;

/// Compares our Cyclone compiler with the original one on the programs of its public repository.
#[derive(Parser)]
struct Options {
    /// A checkout of that repository.
    checkout: PathBuf,
    /// Our compiler.
    #[arg(long, default_value = "target/release/cyc")]
    cyc: PathBuf,
    /// Only these stages.
    #[arg(long, value_enum, value_delimiter = ',')]
    stage: Vec<Stage>,
    /// Programs are compiled with this library, or with each in turn.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Library::Ours, Library::Original])]
    lib: Vec<Library>,
    /// Only what has this name, with its whole output.
    #[arg(long)]
    only: Option<String>,
    /// Take this run's results as what is known to work.
    #[arg(long)]
    accept: bool,
    /// Instead: compile and run the programs (stages `run` and `build`) with this original compiler, and write down what they leave.
    #[arg(long, value_name = "COMPILER")]
    record: Option<PathBuf>,
    /// The folder with the tables.
    #[arg(long, default_value = "cyclone/corpus")]
    tables: PathBuf,
    /// Seconds that a compilation or a program may take.
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// Programs at once.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    jobs: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum, PartialEq, Eq)]
enum Stage {
    /// What parses.
    Parse,
    /// What is accepted.
    Check,
    /// Where errors are found.
    Errors,
    /// What compiles and behaves as recorded.
    Run,
    /// What the checkout's own tools and compiler make.
    Build,
}

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verbosity {
    /// A line per file.
    Lines,
    /// All that the compiler and the programs write.
    All,
}

/// What all stages need.
struct Corpus {
    checkout: PathBuf,
    cyc: PathBuf,
    /// For each compilation and each run.
    limits: Limits,
    jobs: usize,
    verbosity: Verbosity,
    /// The only file or program that the user wants.
    only: Option<String>,
}

impl Corpus {
    /// Whether the user wants this file or program.
    fn chosen(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == name)
    }

    /// Does something with each of the items, several at once, and returns the results in the items' order.
    fn each<T: Sync, R: Send>(&self, what: &'static str, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let progress = self.progress(what, items.len());
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(item) = items.get(index) else { break };
                        let result = work(item);
                        done.lock().expect("no thread panics while it holds this").push((index, result));
                        progress.inc(1);
                    }
                });
            }
        });
        progress.finish_and_clear();
        let mut done = done.into_inner().expect("no thread panicked");
        done.sort_by_key(|(index, _)| *index);
        done.into_iter().map(|(_, result)| result).collect()
    }

    /// A bar for so many steps; it is invisible where stderr is no terminal.
    fn progress(&self, what: &'static str, steps: usize) -> ProgressBar {
        let style =
            ProgressStyle::with_template("{prefix} [{bar:40}] {pos}/{len}").expect("the template is well-formed");
        ProgressBar::new(steps as u64).with_style(style).with_prefix(what)
    }
}

/// The address space of a child: the compiler reserves a large stack, and a collector maps its heap ahead.
const MEMORY_KIB: u64 = 4 << 20;

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let corpus = Corpus {
        checkout: options.checkout.canonicalize().with_context(|| options.checkout.display().to_string())?,
        cyc: std::path::absolute(&options.cyc)?,
        limits: Limits { time: Duration::from_secs(options.seconds), memory_kib: MEMORY_KIB },
        jobs: options.jobs.max(1),
        verbosity: if options.only.is_some() { Verbosity::All } else { Verbosity::Lines },
        only: options.only.clone(),
    };
    let programs = programs::read_programs(&options.tables.join("programs.toml"))?;
    let builds = builds::read(&options.tables.join("builds.toml"))?;
    let expected = options.tables.join("expected");
    let wanted = |stage| options.stage.is_empty() || options.stage.contains(&stage);
    if let Some(compiler) = &options.record {
        let compiler = compiler.canonicalize().with_context(|| compiler.display().to_string())?;
        let mut outcomes = programs::read_outcomes(&expected)?;
        if wanted(Stage::Run) {
            outcomes.extend(execute::record(&corpus, &programs, &compiler)?);
        }
        if wanted(Stage::Build) {
            outcomes.extend(build::record(&corpus, &builds, &compiler)?);
        }
        programs::write_outcomes(&expected, &outcomes)?;
        println!("{} outcomes", outcomes.len());
        return Ok(ExitCode::SUCCESS);
    }
    let mut results = Results::default();
    if wanted(Stage::Parse) {
        parse::stage(&corpus, &mut results)?;
    }
    if wanted(Stage::Check) {
        for library in &options.lib {
            check::stage(&corpus, &programs, *library, &mut results)?;
        }
    }
    if wanted(Stage::Errors) {
        errors::stage(&corpus, &mut results)?;
    }
    let expected = programs::read_outcomes(&expected)?;
    if wanted(Stage::Run) {
        for library in &options.lib {
            execute::stage(&corpus, &programs, &expected, *library, &mut results)?;
        }
    }
    if wanted(Stage::Build) {
        build::stage(&corpus, &builds, &expected, &mut results)?;
    }
    compare(&results, &options.tables.join("passing"), options.accept)
}

/// Says what was lost and gained against the list of what is known to work, which `accept` replaces.
fn compare(results: &Results, path: &Path, accept: bool) -> Result<ExitCode> {
    let mut known = Passing::read(path)?;
    let lost: Vec<_> = results.lost(&known).cloned().collect();
    let gained = results.gained(&known).count();
    for fact in &lost {
        println!("lost: {fact}");
    }
    if gained > 0 {
        println!("{gained} more than is known to work{}", if accept { "" } else { "; --accept writes them down" });
    }
    if accept {
        known.take(results);
        known.write(path)?;
    }
    Ok(if lost.is_empty() || accept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
