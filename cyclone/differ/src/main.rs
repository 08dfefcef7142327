//! `make cyclone-differ`: random programs through `cyc` with several C compilers and levels of optimisation. All must print the same.
//!
//! A difference is an error of the compiler (undefined behaviour in the C it writes, most often) or of its run-time library. The
//! sanitizers' builds find what happens to do no harm. Programs that make a difference are kept, and named with their seed.

#![forbid(unsafe_code)]

mod generate;

use anyhow::{Context, Result, bail};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

/// Compares what random Cyclone programs print when they are compiled in different ways.
#[derive(Parser)]
struct Options {
    /// The compiler `cyc`.
    #[arg(long, default_value = "cyc")]
    cyc: PathBuf,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many programs.
    #[arg(long, default_value_t = 100)]
    count: u64,
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

/// Ways to build: name, C compiler, options.
const WAYS: &[(&str, &str, &[&str])] = &[
    ("gcc -O0", "gcc", &["-O0"]),
    ("gcc -O2", "gcc", &["-O2"]),
    ("clang -O0", "clang", &["-O0"]),
    ("clang -O2", "clang", &["-O2"]),
    (
        "gcc with sanitizers",
        "gcc",
        &["-O1", "-g", "--no-gc", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"],
    ),
];

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
        print!("{}", generate::program(options.seed));
        return Ok(());
    }
    let ways: Vec<_> = WAYS.iter().filter(|(_, cc, _)| is_there(cc)).collect();
    for (name, cc, _) in WAYS.iter().filter(|(_, cc, _)| !is_there(cc)) {
        eprintln!("{name}: left out, {cc} is not installed");
    }
    let directory = tempfile::tempdir()?;
    let progress = ProgressBar::new(options.count)
        .with_style(ProgressStyle::with_template("{pos}/{len} programs {wide_bar} {eta}")?);
    let mut different = 0;
    for seed in options.seed..options.seed + options.count {
        let source = directory.path().join("program.cyc");
        std::fs::write(&source, generate::program(seed))?;
        let mut outputs = Vec::new();
        for (name, cc, arguments) in &ways {
            let mut build = Command::new(&options.cyc);
            build.env("CC", cc).arg("build").args(*arguments);
            outputs.push((*name, built_and_run(build, &source, directory.path())?));
        }
        if let Some(original) = &options.original {
            outputs.push(("the original", built_and_run(Command::new(original), &source, directory.path())?));
        }
        let (first, rest) = outputs.split_first().context("no C compiler is installed")?;
        for (name, output) in rest.iter().filter(|(_, output)| *output != first.1) {
            different += 1;
            std::fs::create_dir_all(&options.keep)?;
            let kept = options.keep.join(format!("{seed}.cyc"));
            std::fs::copy(&source, &kept)?;
            progress.suspend(|| {
                println!("seed {seed} ({}): {} and {name} differ", kept.display(), first.0);
                println!("--- {}\n{}--- {name}\n{output}", first.0, first.1);
            });
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    if different > 0 {
        bail!("{different} differences");
    }
    println!(
        "{} programs, {} ways each: no difference",
        options.count,
        ways.len() + usize::from(options.original.is_some())
    );
    Ok(())
}

fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// What the program prints and how it ends, as text; of a build that fails, what the compiler says.
fn built_and_run(mut build: Command, source: &Path, directory: &Path) -> Result<String> {
    let program = directory.join("program");
    let built = build.arg(source).arg("-o").arg(&program).output().context("cannot start the compiler")?;
    if !built.status.success() {
        return Ok(format!("not built:\n{}", String::from_utf8_lossy(&built.stderr)));
    }
    // A program ends by itself, unless it was compiled wrongly.
    // What stays on a heap without a collector is no error.
    let mut run = Command::new("timeout");
    run.env("ASAN_OPTIONS", "detect_leaks=0").arg("20").arg(&program).stdin(Stdio::null());
    let output = run.output()?;
    let Output { status, stdout, .. } = output;
    let text = String::from_utf8_lossy(&stdout).into_owned();
    Ok(match status.success() {
        true => text,
        false => format!("{text}({status})\n{}", String::from_utf8_lossy(&output.stderr)),
    })
}
