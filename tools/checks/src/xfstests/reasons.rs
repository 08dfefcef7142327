//! Why tests do not run: in their own words, for each kernel.

use super::verdict;
use crate::suites::Results;
use crate::suites::verdict::{Kept, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How many tests do not run for a reason: on Ebb, and on Linux.
type Counts = BTreeMap<String, [usize; 2]>;

/// A line for each reason, those of most tests first.
pub fn table(tests: &[String], results: &Results) -> String {
    let mut counts = Counts::new();
    for (which, kept) in [&results.ebb, &results.linux].into_iter().enumerate() {
        count(&mut counts, which, tests, kept);
    }
    let mut reasons: Vec<_> = counts.into_iter().collect();
    reasons.sort_by_key(|(_, counts)| usize::MAX - counts[0] - counts[1]);
    let mut text = "Why tests do not apply:\n\n| reason | Ebb | Linux |\n| --- | ---: | ---: |\n".to_owned();
    for (reason, [ebb, linux]) in reasons {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "| {reason} | {ebb} | {linux} |");
    }
    text
}

fn count(counts: &mut Counts, which: usize, tests: &[String], kept: &Kept) {
    for (verdict, output) in tests.iter().filter_map(|test| kept.get(test)) {
        if verdict == Verdict::NotApplicable {
            let reason = verdict::reason(&output).unwrap_or_default();
            counts.entry(in_a_cell(reason)).or_default()[which] += 1;
        }
    }
}

/// A text that ends no cell of a table.
fn in_a_cell(reason: &str) -> String {
    reason.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_for_each_kernel() {
        let directory = tempfile::tempdir().unwrap();
        let kept = |name| Kept::at(directory.path().join(name)).unwrap();
        let results = Results { ebb: kept("ebb"), linux: kept("linux") };
        for test in ["generic/1", "generic/2"] {
            results.ebb.put(test, Verdict::NotApplicable, &format!("{test} [not run] no  a|b\n")).unwrap();
        }
        results.linux.put("generic/1", Verdict::NotApplicable, "generic/1 [not run] no a|b\n").unwrap();
        results.linux.put("generic/2", Verdict::Passed, "").unwrap();
        let text = table(&["generic/1".into(), "generic/2".into(), "generic/3".into()], &results);
        assert!(text.ends_with("| no a\\|b | 2 | 1 |\n"), "{text}");
    }
}
