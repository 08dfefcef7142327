//! `make bench-cyclone`: the programs of `programs/`, in Cyclone and in C, side by side.
//!
//! Each program exists twice, with the same algorithm: `NAME.c` is built by `cc -O2`, `NAME.cyc` by `cyc build -O2` with all checks on. Both
//! are run several times in turn, so that a change of the machine's load meets both; the least time of each counts. Their output must
//! be the same. With `--original` the original compiler builds the Cyclone programs too.

#![forbid(unsafe_code)]

mod compile;
mod measure;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Programs and the argument each is run with: the C version takes some tenths of a second.
const PROGRAMS: &[(&str, &str)] = &[
    ("ackermann", "10"),
    ("ary", "100000"),
    ("binarytrees", "16"),
    ("except", "10000000"),
    ("fib", "41"),
    ("hash", "1000000"),
    ("heapsort", "3000000"),
    ("lists", "600"),
    ("matrix", "20000"),
    ("nestedloop", "30"),
    ("nsieve", "9"),
    ("random", "60000000"),
    ("sieve", "12000"),
    ("spellcheck", "6000000"),
    ("strcat", "30000000"),
    ("wc", "3000"),
];

/// Measures Cyclone programs beside the same programs in C.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Option<Action>,
    /// Only programs whose names contain this.
    #[arg(long)]
    only: Option<String>,
    /// Runs of each program.
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// The compiler `cyc`.
    #[arg(long, default_value = "cyc")]
    cyc: PathBuf,
    /// The C compiler, for both.
    #[arg(long, default_value = "gcc")]
    cc: String,
    /// The original Cyclone compiler, where you have it (it is called as `FILE -O2 -o OUT`).
    #[arg(long)]
    original: Option<PathBuf>,
    /// More options for `cyc build`.
    #[arg(long, allow_hyphen_values = true)]
    cyc_options: Vec<String>,
    /// Measure how quickly these Cyclone files become C instead (options for the preprocessor after `--`).
    #[arg(long, num_args = 1..)]
    compile: Vec<PathBuf>,
    /// Options of `cyc` for `--compile`.
    #[arg(last = true)]
    compile_options: Vec<String>,
}

#[derive(Subcommand)]
enum Action {
    /// Runs one program and prints its costs; used by this program itself.
    #[command(hide = true)]
    Measure {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match &options.command {
        Some(Action::Measure { program, arguments }) => measure::measure(program, arguments),
        None if !options.compile.is_empty() => compile::table(&options.cyc, &options.compile, &options.compile_options),
        None => table(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ebb-cyclone-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// One way of building the programs.
struct Way {
    name: &'static str,
    program: PathBuf,
    best: Option<measure::Run>,
}

fn table(options: &Options) -> Result<()> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let directory = tempfile::tempdir()?;
    let chosen: Vec<_> = PROGRAMS
        .iter()
        .filter(|(name, _)| options.only.as_ref().is_none_or(|only| name.contains(only.as_str())))
        .collect();
    if chosen.is_empty() {
        bail!(
            "no program has such a name; there are {}",
            PROGRAMS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
        );
    }
    println!(
        "{:<12} {:>9} {:>9} {:>7} {:>10} {:>10}   original",
        "program", "C ms", "cyc ms", "ratio", "C KiB", "cyc KiB"
    );
    let progress = ProgressBar::new(chosen.len() as u64 * u64::from(options.runs))
        .with_style(ProgressStyle::with_template("{pos}/{len} runs {wide_bar} {msg}")?);
    let (mut logarithms, mut worst) = (Vec::new(), ("", 0.0_f64));
    for (name, argument) in chosen {
        progress.set_message(*name);
        let mut ways = build(options, &sources, directory.path(), name)?;
        for _ in 0..options.runs {
            for way in &mut ways {
                let run = measure::run(&way.program, &[argument])?;
                if way.best.as_ref().is_none_or(|best| run.micros < best.micros) {
                    way.best = Some(run);
                }
            }
            progress.inc(1);
        }
        let best: Vec<_> = ways
            .iter()
            .map(|way| way.best.as_ref().with_context(|| format!("{name} was not run as {}", way.name)))
            .collect::<Result<_>>()?;
        if let Some(other) = ways.iter().zip(&best).find(|(_, run)| run.output != best[0].output) {
            bail!("{name}: the program built by {} prints something else than the one in C", other.0.name);
        }
        let ratio = best[1].micros as f64 / best[0].micros as f64;
        logarithms.push(ratio.ln());
        if ratio > worst.1 {
            worst = (name, ratio);
        }
        let original = best
            .get(2)
            .map_or(String::new(), |run| format!("{:>6.1} ms {:>8} KiB", run.micros as f64 / 1000.0, run.peak_kib));
        progress.suspend(|| {
            println!(
                "{name:<12} {:>9.1} {:>9.1} {ratio:>7.2} {:>10} {:>10}   {original}",
                best[0].micros as f64 / 1000.0,
                best[1].micros as f64 / 1000.0,
                best[0].peak_kib,
                best[1].peak_kib
            );
        });
    }
    progress.finish_and_clear();
    let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
    println!("geometric mean of the ratios {mean:.3}; the largest is {:.2} ({})", worst.1, worst.0);
    Ok(())
}

fn build(options: &Options, sources: &Path, directory: &Path, name: &str) -> Result<Vec<Way>> {
    let mut ways = Vec::new();
    let way = |suffix: &str| directory.join(format!("{name}-{suffix}"));
    let mut c = Command::new(&options.cc);
    c.arg("-O2").arg(sources.join(format!("{name}.c"))).arg("-o").arg(way("c"));
    ways.push((Way { name: "the C compiler", program: way("c"), best: None }, c));
    let mut cyclone = Command::new(&options.cyc);
    cyclone.env("CC", &options.cc).args(["build", "-O2"]).args(&options.cyc_options);
    cyclone.arg(sources.join(format!("{name}.cyc"))).arg("-o").arg(way("cyc"));
    ways.push((Way { name: "cyc", program: way("cyc"), best: None }, cyclone));
    if let Some(original) = &options.original {
        // It writes its C beside its input: it gets a copy.
        let copy = directory.join(format!("{name}.cyc"));
        std::fs::copy(sources.join(format!("{name}.cyc")), &copy)?;
        let mut command = Command::new(original);
        command.arg(copy).arg("-O2").arg("-o").arg(way("original"));
        ways.push((Way { name: "the original compiler", program: way("original"), best: None }, command));
    }
    ways.into_iter()
        .map(|(way, mut command)| {
            let output = command.output().with_context(|| format!("cannot start {}", way.name))?;
            if !output.status.success() {
                bail!("{} does not build {name}:\n{}", way.name, String::from_utf8_lossy(&output.stderr));
            }
            Ok(way)
        })
        .collect()
}
