//! Debian's programs in a root file system of Debian on a disk: apt, compilers, interpreters, databases, editors, and test suites of other people's.
//!
//! A row of the table is a script in [`ROWS`]. It runs in a machine of its own, with the root file system on an ext4 disk that is written, on the reference and on Ebb, and what it
//! prints must be the same. What it writes is thrown away with the machine; a row with several parts (behind a line `### next boot`) boots once for each, and keeps the disk in between. With a line `### network` the machine
//! has a card.

use crate::SystemArguments;
use crate::book::replace_table;
use crate::compare::{Tally, Unit, compare};
use crate::ran::Ran;
use crate::task::Outcome;
use anyhow::{Context, Result, bail, ensure};
use ebb_guest::debian::{self, Cached, ImageFormat};
use ebb_guest::{Debian, Exit, Guest, Image, Kernel, Machine, Mebibytes, Network, Program, RootImage, artifacts};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A script for each row; its head says what the table says of it.
const ROWS: &str = "user/debian";
/// What the image has, a line for each package: `include`, `download` or `source`, and its name.
const PACKAGES: &str = "user/debian/packages";
/// The page with the table.
const PAGE: &str = "docs/src/debian.md";

/// Far more than any row needs, however slow or busy the machine is: only a hang gets here.
const LIMIT: Duration = Duration::from_secs(3600);
/// Node.js and Java reserve much.
const MEMORY: Mebibytes = Mebibytes(2048);
/// What the image is of.
const RELEASE: &str = "bookworm";
/// What all rows together never fill.
const SIZE: Mebibytes = Mebibytes(6144);
/// The line between the parts of a script.
const NEXT_BOOT: &str = "### next boot\n";
/// The line of a script whose machine has a card, at QEMU's own network.
const NETWORK: &str = "### network\n";

struct Row {
    name: String,
    /// What the table says of it.
    what: String,
    network: Network,
    /// One for each boot.
    parts: Vec<String>,
}

/// Runs the rows of these names (all, if there is none), and prints a line for each.
pub fn run(arguments: &SystemArguments, write: bool, refresh: bool, only: &[String]) -> Result<Tally> {
    let reference = arguments.reference.as_deref().context("--reference names the Linux to compare with")?;
    let reference = Kernel::open(reference)?;
    let ebb = Kernel::open(&artifacts::KERNEL.find(arguments.kernel.as_deref())?)?;
    let rows = read_rows()?;
    if let Some(unknown) = only.iter().find(|name| rows.iter().all(|row| row.name != **name)) {
        bail!("no row {unknown}; there are {}", rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>().join(" "));
    }
    let progress = ProgressBar::new_spinner();
    progress.set_style(ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}")?);
    progress.enable_steady_tick(Duration::from_millis(200));
    let cached = if refresh { Cached::Refreshed } else { Cached::AsItIs };
    let image = recipe(PACKAGES, RELEASE, SIZE)?
        .image(&debian::cache(), cached, &mut |what| progress.set_message(what.to_owned()))?;

    let mut tally = Tally::default();
    let mut lines = Vec::new();
    progress.suspend(|| println!("{:<12} {:>10} {:>10} {:>6}", "row", "Linux", "Ebb", "ratio"));
    for row in rows.iter().filter(|row| only.is_empty() || only.contains(&row.name)) {
        let expected = row.run(&reference, &image, arguments, &progress)?;
        let seen =
            if arguments.reference_only { expected.clone() } else { row.run(&ebb, &image, arguments, &progress)? };
        let comparison = compare(&outcome(&expected), &outcome(&seen), Unit::Task);
        // Both may fail in the same way, which would show nothing.
        let is_right = comparison.differences.is_empty() && expected.exit.is_success();
        tally += if is_right { Tally { passed: 1, failed: 0 } } else { Tally { passed: 0, failed: 1 } };
        progress.suspend(|| report(row, &expected, &seen, &comparison.differences, is_right));
        lines.push(table_line(row, &expected, &seen, is_right));
    }
    progress.finish_and_clear();
    if write {
        write_table(&lines)?;
    }
    Ok(tally)
}

fn report(row: &Row, expected: &Ran, seen: &Ran, differences: &[String], is_right: bool) {
    let seconds = |ran: &Ran| ran.time.as_secs_f64();
    let ratio = seconds(seen) / seconds(expected).max(f64::EPSILON);
    let result = if is_right { "same" } else { "DIFFERS" };
    println!("{:<12} {:>8.1} s {:>8.1} s {ratio:>6.2} {result}", row.name, seconds(expected), seconds(seen));
    for difference in differences {
        println!("    {difference}");
    }
    if differences.is_empty() && !is_right {
        println!("    it failed on both: {}", expected.exit);
    }
    if !is_right {
        for (name, ran) in [("Linux", expected), ("Ebb", seen)] {
            println!("    the end of what it wrote on {name}:");
            [&ran.stdout, &ran.stderr]
                .iter()
                .flat_map(|bytes| last_lines(bytes))
                .for_each(|line| println!("    | {line}"));
        }
    }
}

fn last_lines(bytes: &[u8]) -> Vec<String> {
    const SHOWN: usize = 12;
    let lines: Vec<_> = String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
    lines[lines.len().saturating_sub(SHOWN)..].to_vec()
}

fn outcome(ran: &Ran) -> Outcome {
    Outcome::Ended { stdout: ran.stdout.clone(), stderr: ran.stderr.clone(), exit: ran.exit }
}

/// All rows, in the order of their names.
fn read_rows() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for entry in
        std::fs::read_dir(ROWS).with_context(|| format!("reading {ROWS} (is this the top of the repository?)"))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sh") {
            let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            rows.push(read_row(name, &text)?);
        }
    }
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    ensure!(!rows.is_empty(), "{ROWS} has no scripts");
    Ok(rows)
}

/// A script begins with a comment of one line that says what it shows.
fn read_row(name: String, text: &str) -> Result<Row> {
    let Some((what, script)) = text.strip_prefix("# ").and_then(|rest| rest.split_once('\n')) else {
        bail!("{ROWS}/{name}.sh does not begin with a line `# what it shows`");
    };
    let network = if script.contains(NETWORK) { Network::User } else { Network::None };
    Ok(Row { name, what: what.to_owned(), network, parts: script.split(NEXT_BOOT).map(str::to_owned).collect() })
}

/// An image of a release, with what a file names: a line for each package.
pub fn recipe(packages: &str, release: &str, size: Mebibytes) -> Result<Debian> {
    let text = std::fs::read_to_string(packages)
        .with_context(|| format!("reading {packages} (is this the top of the repository?)"))?;
    let mut debian = Debian {
        suite: release.parse().map_err(anyhow::Error::msg)?,
        include: Vec::new(),
        download: Vec::new(),
        source: Vec::new(),
        size,
        format: ImageFormat::Ext4,
        mirror: None,
    };
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some((list, name)) = line.split_once(' ') else { bail!("{packages}: no package in the line `{line}`") };
        let list = match list {
            "include" => &mut debian.include,
            "download" => &mut debian.download,
            "source" => &mut debian.source,
            _ => bail!("{packages}: what is `{list}`?"),
        };
        list.push(name.parse().map_err(anyhow::Error::msg)?);
    }
    Ok(debian)
}

impl Row {
    /// Runs all its parts; the last one's end is its end, or that of the first that fails.
    fn run(&self, kernel: &Kernel, image: &Path, arguments: &SystemArguments, progress: &ProgressBar) -> Result<Ran> {
        let network = self.network.clone();
        let mut machine = Machine { memory: MEMORY, cpus: arguments.cpus, network, ..Machine::new(kernel.clone()) };
        let kept = if let [_] = &self.parts[..] {
            // QEMU writes into a file of its own, which goes with it.
            machine.qemu_options.push("-snapshot".into());
            None
        } else {
            Some(copied(image)?)
        };
        let disk = kept.as_ref().map_or_else(|| image.to_path_buf(), |directory| directory.path().join("disk.img"));
        let written = PathBuf::from(format!("{}:rw", disk.display()));
        RootImage::at(&written)?.context("the image is none")?.attach(&mut machine);
        let mut all = Ran { stdout: Vec::new(), stderr: Vec::new(), exit: Exit::Code(0), time: Duration::ZERO };
        for part in &self.parts {
            progress.set_message(format!("{} on {}: booting", self.name, kernel.name()));
            let mut guest =
                Guest::boot(machine.clone(), &Image::base()).with_context(|| format!("booting {}", kernel.name()))?;
            let program = Program::new("/bin/bash")
                .args(["-c", part, &self.name])
                .env("LC_ALL", "C.UTF-8")
                .env("DEBIAN_FRONTEND", "noninteractive")
                .current_dir("/root");
            let ran = Ran::in_guest(&mut guest, &program, LIMIT, |line| {
                progress.set_message(format!("{} on {}: {line}", self.name, kernel.name()));
            })?;
            all.stdout.extend(ran.stdout);
            all.stderr.extend(ran.stderr);
            (all.exit, all.time) = (ran.exit, all.time + ran.time);
            if !ran.exit.is_success() {
                break;
            }
            if kept.is_some() {
                guest.shutdown()?;
            }
        }
        Ok(all)
    }
}

/// A copy of the image, which goes with the directory.
fn copied(image: &Path) -> Result<tempfile::TempDir> {
    let beside = image.parent().unwrap_or(Path::new("."));
    let directory =
        tempfile::Builder::new().prefix("row-").tempdir_in(beside).context("making a directory for a disk")?;
    let copy = directory.path().join("disk.img");
    let status = Command::new("cp").args(["--sparse=always", "--reflink=auto"]).args([image, &copy]).status();
    ensure!(status.context("starting cp")?.success(), "cp cannot copy the image");
    Ok(directory)
}

fn table_line(row: &Row, expected: &Ran, seen: &Ran, is_right: bool) -> String {
    let result = if is_right { "same" } else { "**differs**" };
    let (linux, ebb) = (expected.time.as_secs_f64(), seen.time.as_secs_f64());
    format!("| `{}` | {} | {linux:.1} s | {ebb:.1} s | {result} |", row.name, row.what)
}

/// Puts the lines into the page's table: each in the place of the one of the same row, or behind the others.
fn write_table(lines: &[String]) -> Result<()> {
    replace_table(PAGE, |table| with_new_lines(table, lines).iter().map(|line| format!("{line}\n")).collect())
}

fn with_new_lines(table: &str, lines: &[String]) -> Vec<String> {
    let row_of = |line: &str| line.split('|').nth(1).map(|cell| cell.trim().to_owned());
    let mut all: Vec<String> = table.lines().map(str::to_owned).collect();
    for line in lines {
        match all.iter_mut().find(|old| row_of(old) == row_of(line)) {
            Some(old) => old.clone_from(line),
            None => all.push(line.clone()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_a_head_and_a_part_for_each_boot() {
        let row = read_row("x".into(), "# what it shows\ntrue\n### next boot\nfalse\n").unwrap();
        assert_eq!((row.what.as_str(), &row.parts[..]), ("what it shows", &["true\n".into(), "false\n".into()][..]));
        assert!(read_row("x".into(), "true\n").is_err());
    }

    #[test]
    fn lines_take_the_place_of_those_of_the_same_row() {
        let table = "| row | result |\n| --- | --- |\n| `a` | 1 |\n| `b` | 2 |\n";
        let lines = with_new_lines(table, &["| `b` | 3 |".into(), "| `c` | 4 |".into()]);
        assert_eq!(lines[2..], ["| `a` | 1 |", "| `b` | 3 |", "| `c` | 4 |"]);
    }
}
