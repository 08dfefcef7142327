//! What one run of a program costs: processor time and the largest memory it held.
//!
//! The kernel keeps the peak of memory over *all* children that a process has waited for, so each run gets a process of its own to
//! be the only child of: this program starts itself with `measure`, which runs the command, waits, and prints the figures.

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Begins the line of figures, which the measured program's own output comes before.
const MARK: &str = "\u{1}measured ";

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// User and system time of the processor, in microseconds.
    pub micros: u64,
    /// The largest resident set, in KiB.
    pub peak_kib: u64,
    /// What the program printed.
    pub output: Vec<u8>,
}

/// Runs a program to its end.
///
/// # Errors
/// If it cannot be started, or ends with another code than 0.
pub fn run(program: &Path, arguments: &[&str]) -> Result<Run> {
    let output = Command::new(std::env::current_exe()?)
        .arg("measure")
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        bail!("{} {} failed: {}", program.display(), arguments.join(" "), output.status);
    }
    let at = output
        .stdout
        .windows(MARK.len())
        .rposition(|window| window == MARK.as_bytes())
        .context("the run printed no figures")?;
    let figures = std::str::from_utf8(&output.stdout[at + MARK.len()..])?;
    let mut figures = figures.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(micros)), Some(Ok(peak_kib))) = (figures.next(), figures.next()) else {
        bail!("the run's figures cannot be read");
    };
    Ok(Run { micros, peak_kib, output: output.stdout[..at].to_vec() })
}

/// The other end of [`run`]: runs the command as the only child and prints what it cost.
///
/// # Errors
/// If the command cannot be started or fails.
pub fn measure(program: &Path, arguments: &[String]) -> Result<()> {
    let status =
        Command::new(program).args(arguments).status().with_context(|| format!("cannot run {}", program.display()))?;
    if !status.success() {
        bail!("{} ended with {status}", program.display());
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    let mut out = std::io::stdout().lock();
    write!(out, "{MARK}{micros} {}", usage.max_rss())?;
    out.flush()?;
    Ok(())
}

/// How many instructions a run takes, by valgrind.
///
/// # Errors
/// If there is no valgrind, or the program fails.
pub fn instructions(program: &Path, argument: &str) -> Result<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(program)
        .arg(argument)
        .stdin(Stdio::null())
        .output()
        .context("cannot run valgrind, which counts instructions; --no-instructions does without")?;
    if !output.status.success() {
        bail!("{} {argument} failed under valgrind: {}", program.display(), output.status);
    }
    let report = String::from_utf8_lossy(&output.stderr);
    let count = report.lines().find_map(|line| line.split_once("refs:")).context("valgrind printed no count")?;
    Ok(count.1.trim().replace(',', "").parse()?)
}
