//! The counts and the table by cause.

use super::verdict::{Kept, Verdict};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What a test without a cause is listed under.
const UNEXPLAINED: &str = "unexplained";

/// Why tests do not pass: a file has a line for each pattern of names, which is its first word, and the cause behind it. The first pattern that fits a name counts; `*` stands for anything.
pub struct Causes(Vec<(String, String)>);

impl Causes {
    /// Those in a file of the repository.
    pub fn read(path: &str) -> Result<Self> {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("reading {path} (is this the top of the repository?)"))?;
        Self::parse(&text).with_context(|| path.to_owned())
    }

    fn parse(text: &str) -> Result<Self> {
        let mut causes = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let Some((pattern, cause)) = line.split_once(' ') else { bail!("no cause in the line `{line}`") };
            causes.push((pattern.to_owned(), cause.trim().to_owned()));
        }
        Ok(Self(causes))
    }

    fn of(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(pattern, _)| fits(pattern, name)).map(|(_, cause)| cause.as_str())
    }
}

/// Whether a name is what a pattern says.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => {
            let Some(tail) = name.strip_prefix(start) else { return false };
            (0..=tail.len()).filter_map(|at| tail.get(at..)).any(|tail| fits(rest, tail))
        }
    }
}

/// A test that does not pass, and how it ended; `None`: there is no result.
type Missing = (String, Option<Verdict>);

/// What is known of all tests.
pub struct Report {
    /// Which verdicts there are, in the table's order.
    verdicts: &'static [Verdict],
    /// Of Ebb, and of Linux where it was run, by verdict.
    counts: BTreeMap<Verdict, [usize; 2]>,
    /// Whether Linux was run.
    is_compared: bool,
    /// Tests that do not pass, by cause: those that pass on Linux, or, without Linux, those that do not say that they do not apply.
    missing: BTreeMap<String, Vec<Missing>>,
}

impl Report {
    /// Of these tests, from what is kept of them on Ebb and on Linux.
    pub fn new(tests: &[String], causes: &Causes, (ebb, linux): (&Kept, &Kept), verdicts: &'static [Verdict]) -> Self {
        let is_compared = tests.iter().any(|test| linux.verdict(test).is_some());
        let mut report = Self { verdicts, counts: BTreeMap::new(), is_compared, missing: BTreeMap::new() };
        for test in tests {
            let verdicts = [ebb.verdict(test), linux.verdict(test)];
            for (which, verdict) in verdicts.into_iter().enumerate() {
                if let Some(verdict) = verdict {
                    report.counts.entry(verdict).or_default()[which] += 1;
                }
            }
            let [verdict, reference] = verdicts;
            let is_expected = match reference {
                Some(reference) => reference == Verdict::Passed,
                // What ran on neither was not asked for.
                None => verdict.is_some_and(|verdict| verdict != Verdict::NotApplicable),
            };
            if is_expected && verdict != Some(Verdict::Passed) {
                let cause = causes.of(test).unwrap_or(UNEXPLAINED).to_owned();
                report.missing.entry(cause).or_default().push((test.clone(), verdict));
            }
        }
        report
    }

    /// As the page has it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = match self.is_compared {
            true => writeln!(text, "| | Ebb | Linux |\n| --- | ---: | ---: |"),
            false => writeln!(text, "| | Ebb |\n| --- | ---: |"),
        };
        for verdict in self.verdicts {
            let (name, [ebb, linux]) = (verdict.name(), self.counts.get(verdict).copied().unwrap_or_default());
            let _ = match self.is_compared {
                true => writeln!(text, "| {name} | {ebb} | {linux} |"),
                false => writeln!(text, "| {name} | {ebb} |"),
            };
        }
        let total: usize = self.missing.values().map(Vec::len).sum();
        let whose = if self.is_compared { "that pass on Linux and not on Ebb" } else { "that do not pass" };
        let _ = writeln!(text, "\n{total} tests {whose}:\n\n| tests | cause | |\n| ---: | --- | --- |");
        for (cause, tests) in self.by_size() {
            let names: Vec<_> = tests
                .iter()
                .map(|(name, verdict)| match verdict {
                    Some(Verdict::Failed | Verdict::Broken) => format!("`{name}`"),
                    Some(other) => format!("`{name}` ({})", other.name()),
                    None => format!("`{name}` (no result)"),
                })
                .collect();
            let _ = writeln!(text, "| {} | {cause} | {} |", tests.len(), names.join(" "));
        }
        text
    }

    /// What is unexplained, then the causes of most tests first.
    fn by_size(&self) -> Vec<(&str, &[Missing])> {
        let mut causes: Vec<_> = self.missing.iter().map(|(cause, tests)| (cause.as_str(), tests.as_slice())).collect();
        causes.sort_by_key(|(cause, tests)| (*cause != UNEXPLAINED, usize::MAX - tests.len()));
        causes
    }

    /// So many tests pass on Ebb, and so many that should do not.
    pub fn passed_and_missing(&self) -> (usize, usize) {
        let passed = self.counts.get(&Verdict::Passed).map_or(0, |counts| counts[0]);
        (passed, self.missing.values().map(Vec::len).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pattern_that_fits_counts() {
        let causes = Causes::parse("# a comment\nshm* shared memory\nshmat9 never\nfoo*bar3 both ends\n").unwrap();
        assert_eq!(causes.of("shmat9"), Some("shared memory"));
        assert_eq!(causes.of("foobar3"), Some("both ends"));
        assert_eq!(causes.of("foo_bar_bar3"), Some("both ends"));
        assert_eq!(causes.of("foobar4"), None);
        assert_eq!(causes.of("ashm"), None);
        assert!(Causes::parse("alone\n").is_err());
    }

    #[test]
    fn what_passes_on_linux_and_has_no_result_here_is_missing() {
        const ALL: &[Verdict] = &[Verdict::Passed, Verdict::Failed];
        let directory = tempfile::tempdir().unwrap();
        let [ebb, linux] = ["ebb", "linux"].map(|name| Kept::at(directory.path().join(name)).unwrap());
        linux.put("lost", Verdict::Passed, "").unwrap();
        linux.put("both", Verdict::Passed, "").unwrap();
        ebb.put("both", Verdict::Passed, "").unwrap();
        ebb.put("here", Verdict::Failed, "").unwrap();
        let tests = ["lost", "both", "here", "neither"].map(str::to_owned);
        let report = Report::new(&tests, &Causes::parse("").unwrap(), (&ebb, &linux), ALL);
        assert_eq!(report.passed_and_missing(), (1, 2));
        assert!(report.text().contains("`lost` (no result)"), "{}", report.text());
        assert!(!report.text().contains("neither"));
    }

    #[test]
    fn the_causes_in_the_repository_can_be_read() {
        let (ltp, xfstests) =
            (include_str!("../../../../user/ltp/causes.txt"), include_str!("../../../../user/xfstests/causes.txt"));
        assert!([ltp, xfstests].iter().all(|text| !Causes::parse(text).unwrap().0.is_empty()));
    }
}
