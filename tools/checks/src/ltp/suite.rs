//! What is built of the suite, and which tests it has.

use super::NAME;
use crate::suites::build::{Recipe, directory, parallel};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

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
    pub fn build(checkout: &Path, doing: impl FnMut(&str)) -> Result<Self> {
        let list = checkout.join(LIST);
        let text = fs::read_to_string(&list)
            .with_context(|| format!("reading {} (is that a checkout of the Linux Test Project?)", list.display()))?;
        let root = directory(NAME).join("installed");
        Recipe { name: NAME, makes: &[&root], steps: steps(&root) }.build(checkout, doing)?;
        Ok(Self { root, tests: read_list(&text) })
    }

    /// The test of this name.
    pub fn test(&self, name: &str) -> Option<&Test> {
        self.tests.iter().find(|test| test.name == name)
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

/// Each step of the build, for a shell in the sources, and what it does.
fn steps(root: &Path) -> Vec<(&'static str, String)> {
    let parallel = parallel();
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
