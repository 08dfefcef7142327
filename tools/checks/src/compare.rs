//! Comparing what one task did on two systems.

use crate::task::Outcome;
use ebb_guest::Exit;
use std::collections::HashMap;

/// How many checks went well and how many did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// One check for each line, and one for the end.
    pub tally: Tally,
    /// A line of text for each difference, and for what helps to understand it.
    pub differences: Vec<String>,
}

/// What counts as one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Each line `name: value`, found by its name.
    Line,
    /// The task as a whole.
    Task,
}

/// Compares the reference's outcome with Ebb's.
pub fn compare(reference: &Outcome, ebb: &Outcome, unit: Unit) -> Comparison {
    let mut comparison = Comparison::default();
    let (expected, actual) = (lines(reference), lines(ebb));
    match unit {
        Unit::Line => compare_by_name(&expected, &actual, &mut comparison),
        Unit::Task => compare_in_order(&expected, &actual, &mut comparison),
    }
    let (expected_end, actual_end) = (end(reference), end(ebb));
    let end_agrees = expected_end == actual_end && ends_by_itself(reference);
    if !end_agrees {
        comparison.differences.push(format!("end: Linux {expected_end}, Ebb {actual_end}"));
        for line in stderr(ebb).lines().take(20) {
            comparison.differences.push(format!("  | {line}"));
        }
    }
    match unit {
        Unit::Line if end_agrees => comparison.tally.passed += 1,
        Unit::Line => comparison.tally.failed += 1,
        Unit::Task if comparison.differences.is_empty() => comparison.tally = Tally { passed: 1, failed: 0 },
        Unit::Task => comparison.tally = Tally { passed: 0, failed: 1 },
    }
    comparison
}

fn compare_by_name(expected: &[String], actual: &[String], comparison: &mut Comparison) {
    // A name that appears several times is told apart by its count.
    fn keyed(lines: &[String]) -> Vec<((&str, usize), &str)> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let key = |line| {
            let (name, value) = str::split_once(line, ": ").unwrap_or((line, ""));
            let count = counts.entry(name).or_default();
            *count += 1;
            ((name, *count), value)
        };
        lines.iter().map(String::as_str).map(key).collect()
    }
    let (expected, actual) = (keyed(expected), keyed(actual));
    let actual_values: HashMap<_, _> = actual.iter().copied().collect();
    let expected_names: HashMap<_, _> = expected.iter().copied().collect();
    for (key, value) in &expected {
        match actual_values.get(key) {
            Some(other) if other == value => comparison.tally.passed += 1,
            Some(other) => {
                comparison.tally.failed += 1;
                comparison.differences.push(format!("{}: Linux `{value}`, Ebb `{other}`", key.0));
            }
            None => {
                comparison.tally.failed += 1;
                comparison.differences.push(format!("{}: Linux `{value}`, not printed on Ebb", key.0));
            }
        }
    }
    for (key, value) in actual.iter().filter(|(key, _)| !expected_names.contains_key(key)) {
        comparison.tally.failed += 1;
        comparison.differences.push(format!("{}: not printed on Linux, Ebb `{value}`", key.0));
    }
}

/// The lines that differ, up to a few: after the first the rest often follows from it.
fn compare_in_order(expected: &[String], actual: &[String], comparison: &mut Comparison) {
    const SHOWN: usize = 8;
    let length = expected.len().max(actual.len());
    let text = |lines: &[String], index: usize| lines.get(index).map_or("nothing".into(), |line| format!("`{line}`"));
    let different: Vec<usize> = (0..length).filter(|&index| expected.get(index) != actual.get(index)).collect();
    for &index in different.iter().take(SHOWN) {
        let (linux, ebb) = (text(expected, index), text(actual, index));
        comparison.differences.push(format!("line {}: Linux {linux}, Ebb {ebb}", index + 1));
    }
    if different.len() > SHOWN {
        comparison.differences.push(format!("and {} more lines", different.len() - SHOWN));
    }
}

fn lines(outcome: &Outcome) -> Vec<String> {
    match outcome {
        Outcome::Ended { stdout, .. } | Outcome::TimedOut { stdout } => {
            String::from_utf8_lossy(stdout).lines().map(str::to_owned).collect()
        }
        Outcome::SystemLost(_) => Vec::new(),
    }
}

fn end(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ended { exit, .. } => exit.to_string(),
        Outcome::TimedOut { .. } => "still running at its time limit".into(),
        Outcome::SystemLost(_) => "took the system down".into(),
    }
}

/// Whether the program came to its end. One that was killed on the reference (by its alarm, say) proves nothing, even if it was killed on
/// Ebb as well.
fn ends_by_itself(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Ended { exit: Exit::Code(_), .. })
}

fn stderr(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ended { stderr, .. } => String::from_utf8_lossy(stderr).into_owned(),
        Outcome::TimedOut { .. } => String::new(),
        Outcome::SystemLost(why) => why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(stdout: &str, code: u8) -> Outcome {
        Outcome::Ended { stdout: stdout.into(), stderr: b"hint".to_vec(), exit: Exit::Code(code) }
    }

    #[test]
    fn each_line_and_the_end_is_a_check() {
        let comparison = compare(&ended("a: 1\nb: 2\n", 0), &ended("b: 2\na: 1\n", 0), Unit::Line);
        assert_eq!(comparison, Comparison { tally: Tally { passed: 3, failed: 0 }, differences: vec![] });
    }

    #[test]
    fn differing_missing_and_additional_lines_fail() {
        let comparison = compare(&ended("a: 1\nb: 2\na: 3\n", 0), &ended("a: 1\nb: x\nc: 9\n", 1), Unit::Line);
        assert_eq!(comparison.tally, Tally { passed: 1, failed: 4 });
        assert_eq!(
            comparison.differences,
            [
                "b: Linux `2`, Ebb `x`",
                "a: Linux `3`, not printed on Ebb",
                "c: not printed on Linux, Ebb `9`",
                "end: Linux exit 0, Ebb exit 1",
                "  | hint"
            ]
        );
    }

    #[test]
    fn a_task_is_one_check_however_many_lines_differ() {
        let comparison = compare(&ended("x\ny\n", 0), &ended("x\nz\nw\n", 0), Unit::Task);
        assert_eq!(comparison.tally, Tally { passed: 0, failed: 1 });
        assert_eq!(comparison.differences, ["line 2: Linux `y`, Ebb `z`", "line 3: Linux nothing, Ebb `w`"]);
    }

    #[test]
    fn a_task_that_is_killed_on_both_systems_is_not_right() {
        let killed = Outcome::Ended { stdout: vec![], stderr: vec![], exit: Exit::Signal(14) };
        assert_eq!(compare(&killed, &killed, Unit::Line).tally, Tally { passed: 0, failed: 1 });
    }

    #[test]
    fn a_task_that_hangs_on_both_systems_is_not_right() {
        let hangs = Outcome::TimedOut { stdout: vec![] };
        assert_eq!(compare(&hangs, &hangs, Unit::Task).tally, Tally { passed: 0, failed: 1 });
    }
}
