//! The suite: a copy of the checkout is built once, below the build's directory. The checkout itself is only read.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The list of tests, in the checkout.
const LIST: &str = "runtest/syscalls";
/// Where the tests are, in what is built.
const PROGRAMS: &str = "testcases/bin";
/// The suite's parts that all tests take.
const LIBRARIES: [&str; 2] = ["lib", "libs"];
/// The parts with the tests in the list.
const TESTS: [&str; 7] = [
    "testcases/kernel/syscalls",
    "testcases/kernel/ipc/pipeio",
    "testcases/kernel/security/dirtyc0w",
    "testcases/kernel/security/dirtyc0w_shmem",
    "testcases/kernel/security/dirtypipe",
    "testcases/kernel/security/prot_hsymlinks",
    "testcases/kernel/ipc/msgstress",
];

/// The built suite.
pub struct Suite {
    /// Where it is installed; it stands under the same path in guests.
    pub root: PathBuf,
    /// In the order of the list.
    pub tests: Vec<Test>,
}

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    pub name: String,
    /// The program's name and its arguments.
    pub words: Vec<String>,
}

impl Test {
    /// Its program's name.
    pub fn program(&self) -> &str {
        // An entry has a word: its name.
        self.words.first().map_or(&self.name, |word| word)
    }
}

impl Suite {
    /// Builds what is in `checkout`, unless it is built; `doing` is told each step.
    pub fn build(checkout: &Path, mut doing: impl FnMut(&str)) -> Result<Self> {
        let list = checkout.join(LIST);
        let text = fs::read_to_string(&list)
            .with_context(|| format!("reading {} (is that a checkout of the Linux Test Project?)", list.display()))?;
        let checkout = checkout.canonicalize().with_context(|| format!("finding {}", checkout.display()))?;
        let (source, root) = (directory().join("source"), directory().join("installed"));
        let stamp = directory().join("built-from");
        let identity = identity(&checkout);
        if fs::read_to_string(&stamp).ok().as_ref() != Some(&identity) {
            doing("copying the sources");
            for stale in [&source, &root] {
                if stale.exists() {
                    fs::remove_dir_all(stale).with_context(|| format!("removing {}", stale.display()))?;
                }
            }
            fs::create_dir_all(directory()).with_context(|| format!("making {}", directory().display()))?;
            step(Command::new("cp").arg("-R").arg(&checkout).arg(&source), "copying")?;
            for (what, command) in commands(&root) {
                doing(what);
                step(Command::new("sh").args(["-ec", &command]).current_dir(&source), what)?;
            }
            fs::write(&stamp, &identity).with_context(|| format!("writing {}", stamp.display()))?;
        }
        Ok(Self { root, tests: read_list(&text) })
    }

    /// A program of the suite's.
    pub fn program(&self, name: &str) -> PathBuf {
        self.root.join(PROGRAMS).join(name)
    }

    /// Where its programs are.
    pub fn programs(&self) -> PathBuf {
        self.root.join(PROGRAMS)
    }
}

/// Where all of it is kept.
pub fn directory() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let path = target.join("ltp");
    std::path::absolute(&path).unwrap_or(path)
}

/// What tells one checkout from another: its place, and its commit where it has one.
fn identity(checkout: &Path) -> String {
    let output = Command::new("git").arg("-C").arg(checkout).args(["rev-parse", "HEAD"]).output();
    let commit = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    format!("{}\n{commit}\n", checkout.display())
}

/// Each step of the build, for a shell in the sources, and what it does.
fn commands(root: &Path) -> Vec<(&'static str, String)> {
    let parallel = std::thread::available_parallelism().map_or(1, usize::from);
    let make = |part: &&str| format!("make -j{parallel} -C {part}");
    let install = |part: &&str| format!("{} install", make(part));
    let root = root.display();
    vec![
        ("making `configure`", "make autotools".to_owned()),
        // Symbols for a debugger are nine tenths of it.
        ("configuring", format!("./configure --prefix='{root}' CFLAGS=-O2 LDFLAGS=-s")),
        ("building the libraries", LIBRARIES.iter().map(make).collect::<Vec<_>>().join(" && ")),
        ("building the tests", TESTS.iter().map(make).collect::<Vec<_>>().join(" && ")),
        ("installing the tests", TESTS.iter().map(install).collect::<Vec<_>>().join(" && ")),
    ]
}

/// Runs a step of the build; what it says is in a file, whose end is told if it fails.
fn step(command: &mut Command, what: &str) -> Result<()> {
    let log = directory().join("build.log");
    let file = File::create(&log).with_context(|| format!("making {}", log.display()))?;
    command.stdout(file.try_clone()?).stderr(file);
    let status = command.status().with_context(|| format!("{what}: starting {command:?}"))?;
    if !status.success() {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        let end = lines[lines.len().saturating_sub(10)..].join("\n");
        bail!(
            "{what} failed (tools/build/setup ltp installs what it takes; {} has all of this):\n{end}",
            log.display()
        );
    }
    Ok(())
}

fn read_list(text: &str) -> Vec<Test> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            let name = words.remove(0);
            if words.is_empty() {
                words.push(name.clone());
            }
            Test { name, words }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_a_name_and_a_command() {
        let tests = read_list("#DESCRIPTION:Kernel\n\nfork11 fork_procs -n 100\nabort01\n");
        assert_eq!(tests[0].name, "fork11");
        assert_eq!(tests[0].words, ["fork_procs", "-n", "100"]);
        assert_eq!(tests[1], Test { name: "abort01".into(), words: vec!["abort01".into()] });
        assert_eq!(tests.len(), 2);
    }
}
