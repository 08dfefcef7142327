//! What the end of a test of the Linux Test Project means.

use crate::suites::verdict::Verdict;
use ebb_guest::Exit;

/// The bits of a test's exit code, from the suite's `tst_res_flags.h`.
const FAILED: u8 = 1;
const BROKEN: u8 = 2;
const WARNED: u8 = 4;
const NOT_APPLICABLE: u8 = 32;

/// What the suite's library says of a test that takes too long, which it ends as a broken one.
const TIMED_OUT: &str = "Test timeouted";

/// What a test's end and output say.
pub fn of(exit: Exit, output: &str) -> Verdict {
    match exit {
        Exit::Signal(_) => Verdict::Signal,
        // A shell tells of a signal so, and of a program that it cannot start.
        Exit::Code(128..) => Verdict::Signal,
        Exit::Code(64..) => Verdict::Broken,
        Exit::Code(0) => Verdict::Passed,
        Exit::Code(_) if output.contains(TIMED_OUT) => Verdict::TimedOut,
        Exit::Code(code) if code & FAILED != 0 => Verdict::Failed,
        Exit::Code(code) if code & BROKEN != 0 => Verdict::Broken,
        Exit::Code(code) if code & WARNED != 0 => Verdict::Warned,
        Exit::Code(NOT_APPLICABLE) => Verdict::NotApplicable,
        Exit::Code(_) => Verdict::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_a_set_of_bits() {
        let of = |code| of(Exit::Code(code), "");
        assert_eq!(of(0), Verdict::Passed);
        assert_eq!(of(32), Verdict::NotApplicable);
        assert_eq!(of(33), Verdict::Failed);
        assert_eq!(of(34), Verdict::Broken);
        assert_eq!(of(36), Verdict::Warned);
        assert_eq!(of(127), Verdict::Broken);
        assert_eq!(of(139), Verdict::Signal);
        assert_eq!(super::of(Exit::Signal(11), ""), Verdict::Signal);
        assert_eq!(super::of(Exit::Code(2), "Test timeouted, sending SIGKILL!"), Verdict::TimedOut);
    }
}
