//! What is built of the suite, and which tests it has.

use super::NAME;
use crate::suites::build::{Recipe, directory, parallel};
use anyhow::{Context, Result, ensure};
use ebb_guest::Mebibytes;
use std::fs;
use std::path::{Path, PathBuf};

/// The groups of the tests, as the built suite lists them.
const GROUPS: &str = "tests/generic/group.list";
/// What stands before a test's number in its name.
const KIND: &str = "generic";
/// The groups that a test must be in.
const WANTED: [&str; 2] = ["auto", "quick"];

/// How large each disk for tests is. Tests that want more do not run; larger ones make those slow that fill them.
pub const DISK_SIZE: Mebibytes = Mebibytes(1024);

/// The built suite.
pub struct Suite {
    /// A file system with all of it.
    pub disk: PathBuf,
    /// A disk for tests with an empty file system.
    pub formatted: PathBuf,
    /// The names of the tests, in the suite's order.
    pub tests: Vec<String>,
}

impl Suite {
    /// Builds what is in `checkout`, unless it is built; `doing` is told each step.
    pub fn build(checkout: &Path, doing: impl FnMut(&str)) -> Result<Self> {
        ensure!(checkout.join("check").is_file(), "{} is not a checkout of xfstests", checkout.display());
        let disk = directory(NAME).join("suite.ext4");
        let formatted = directory(NAME).join("formatted.ext4");
        let built = directory(NAME).join("built");
        let recipe =
            Recipe { name: NAME, makes: &[&disk, &formatted, &built], steps: steps(&built, &disk, &formatted) };
        let source = recipe.build(checkout, doing)?;
        let list = source.join(GROUPS);
        let text = fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
        Ok(Self { disk, formatted, tests: wanted(&text) })
    }
}

/// Each step of the build, for a shell in the sources, and what it does.
fn steps(built: &Path, disk: &Path, formatted: &Path) -> Vec<(&'static str, String)> {
    const MAKE: &str = "PATH=\"$PATH:/usr/sbin\" mke2fs -q -F -t ext4";
    let (built, disk, jobs) = (built.display(), disk.display(), parallel());
    vec![
        ("making `configure`", "make configure".to_owned()),
        ("configuring", "./configure".to_owned()),
        ("building the tests", format!("make -j{jobs}")),
        (
            "making a disk of them",
            format!(
                "mkdir '{built}'; tar -c --exclude=.git --exclude='*.[cho]' . | tar -x -C '{built}'; \
                 {MAKE} -d '{built}' '{disk}' 256M"
            ),
        ),
        ("formatting a disk for tests", format!("{MAKE} '{}' {}M", formatted.display(), DISK_SIZE.0)),
    ]
}

/// The tests that are in all wanted groups. A line has a test's number and its groups.
fn wanted(groups: &str) -> Vec<String> {
    let lines = groups.lines().filter(|line| !line.starts_with('#'));
    let test = |line: &str| {
        let mut words = line.split_whitespace();
        let number = words.next()?;
        let groups: Vec<_> = words.collect();
        WANTED.iter().all(|group| groups.contains(group)).then(|| format!("{KIND}/{number}"))
    };
    lines.filter_map(test).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_in_all_wanted_groups() {
        let tests = wanted(
            "# a comment\n\n001 rw dir auto quick\n017 rw auto\n019 quick\n020 attr auto quick_\n1226 auto quick\n",
        );
        assert_eq!(tests, ["generic/001", "generic/1226"]);
    }
}
