//! What came of a test, and where that is kept.

use super::suite;
use anyhow::{Context, Result};
use ebb_guest::Exit;
use std::fs;
use std::path::PathBuf;

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Passed,
    /// The test says that it does not apply.
    NotApplicable,
    Failed,
    /// Something that the test needs first did not work.
    Broken,
    /// Nothing failed, but something was odd.
    Warned,
    /// A signal ended it.
    Signal,
    TimedOut,
    /// The system ended with it.
    SystemLost,
}

/// All of them, with their names.
pub const VERDICTS: [(Verdict, &str); 8] = [
    (Verdict::Passed, "pass"),
    (Verdict::NotApplicable, "not applicable"),
    (Verdict::Failed, "fail"),
    (Verdict::Broken, "broken"),
    (Verdict::Warned, "warn"),
    (Verdict::Signal, "signal"),
    (Verdict::TimedOut, "time-out"),
    (Verdict::SystemLost, "system lost"),
];

/// The bits of a test's exit code, from the suite's `tst_res_flags.h`.
const FAILED: u8 = 1;
const BROKEN: u8 = 2;
const WARNED: u8 = 4;
const NOT_APPLICABLE: u8 = 32;

/// What the suite's library says of a test that takes too long, which it ends as a broken one.
const TIMED_OUT: &str = "Test timeouted";

impl Verdict {
    /// What a test's end and output say.
    pub fn of(exit: Exit, output: &str) -> Self {
        match exit {
            Exit::Signal(_) => Self::Signal,
            // A shell tells of a signal so, and of a program that it cannot start.
            Exit::Code(128..) => Self::Signal,
            Exit::Code(64..) => Self::Broken,
            Exit::Code(0) => Self::Passed,
            Exit::Code(_) if output.contains(TIMED_OUT) => Self::TimedOut,
            Exit::Code(code) if code & FAILED != 0 => Self::Failed,
            Exit::Code(code) if code & BROKEN != 0 => Self::Broken,
            Exit::Code(code) if code & WARNED != 0 => Self::Warned,
            Exit::Code(NOT_APPLICABLE) => Self::NotApplicable,
            Exit::Code(_) => Self::Broken,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        VERDICTS.iter().find(|(verdict, _)| *verdict == self).map_or("", |(_, name)| name)
    }

    fn from_name(name: &str) -> Option<Self> {
        VERDICTS.iter().find(|(_, known)| *known == name).map(|(verdict, _)| *verdict)
    }
}

/// The results of one kernel: a file for each test, whose first line is the verdict, with what the test said behind it.
pub struct Kept {
    directory: PathBuf,
}

impl Kept {
    /// Those of the kernel with this name.
    pub fn of(kernel: &str) -> Result<Self> {
        let directory = suite::directory().join("results").join(kernel);
        fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
        Ok(Self { directory })
    }

    /// Keeps a test's result in place of an earlier one.
    pub fn put(&self, test: &str, verdict: Verdict, output: &str) -> Result<()> {
        let path = self.path(test);
        fs::write(&path, format!("{}\n{output}", verdict.name())).with_context(|| format!("writing {}", path.display()))
    }

    /// A test's verdict, if it was run.
    pub fn verdict(&self, test: &str) -> Option<Verdict> {
        let text = fs::read(self.path(test)).ok()?;
        let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        Verdict::from_name(&String::from_utf8_lossy(line))
    }

    /// Where a test's result is.
    pub fn path(&self, test: &str) -> PathBuf {
        self.directory.join(test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_a_set_of_bits() {
        let of = |code| Verdict::of(Exit::Code(code), "");
        assert_eq!(of(0), Verdict::Passed);
        assert_eq!(of(32), Verdict::NotApplicable);
        assert_eq!(of(33), Verdict::Failed);
        assert_eq!(of(34), Verdict::Broken);
        assert_eq!(of(36), Verdict::Warned);
        assert_eq!(of(127), Verdict::Broken);
        assert_eq!(of(139), Verdict::Signal);
        assert_eq!(Verdict::of(Exit::Signal(11), ""), Verdict::Signal);
        assert_eq!(Verdict::of(Exit::Code(2), "Test timeouted, sending SIGKILL!"), Verdict::TimedOut);
    }

    #[test]
    fn each_verdict_has_one_name() {
        for (verdict, name) in VERDICTS {
            assert_eq!(verdict.name(), name);
            assert_eq!(Verdict::from_name(name), Some(verdict));
        }
    }
}
