//! What the suite says of a test.

use crate::suites::verdict::Verdict;
use ebb_guest::Exit;

/// What stands before the reason why a test is not run.
const NOT_RUN: &str = "[not run]";

/// What a test's end and output say.
pub fn of(exit: Exit, output: &str) -> Verdict {
    match exit {
        // The suite ends so for a test that is not run, too, and where the test is unknown.
        Exit::Code(0) if output.contains(NOT_RUN) => Verdict::NotApplicable,
        Exit::Code(0) if output.contains("Passed all 1 tests") => Verdict::Passed,
        _ => Verdict::Failed,
    }
}

/// Why a test is not run.
pub fn reason(output: &str) -> Option<&str> {
    let (_, rest) = output.split_once(NOT_RUN)?;
    rest.lines().next().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_RUN: &str = "generic/009        [not run] xfs_io fiemap  failed (old kernel/wrong fs?)\nRan: generic/009\n\
         Not run: generic/009\nPassed all 1 tests\n";

    #[test]
    fn a_test_that_is_not_run_is_none_that_passed() {
        assert_eq!(of(Exit::Code(0), "generic/001  75s\nRan: generic/001\nPassed all 1 tests\n"), Verdict::Passed);
        assert_eq!(of(Exit::Code(0), NOT_RUN), Verdict::NotApplicable);
        assert_eq!(of(Exit::Code(0), "generic/9 - unknown test, ignored\nPassed all 0 tests\n"), Verdict::Failed);
        assert_eq!(of(Exit::Code(1), "Failures: generic/035\nFailed 1 of 1 tests\n"), Verdict::Failed);
    }

    #[test]
    fn the_reason_is_the_rest_of_the_line() {
        assert_eq!(reason(NOT_RUN), Some("xfs_io fiemap  failed (old kernel/wrong fs?)"));
        assert_eq!(reason("generic/001  75s\n"), None);
    }
}
