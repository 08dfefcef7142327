//! The table of what the checkout itself builds: tools, library and compiler, and what they are run on.
//!
//! Each build has a folder of its own, to which files of the checkout are copied and in which everything is done, so that names of
//! files in outputs are those of the original's makefiles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// A program that is built from the checkout's sources.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    pub name: String,
    /// Builds whose programs this one runs.
    #[serde(default)]
    pub needs: Vec<String>,
    /// By folder in the build's folder: files of the checkout, or folders whose files are meant.
    pub files: BTreeMap<PathBuf, Vec<PathBuf>>,
    /// Files that the original's makefiles write, by name.
    #[serde(default)]
    pub texts: BTreeMap<PathBuf, String>,
    /// What makes sources, in this order.
    #[serde(default)]
    pub make: Vec<Make>,
    /// Names of what is compiled.
    pub sources: Vec<String>,
    /// What the compiler is told.
    #[serde(default)]
    pub options: Vec<String>,
    /// What only ours is told: headers and macros that the original's headers bring.
    #[serde(default)]
    pub ours: Vec<String>,
    #[serde(default)]
    pub run: Vec<Run>,
}

/// A command that makes a source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Make {
    /// The program of a build, and its arguments; `{bin}` in them is the folder with the programs.
    pub command: Vec<String>,
    /// Where its standard output goes.
    pub stdout: Option<PathBuf>,
}

/// A run of a program, and with what its output is compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub name: String,
    /// `{}` in everything stands for each of these in turn.
    #[serde(default)]
    pub each: Vec<String>,
    /// As in [`Make`].
    pub command: Vec<String>,
    #[serde(default)]
    pub exit: i32,
    /// The file that it makes; without one, its standard output counts.
    pub made: Option<PathBuf>,
    /// A file of the checkout that is the same; without one, the record says what the original's binaries made.
    pub stored: Option<PathBuf>,
    /// So many lines are rightly not as stored.
    pub differs: Option<Differs>,
}

/// Why an output is not as stored.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Differs {
    pub lines: usize,
    /// For the reader of the table.
    #[expect(dead_code, reason = "only so that no entry goes without")]
    why: String,
}

impl Build {
    /// The runs, one for each of those that stand for several.
    pub fn runs(&self) -> Vec<Run> {
        self.run.iter().flat_map(Run::expanded).collect()
    }

    /// The name under which a run's output is recorded.
    pub fn recorded(&self, run: &Run) -> String {
        format!("build/{}/{}", self.name, run.name)
    }
}

impl Run {
    fn expanded(&self) -> Vec<Self> {
        if self.each.is_empty() {
            return vec![self.clone()];
        }
        let filled = |text: &str, with: &str| text.replace("{}", with);
        let path =
            |path: &Option<PathBuf>, with: &str| path.as_ref().map(|path| filled(&path.to_string_lossy(), with).into());
        self.each
            .iter()
            .map(|with| Self {
                name: filled(&self.name, with),
                each: Vec::new(),
                command: self.command.iter().map(|word| filled(word, with)).collect(),
                made: path(&self.made, with),
                stored: path(&self.stored, with),
                ..self.clone()
            })
            .collect()
    }
}

#[derive(Deserialize)]
struct Table {
    build: Vec<Build>,
}

/// Reads the table of builds.
///
/// # Errors
/// It cannot be read, has unknown fields, two builds or two runs of a build have one name, or one needs another that does not come before it.
pub fn read(path: &Path) -> Result<Vec<Build>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let table: Table = toml::from_str(&text).with_context(|| path.display().to_string())?;
    let mut names = BTreeSet::new();
    for build in &table.build {
        if let Some(missing) = build.needs.iter().find(|need| !names.contains(need.as_str())) {
            bail!("{}: {} needs {missing}, which does not come before it", path.display(), build.name);
        }
        if !names.insert(build.name.as_str()) {
            bail!("{}: two builds are named {}", path.display(), build.name);
        }
        let mut runs = BTreeSet::new();
        if let Some(twice) = build.runs().into_iter().find(|run| !runs.insert(run.name.clone())) {
            bail!("{}: two runs of {} are named {}", path.display(), build.name, twice.name);
        }
    }
    Ok(table.build)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Result<Vec<Build>> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("builds.toml");
        fs::write(&path, text).expect("it can be written");
        read(&path)
    }

    #[test]
    fn a_run_may_stand_for_several() {
        let builds = table(
            "[[build]]\nname = 'a'\nfiles = { '.' = ['src'] }\nsources = ['a.cyc']\n\
             [[build.run]]\nname = '{}.c'\neach = ['x', 'y']\ncommand = ['a', '{}.cyc', '{bin}/a']\nstored = 'gen/{}.c'\n",
        )
        .expect("the table is well-formed");
        let runs = builds[0].runs();
        assert_eq!(runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>(), ["x.c", "y.c"]);
        assert_eq!(runs[1].command, ["a", "y.cyc", "{bin}/a"]);
        assert_eq!(runs[1].stored, Some("gen/y.c".into()));
    }

    #[test]
    fn what_a_build_needs_comes_before_it() {
        let needing = "[[build]]\nname = 'b'\nneeds = ['a']\nfiles = {}\nsources = []\n";
        let needed = "[[build]]\nname = 'a'\nfiles = {}\nsources = []\n";
        assert!(table(&format!("{needed}{needing}")).is_ok());
        assert!(table(&format!("{needing}{needed}")).is_err());
    }
}
