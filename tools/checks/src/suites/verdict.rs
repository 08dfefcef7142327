//! What came of a test, and where that is kept.

use anyhow::{Context, Result};
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
const VERDICTS: [(Verdict, &str); 8] = [
    (Verdict::Passed, "pass"),
    (Verdict::NotApplicable, "not applicable"),
    (Verdict::Failed, "fail"),
    (Verdict::Broken, "broken"),
    (Verdict::Warned, "warn"),
    (Verdict::Signal, "signal"),
    (Verdict::TimedOut, "time-out"),
    (Verdict::SystemLost, "system lost"),
];

impl Verdict {
    /// Its name.
    pub fn name(self) -> &'static str {
        VERDICTS.iter().find(|(verdict, _)| *verdict == self).map_or("", |(_, name)| name)
    }

    fn from_name(name: &str) -> Option<Self> {
        VERDICTS.iter().find(|(_, known)| *known == name).map(|(verdict, _)| *verdict)
    }

    /// Whether a test that ended so has put its machine back in order.
    pub fn leaves_nothing(self) -> bool {
        matches!(self, Self::Passed | Self::NotApplicable)
    }
}

/// The results of one kernel: a file for each test, whose first line is the verdict, with what the test said behind it.
pub struct Kept {
    directory: PathBuf,
}

impl Kept {
    /// Those in a directory, which is made if it is missing.
    pub fn at(directory: PathBuf) -> Result<Self> {
        fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
        Ok(Self { directory })
    }

    /// Keeps a test's result in place of an earlier one.
    pub fn put(&self, test: &str, verdict: Verdict, output: &str) -> Result<()> {
        let path = self.path(test);
        fs::write(&path, format!("{}\n{output}", verdict.name())).with_context(|| format!("writing {}", path.display()))
    }

    /// A test's verdict and what it said, if it was run.
    pub fn get(&self, test: &str) -> Option<(Verdict, String)> {
        let text = String::from_utf8_lossy(&fs::read(self.path(test)).ok()?).into_owned();
        let (verdict, output) = text.split_once('\n')?;
        Some((Verdict::from_name(verdict)?, output.to_owned()))
    }

    /// A test's verdict, if it was run.
    pub fn verdict(&self, test: &str) -> Option<Verdict> {
        self.get(test).map(|(verdict, _)| verdict)
    }

    /// Where a test's result is. A suite's name may be part of a test's: `generic/001`.
    fn path(&self, test: &str) -> PathBuf {
        self.directory.join(test.replace('/', "-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_has_one_name() {
        for (verdict, name) in VERDICTS {
            assert_eq!(verdict.name(), name);
            assert_eq!(Verdict::from_name(name), Some(verdict));
        }
    }

    #[test]
    fn what_was_put_is_there_next_time() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::at(directory.path().join("results")).unwrap();
        assert_eq!(kept.get("generic/001"), None);
        kept.put("generic/001", Verdict::TimedOut, "one\ntwo\n").unwrap();
        assert_eq!(kept.get("generic/001"), Some((Verdict::TimedOut, "one\ntwo\n".into())));
    }
}
