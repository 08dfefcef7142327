//! Runs a program of `user/fuzz`, or the one of `user/stress`, as process 1 and judges how that ended.

use anyhow::{Context, Result, bail};
use ebb_guest::bare::{BareEnd, BareMachine};
use ebb_guest::stretch::{self, Stretch};
use ebb_guest::{Cpus, Image, Kernel};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How a guest's time passes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// As on the host.
    Real,
    /// By its instructions.
    Counted,
    /// By its instructions; and no stretch with interrupts off may be longer than [`stretch::BOUND`].
    Stretched,
}

/// QEMU's processor model where no number may be the host's: what the kernel takes by chance depends on the counted time as well.
const COUNTED_CPU: &str = "max,-la57,-erms,-fsrm,-rdrand,-rdseed";

/// The machines that get the input.
pub struct Machines<'a> {
    /// What they boot.
    pub kernel: &'a Kernel,
    /// Their cores.
    pub cpus: Cpus,
    /// How their time passes; only [`Time::Real`] may have more than one core.
    pub time: Time,
    /// Where their files may lie.
    pub directory: &'a Path,
}

/// Random system calls for `seconds` of guest time; 1 if the kernel did not survive them.
pub fn calls(machines: &Machines, seed: u64, seconds: u32) -> Result<u32> {
    // Emulated time may pass more slowly than the host's.
    let limit = Duration::from_secs(u64::from(seconds) * 4 + 600);
    run(machines, "fuzz", &format!("{seed} {seconds}s"), &[], limit)
}

/// `count` changed programs; 1 if the kernel did not survive them.
pub fn programs(machines: &Machines, seed: u64, count: u32) -> Result<u32> {
    let limit = Duration::from_secs(u64::from(count) / 2 + 600);
    run(&Machines { time: Time::Real, ..*machines }, "programs", &format!("{seed} {count}"), &[], limit)
}

/// Programs that take until there is no more, with `memory` MiB; 1 if the kernel did not survive them, ended the wrong one, or did
/// not get everything back.
pub fn exhaust(machines: &Machines, memory: u32, trials: &[String]) -> Result<u32> {
    let options = ["-m", &format!("{memory}M")];
    let limit = Duration::from_secs(600 + u64::from(memory) * 8);
    run(machines, "exhaust", &trials.join(" "), &options, limit)
}

/// All kinds of work against each other, or those of some families, for `seconds` and as many again; 1 if anything was not as it must be.
pub fn stress(machines: &Machines, seed: u64, seconds: u32, families: &[String]) -> Result<u32> {
    // Each time its last rounds may take minutes.
    let limit = Duration::from_secs(u64::from(seconds) * 2 + 1200);
    run(machines, "stress", &format!("--seconds {seconds} --seed {seed} {}", families.join(" ")), &[], limit)
}

/// When what a program says of its work is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    AsItComes,
    AtTheEnd,
}

/// Which rounds of `kills` there are, and what is printed of them.
#[derive(Clone, clap::Args)]
pub struct Kills {
    /// How many rounds.
    #[arg(default_value_t = 1000)]
    count: u32,
    /// The first of them: to have one again.
    #[arg(long, default_value_t = 0)]
    first: u32,
    /// Print a line for each kill.
    #[arg(long)]
    each: bool,
    /// Workloads have objects of this kind only: one of the tables in `user/kills`.
    #[arg(long, value_name = "KIND")]
    only: Option<String>,
}

/// Random workloads in control groups, killed at random moments; 1 if a kill left anything behind or, on one core, took longer than was charged for it. What the program says is printed as it
/// comes.
pub fn kills(machines: &Machines, seed: u64, kills: &Kills) -> Result<u32> {
    let Kills { count, first, each, only } = kills;
    let time = if machines.cpus == Cpus::ONE && machines.time == Time::Real { Time::Counted } else { machines.time };
    // A round takes some hundred milliseconds where nothing else runs.
    let limit = Duration::from_secs(u64::from(*count) * 10 + 600);
    let each = if *each { " each" } else { "" };
    let only = only.as_ref().map_or(String::new(), |kind| format!(" {kind}"));
    let arguments = format!("{count} {seed} {first}{each}{only}");
    run_shown(&Machines { time, ..*machines }, "kills", &arguments, &["-m", "1G"], limit, Shown::AsItComes)
}

fn run(machines: &Machines, program: &str, arguments: &str, qemu_options: &[&str], limit: Duration) -> Result<u32> {
    run_shown(machines, program, arguments, qemu_options, limit, Shown::AtTheEnd)
}

fn run_shown(
    machines: &Machines,
    program: &str,
    arguments: &str,
    qemu_options: &[&str],
    limit: Duration,
    shown: Shown,
) -> Result<u32> {
    let &Machines { kernel, cpus, time, directory } = machines;
    let mut qemu_options = qemu_options.to_vec();
    let mut cpu = "max,-la57";
    if time != Time::Real {
        qemu_options.extend(stretch::COUNTED);
        cpu = if time == Time::Stretched { stretch::CPU } else { COUNTED_CPU };
    }
    let mut image = Image::base();
    image.add_file("init", &compile(program, directory)?)?;
    let archive = directory.join(program).with_extension("cpio");
    image.write_to(&archive)?;
    let command_line = format!("quiet norandmaps init=/init -- {arguments}");
    let machine = BareMachine { kernel, command_line: &command_line, cpu, cpus, qemu_options: &qemu_options, limit };
    println!("{program} {arguments}");
    let run = machine.run_watched(&archive, &mut |_, line| {
        if shown == Shown::AsItComes && line.starts_with(&format!("{program}: ")) {
            println!("  {}", printable(line));
        }
    })?;
    let last = run.console.lines().rev().find(|line| line.contains(", done"));
    match (run.end, last) {
        (BareEnd::PoweredOff, Some(line)) if !line.contains(", done, ") || line.contains(", done, 0 failed") => {
            // The stress program reports each of its families; what it did to warm up is of no interest.
            let reports = run.console.lines().skip_while(|line| line.trim() != "stress: warm").skip(1);
            let last = (shown == Shown::AtTheEnd).then_some(line);
            for report in reports.take_while(|report| *report != line).chain(last) {
                println!("  {}", report.trim());
            }
            Ok(if time == Time::Stretched { judge_stretches(&run.console)? } else { 0 })
        }
        // All of it was seen.
        (BareEnd::PoweredOff, Some(_)) if shown == Shown::AsItComes => Ok(1),
        (end, _) => {
            println!("  failed ({end:?}):");
            // They may be far above the last lines.
            for violation in run.console.lines().filter(|line| line.contains("VIOLATION")) {
                println!("  {}", printable(violation));
            }
            println!("{}", printable(&run.last_lines(60)));
            Ok(1)
        }
    }
}

/// Prints for how long interrupts were off; how often that was too long.
fn judge_stretches(console: &str) -> Result<u32> {
    let all: Vec<(&str, Stretch)> = console
        .lines()
        .filter_map(|line| line.split_once("stretch: ")?.1.split_once(": "))
        .filter_map(|(during, told)| Some((during, Stretch::read(told)?)))
        .collect();
    if all.is_empty() {
        bail!("the kernel does not say how long it kept interrupts off: was it built with `--features stretch`?");
    }
    for (during, stretch) in &all {
        println!("  {during:<20} {stretch}{}", if stretch.is_too_long() { ": TOO LONG" } else { "" });
    }
    Ok(all.iter().filter(|(_, stretch)| stretch.is_too_long()).count() as u32)
}

/// Workers may write anything to the console.
fn printable(text: &str) -> String {
    text.chars().filter(|&c| c == '\n' || !c.is_control()).collect()
}

/// Compiles `user/fuzz/PROGRAM.c`, or all of the folder `user/PROGRAM`.
fn compile(program: &str, directory: &Path) -> Result<PathBuf> {
    // The folder of a program may have the name of that of the programs of one file.
    let alone = Path::new("user/fuzz").join(program).with_extension("c");
    let sources = if alone.exists() {
        vec![alone]
    } else {
        let folder = Path::new("user").join(program);
        let entries = std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        let mut sources = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
        sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
        sources
    };
    let output = directory.join(program);
    let done = Command::new("musl-gcc")
        .args(["-static", "-O1", "-pthread", "-o"])
        .arg(&output)
        .args(&sources)
        .output()
        .context("running musl-gcc (on Debian and Ubuntu: apt-get install musl-tools)")?;
    if !done.status.success() {
        bail!("{program} does not compile:\n{}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(output)
}
