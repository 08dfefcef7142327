//! Programs of all sorts ([`crate::generate`]) must print the same however they are compiled.
//!
//! A difference is undefined behaviour in the C that the compiler writes, most often. The sanitizers' builds find what happens to do
//! no harm. Programs that make a difference are kept, and named with their seed.

use super::{Options, generate, is_there};
use anyhow::{Context, Result};
use indicatif::ProgressBar;
use std::path::Path;
use std::process::{Command, Output, Stdio};

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

/// How many differences there are; they are printed.
pub fn run(options: &Options, progress: &ProgressBar) -> Result<usize> {
    let ways: Vec<_> = WAYS.iter().filter(|(_, cc, _)| is_there(cc)).collect();
    for (name, cc, _) in WAYS.iter().filter(|(_, cc, _)| !is_there(cc)) {
        eprintln!("{name}: left out, {cc} is not installed");
    }
    let directory = tempfile::tempdir()?;
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
    let ways = ways.len() + usize::from(options.original.is_some());
    println!("{} programs, {ways} ways each: {different} differences", options.count);
    Ok(different)
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
