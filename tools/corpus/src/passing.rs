//! What is known to work: a run may add to it, and fails where something of it is lost.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Facts about the corpus, one a line, such as `run ours hello` or `parse tests/hello.cyc`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Passing(BTreeSet<String>);

const COMMENT: &str = "# What is known to work, one fact a line. Written by ebb-corpus --accept.\n";

impl Passing {
    /// Reads the list.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Ok(Self(text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(str::to_owned).collect()))
    }

    /// Writes the list.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let lines: String = self.0.iter().map(|fact| format!("{fact}\n")).collect();
        fs::write(path, format!("{COMMENT}{lines}")).with_context(|| path.display().to_string())
    }

    /// Takes the results of this run into the list.
    pub fn take(&mut self, results: &Results) {
        self.0.retain(|fact| !results.failed.contains(fact));
        self.0.extend(results.passed.iter().cloned());
    }
}

/// What this run found out.
#[derive(Debug, Default)]
pub struct Results {
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
}

impl Results {
    /// Notes that a fact holds or does not.
    pub fn note(&mut self, fact: String, holds: bool) {
        if holds { &mut self.passed } else { &mut self.failed }.insert(fact);
    }

    /// What was known to work and does no longer.
    pub fn lost<'a>(&'a self, known: &'a Passing) -> impl Iterator<Item = &'a String> {
        self.failed.intersection(&known.0)
    }

    /// What works and was not known to.
    pub fn gained<'a>(&'a self, known: &'a Passing) -> impl Iterator<Item = &'a String> {
        self.passed.difference(&known.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(passed: &[&str], failed: &[&str]) -> Results {
        let mut results = Results::default();
        passed.iter().for_each(|fact| results.note((*fact).to_owned(), true));
        failed.iter().for_each(|fact| results.note((*fact).to_owned(), false));
        results
    }

    #[test]
    fn what_was_known_and_fails_is_lost_and_what_is_new_is_gained() {
        let known = Passing(BTreeSet::from(["a".to_owned(), "b".to_owned(), "not run".to_owned()]));
        let results = results(&["a", "c"], &["b", "d"]);
        assert_eq!(results.lost(&known).collect::<Vec<_>>(), ["b"]);
        assert_eq!(results.gained(&known).collect::<Vec<_>>(), ["c"]);
    }

    #[test]
    fn accepting_keeps_what_was_not_run() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("passing");
        let mut known = Passing(BTreeSet::from(["a".to_owned(), "b".to_owned(), "not run".to_owned()]));
        known.take(&results(&["a", "c"], &["b"]));
        known.write(&path).expect("it can be written");
        let again = Passing::read(&path).expect("it can be read");
        assert_eq!(again, known);
        assert_eq!(again.0.iter().collect::<Vec<_>>(), ["a", "c", "not run"]);
    }
}
