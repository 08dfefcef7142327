//! Which `unsafe` blocks the tests execute that run under the checkers of `tools/build/soundness`.
//!
//! Each line of its table is run once more with the compiler's coverage counters in place of the checker (beside it, for the
//! address sanitizer: what a library tells the sanitizer exists only under it); a block counts as executed under the line's
//! checker if a line of it was. (A checker sees only what runs.) The counters lie in mapped files, so those of a process that is
//! killed, or ends itself in the middle, count too.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::Message;

use crate::sources;

/// A line of the table: a checker, and the tests that run under it.
struct Run {
    checker: String,
    package: String,
    /// A variable and its value.
    environment: Option<(String, String)>,
    arguments: Vec<String>,
}

/// What was executed: for each file the lines.
type Lines = BTreeMap<PathBuf, BTreeSet<u32>>;

/// The folders whose blocks are counted, each with its package.
const FOLDERS: [(&str, &str); 6] = [
    ("ebb-refs", "libs/refs/src"),
    ("ebb-tasks", "libs/tasks/src"),
    ("ebb-ipc", "libs/ipc/src"),
    ("ebb-groups", "libs/groups/src"),
    ("ebb-crc32c", "libs/crc32c/src"),
    ("ebb-frame", "frame/src/mm"),
];
/// What does not exist where the tests run: the simulated machine stands in for it.
const NOT_ON_A_HOST: [&str; 1] = ["frame/src/mm/machine/metal.rs"];

/// Prints the table of all `unsafe` blocks of the packages (or of one, as executed by its own tests); false if there is one that no
/// checker has seen run.
pub fn report(root: &Path, only: Option<&str>) -> Result<bool> {
    let wanted = |package: &str| only.is_none_or(|only| only == package);
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let directory = root.join(target).join("executed");
    std::fs::create_dir_all(&directory)?;
    let mut by_checker: BTreeMap<String, Lines> = BTreeMap::new();
    for (number, run) in table(root)?.into_iter().enumerate() {
        // `shuttle` replaces what it checks, and few have Miri.
        if matches!(run.checker.as_str(), "shuttle" | "miri") || !wanted(&run.package) {
            continue;
        }
        eprintln!("{} {}: {}", run.checker, run.package, run.arguments.join(" "));
        let lines = executed(root, &run, &directory.join(format!("run-{number}")))?;
        let all = by_checker.entry(run.checker).or_default();
        for (file, lines) in lines {
            all.entry(file).or_default().extend(lines);
        }
    }
    let mut missed = 0;
    println!("{:<44} {:>6}  executed under", "file", "blocks");
    for (_, folder) in FOLDERS.into_iter().filter(|(package, _)| wanted(package)) {
        for (file, blocks) in sources::unsafe_blocks(&root.join(folder))? {
            if NOT_ON_A_HOST.iter().any(|path| file == root.join(path)) {
                continue;
            }
            let seen = |checker: &str, block: &std::ops::RangeInclusive<u32>| {
                by_checker[checker].get(&file).is_some_and(|lines| lines.range(block.clone()).next().is_some())
            };
            let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            let counts: Vec<String> = by_checker
                .keys()
                .map(|checker| format!("{checker} {}", blocks.iter().filter(|block| seen(checker, block)).count()))
                .collect();
            println!("{name:<44} {:>6}  {}", blocks.len(), counts.join(", "));
            for block in blocks.iter().filter(|block| !by_checker.keys().any(|checker| seen(checker, block))) {
                missed += 1;
                println!("    not executed: {name}:{}", block.start());
            }
        }
    }
    println!("{missed} blocks are executed under no checker");
    Ok(missed == 0)
}

fn table(root: &Path) -> Result<Vec<Run>> {
    let output =
        Command::new(root.join("tools/build/soundness")).arg("table").output().context("tools/build/soundness")?;
    let text = String::from_utf8(output.stdout)?;
    let mut runs = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(checker), Some(package), Some(environment)) = (words.next(), words.next(), words.next()) else {
            bail!("a line of the table is too short: {line}");
        };
        let environment = environment.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        runs.push(Run { checker, package, environment, arguments: words.collect() });
    }
    Ok(runs)
}

/// Runs the tests with counters, and says which lines were executed.
fn executed(root: &Path, run: &Run, directory: &Path) -> Result<Lines> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    std::fs::create_dir_all(directory)?;
    // What exists only for loom is built only for it, and its tests take long without the optimiser.
    let (flags, build, more): (_, _, &[&str]) = match run.checker.as_str() {
        "loom" => ("--cfg ebb_loom", "build-loom", &["--release"]),
        // Their tasks are threads.
        "thread" | "memory" => ("--cfg ebb_threads", "build-threads", &[]),
        "address" => ("-Zsanitizer=address", "build-address", &["--target", "x86_64-unknown-linux-gnu"]),
        _ => ("", "build", &[]),
    };
    let cargo = || {
        let mut command = Command::new("cargo");
        command
            .current_dir(root)
            .args(["test", "--quiet", "-p", &run.package, "--target-dir"])
            .arg(directory.with_file_name(build))
            .args(more)
            .args(&run.arguments)
            .envs(run.environment.clone())
            .env("RUSTFLAGS", format!("-Cinstrument-coverage -Cllvm-args=-runtime-counter-relocation {flags}"))
            .envs(if run.checker == "address" {
                vec![("RUSTC_BOOTSTRAP", "1"), ("ASAN_OPTIONS", "detect_leaks=0")]
            } else {
                Vec::new()
            })
            .env("LLVM_PROFILE_FILE", directory.join("%c%p-%m.profraw"));
        command
    };
    let build = cargo().args(["--no-run", "--message-format=json"]).stderr(Stdio::inherit()).output()?;
    if !build.status.success() {
        bail!("the tests of {} do not build", run.package);
    }
    let mut programs = Vec::new();
    for message in Message::parse_stream(&*build.stdout) {
        if let Message::CompilerArtifact(artifact) = message?
            && let Some(program) = artifact.executable
        {
            programs.push(program.into_std_path_buf());
        }
    }
    if !cargo().stdout(Stdio::null()).status()?.success() {
        bail!("the tests of {} fail", run.package);
    }
    let profile = directory.join("all.profdata");
    let raw: Vec<PathBuf> = std::fs::read_dir(directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension() == Some(OsStr::new("profraw")))
        .collect();
    llvm("profdata", |command| command.args(["merge", "--sparse", "-o"]).arg(&profile).args(&raw))?;
    let exported = llvm("cov", |command| {
        command.args(["export", "--format=lcov", "--instr-profile"]).arg(&profile);
        for (number, program) in programs.iter().enumerate() {
            if number > 0 {
                command.arg("--object");
            }
            command.arg(program);
        }
        command
    })?;
    Ok(parse(&String::from_utf8_lossy(&exported)))
}

/// Runs one of LLVM's tools, of a version that can read what this compiler writes.
fn llvm(tool: &str, arguments: impl Fn(&mut Command) -> &mut Command) -> Result<Vec<u8>> {
    let version = Command::new("rustc").arg("-vV").output().context("rustc")?;
    let version = String::from_utf8(version.stdout)?;
    let major = version
        .lines()
        .find_map(|line| line.strip_prefix("LLVM version: "))
        .and_then(|version| version.split('.').next())
        .context("rustc does not say which LLVM it has")?;
    for name in [format!("llvm-{tool}-{major}"), format!("llvm-{tool}")] {
        match arguments(&mut Command::new(&name)).stderr(Stdio::inherit()).output() {
            Ok(output) if output.status.success() => return Ok(output.stdout),
            Ok(_) => {
                bail!("{name} failed: a version for LLVM {major} is needed (on Debian: apt-get install llvm-{major})")
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).context(name),
        }
    }
    bail!("llvm-{tool} is needed (on Debian: apt-get install llvm-{major})")
}

/// The executed lines of an lcov file: `SF:file`, then `DA:line,count`.
fn parse(lcov: &str) -> Lines {
    let mut lines = Lines::new();
    let mut file = PathBuf::new();
    for record in lcov.lines() {
        if let Some(path) = record.strip_prefix("SF:") {
            file = path.into();
        } else if let Some((line, count)) = record.strip_prefix("DA:").and_then(|data| data.split_once(','))
            && count != "0"
            && let Ok(line) = line.parse()
        {
            lines.entry(file.clone()).or_default().insert(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_a_count_above_zero_were_executed() {
        let lines = parse("SF:/a.rs\nDA:3,0\nDA:4,17\nend_of_record\nSF:/b.rs\nDA:1,1\n");
        assert_eq!(lines[Path::new("/a.rs")], BTreeSet::from([4]));
        assert_eq!(lines[Path::new("/b.rs")], BTreeSet::from([1]));
    }
}
