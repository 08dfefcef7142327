//! The stage of rejected programs: our error lines against those that are stored beside them in the checkout.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result};

use crate::passing::Results;
use crate::process::{End, run};
use crate::{Corpus, Verbosity};

/// A program full of errors, and where its messages are stored, both in `tests/`.
const FILES: [(&str, &str); 6] = [
    ("fail1.cyc", "fail1.out"),
    ("fail2.cyc", "fail2.out"),
    ("fail3.cyc", "fail3.out"),
    ("fail4.cyc", "fail4.out"),
    ("testaqualfail.cyc", "taf.out"),
    ("testaqualdefaults.cyc", "tad.out"),
];

/// The numbers of the lines of `file` that messages are about: lines of the form `file:line: ...`.
///
/// `wanted` says which of the rest of such a line counts.
fn lines_with_errors(messages: &str, file: &str, wanted: impl Fn(&str) -> bool) -> BTreeSet<u32> {
    messages
        .lines()
        .filter_map(|message| {
            let (before, rest) = message.split_once(':')?;
            let name = Path::new(before).file_name()?;
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            (name == OsStr::new(file) && wanted(&rest[digits..])).then(|| rest[..digits].parse().ok())?
        })
        .collect()
}

/// Compares them and prints one line per file and a total.
///
/// # Errors
/// A file of the checkout cannot be read, or the compiler cannot be started.
pub fn stage(corpus: &Corpus, results: &mut Results) -> Result<()> {
    let tests = corpus.checkout.join("tests");
    let (mut all_stored, mut all_common, mut all_ours) = (0, 0, 0);
    println!("error lines             stored    ours  common  agreement");
    for (program, messages) in FILES {
        if !corpus.chosen(program) {
            continue;
        }
        let stored = fs::read(tests.join(messages)).with_context(|| tests.join(messages).display().to_string())?;
        let stored = lines_with_errors(&String::from_utf8_lossy(&stored), program, |_| true);
        // What was no error then.
        let arguments = ["check", "--plain", "--compat=1.0", program].map(OsStr::new);
        let finished = run(&corpus.cyc, &arguments, &tests, File::open("/dev/null")?, corpus.limits)?;
        let ours = lines_with_errors(&finished.stderr, program, |rest| rest.contains("error"));
        let common = stored.intersection(&ours).count();
        println!(
            "{program:<22}  {:>6}  {:>6}  {common:>6}  {:>8.1}%{}",
            stored.len(),
            ours.len(),
            percent(common, stored.len()),
            match finished.end {
                End::Exit(0) => "  (accepted)",
                End::Exit(1) => "",
                _ => "  (the compiler failed)",
            }
        );
        if corpus.verbosity == Verbosity::All {
            println!("  missed: {:?}", stored.difference(&ours).collect::<Vec<_>>());
            println!("  only ours: {:?}", ours.difference(&stored).collect::<Vec<_>>());
        }
        for line in stored.union(&ours) {
            let agreed = stored.contains(line) && ours.contains(line);
            if stored.contains(line) {
                results.note(format!("error {program} {line}"), agreed);
            }
        }
        all_stored += stored.len();
        all_ours += ours.len();
        all_common += common;
    }
    println!(
        "all                     {all_stored:>6}  {all_ours:>6}  {all_common:>6}  {:>8.1}%\n",
        percent(all_common, all_stored)
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "some hundreds of lines")]
fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_about_the_file_itself_count_and_each_line_once() {
        let messages = "\nbad.cyc:8: cannot do this\n  because of that\n./bad.cyc:8: again\nother.h:3: no\nbad.cyc:21:4: x\nbad.cyc: y";
        assert_eq!(lines_with_errors(messages, "bad.cyc", |_| true), BTreeSet::from([8, 21]));
    }

    #[test]
    fn warnings_are_left_out_of_ours() {
        let messages = "bad.cyc:8: warning: odd\nbad.cyc:9: error: wrong\n";
        assert_eq!(lines_with_errors(messages, "bad.cyc", |rest| rest.contains("error")), BTreeSet::from([9]));
    }
}
