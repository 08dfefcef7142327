//! The tables: which programs there are, what the original compiler's binaries of them wrote, and which of them we pass.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::process::{End, Finished};

/// How much of the language a program needs; see the page on the corpus.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    First,
    Second,
    Third,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Third => "third",
        })
    }
}

/// A program of the corpus and how it is run. Paths are relative to the checkout.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub name: String,
    pub tier: Tier,
    pub sources: Vec<PathBuf>,
    #[serde(default)]
    pub include: Vec<PathBuf>,
    /// What the compiler is told besides.
    #[serde(default)]
    pub options: Vec<String>,
    #[serde(default)]
    pub args: Vec<String>,
    /// A file that is its standard input, `times` times over.
    pub stdin: Option<PathBuf>,
    #[serde(default = "once")]
    pub times: usize,
    /// Files that must be in the folder it runs in.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// Its output differs from run to run (it prints an address): only the exit code counts.
    #[serde(default)]
    pub unstable_output: bool,
    /// It writes lines in the order of a hash table: they are compared sorted.
    #[serde(default)]
    pub any_order: bool,
    /// It ends in another way on 64-bit machines, or with bounds that are exact; its output is not compared then.
    pub ours: Option<Ours>,
}

/// How a program ends with us where that is rightly not as recorded.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ours {
    pub exit: i32,
    /// For the reader of the table.
    #[expect(dead_code, reason = "only so that no entry goes without")]
    why: String,
}

fn once() -> usize {
    1
}

#[derive(Deserialize)]
struct Table {
    program: Vec<Program>,
}

/// Reads the table of programs.
///
/// # Errors
/// It cannot be read, has unknown fields, or two programs of one name.
pub fn read_programs(path: &Path) -> Result<Vec<Program>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let table: Table = toml::from_str(&text).with_context(|| path.display().to_string())?;
    let mut names = BTreeSet::new();
    for program in &table.program {
        if !names.insert(&program.name) {
            bail!("{}: two programs are named {}", path.display(), program.name);
        }
    }
    Ok(table.program)
}

/// What a run left: its exit code and a digest of its standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub exit: i32,
    /// None where the output is unstable.
    pub output: Option<Output>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub bytes: usize,
    pub sha256: String,
}

impl Outcome {
    /// None if the program did not end by itself.
    pub fn of(program: &Program, finished: &Finished) -> Option<Self> {
        let End::Exit(exit) = finished.end else { return None };
        if program.unstable_output {
            return Some(Self { exit, output: None });
        }
        let mut lines: Vec<_> = finished.stdout.split_inclusive(|byte| *byte == b'\n').collect();
        if program.any_order {
            lines.sort_unstable();
        }
        Some(Self::new(exit, &lines.concat()))
    }

    /// What left these bytes.
    pub fn new(exit: i32, output: &[u8]) -> Self {
        let sha256 = Sha256::digest(output).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { exit, output: Some(Output { bytes: output.len(), sha256 }) }
    }
}

/// The outcomes by program, one line each: name, exit code, bytes, digest; `-` for an unstable output.
pub type Outcomes = BTreeMap<String, Outcome>;

/// Reads recorded outcomes.
///
/// # Errors
/// The file cannot be read or a line has another form.
pub fn read_outcomes(path: &Path) -> Result<Outcomes> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut outcomes = Outcomes::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [name, exit, bytes, sha256] = fields[..] else {
            bail!("{}: not four fields: {line}", path.display());
        };
        let output = match bytes {
            "-" => None,
            _ => Some(Output { bytes: bytes.parse().context("bytes")?, sha256: sha256.to_owned() }),
        };
        outcomes.insert(name.to_owned(), Outcome { exit: exit.parse().context("exit code")?, output });
    }
    Ok(outcomes)
}

/// Writes recorded outcomes as [`read_outcomes`] reads them.
///
/// # Errors
/// The file cannot be written.
pub fn write_outcomes(path: &Path, outcomes: &Outcomes) -> Result<()> {
    let mut text = String::from(
        "# What binaries of the original compiler (1.0, 32-bit) left: name, exit code, bytes and SHA-256 of stdout.\n\
         # Written by ebb-corpus --record.\n",
    );
    for (name, outcome) in outcomes {
        let (bytes, sha256) = match &outcome.output {
            Some(output) => (output.bytes.to_string(), output.sha256.as_str()),
            None => ("-".to_owned(), "-"),
        };
        text += &format!("{name} {} {bytes} {sha256}\n", outcome.exit);
    }
    fs::write(path, text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builds;

    fn repository(path: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
    }

    #[test]
    fn every_program_has_a_recorded_outcome_and_no_other_has() {
        let programs = read_programs(&repository("cyclone/corpus/programs.toml")).expect("the table is well-formed");
        let outcomes = read_outcomes(&repository("cyclone/corpus/expected")).expect("the record is well-formed");
        let builds = builds::read(&repository("cyclone/corpus/builds.toml")).expect("the table is well-formed");
        let mut named: BTreeSet<_> = programs.iter().map(|program| program.name.clone()).collect();
        for build in &builds {
            named.extend(build.runs().iter().filter(|run| run.stored.is_none()).map(|run| build.recorded(run)));
        }
        let recorded: BTreeSet<_> = outcomes.keys().cloned().collect();
        assert_eq!(named, recorded);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("expected");
        let output = Output { bytes: 3, sha256: "00ff".into() };
        let outcomes = Outcomes::from([
            ("a".to_owned(), Outcome { exit: 0, output: Some(output) }),
            ("b".to_owned(), Outcome { exit: 1, output: None }),
        ]);
        write_outcomes(&path, &outcomes).expect("it can be written");
        assert_eq!(read_outcomes(&path).expect("it can be read"), outcomes);
    }

    #[test]
    fn a_line_of_another_form_is_an_error() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("expected");
        fs::write(&path, "name 0 12\n").expect("it can be written");
        assert!(read_outcomes(&path).is_err());
    }
}
