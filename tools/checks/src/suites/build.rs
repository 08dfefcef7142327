//! Building a suite: a copy of the checkout is built once, below the build's directory. The checkout itself is only read.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where all of a suite is kept.
pub fn directory(suite: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let path = target.join(suite);
    std::path::absolute(&path).unwrap_or(path)
}

/// How a suite is built.
pub struct Recipe<'a> {
    /// What its directory is called, and what `tools/build/setup` knows it by.
    pub name: &'a str,
    /// What is made of the copy, beside it; removed before it is made anew.
    pub makes: &'a [&'a Path],
    /// Each step, for a shell in the copy, and what it does.
    pub steps: Vec<(&'a str, String)>,
}

impl Recipe<'_> {
    /// Builds what is in `checkout`, unless that was built; `doing` is told each step. Returns the copy.
    ///
    /// # Errors
    /// A step fails; what it said is told.
    pub fn build(&self, checkout: &Path, mut doing: impl FnMut(&str)) -> Result<PathBuf> {
        let directory = directory(self.name);
        let checkout = checkout.canonicalize().with_context(|| format!("finding {}", checkout.display()))?;
        let source = directory.join("source");
        let stamp = directory.join("built-from");
        let identity = identity(&checkout);
        if fs::read_to_string(&stamp).ok().as_ref() == Some(&identity) {
            return Ok(source);
        }
        doing("copying the sources");
        fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
        let stale = [&source, &stamp].into_iter().map(PathBuf::as_path).chain(self.makes.iter().copied());
        for path in stale.filter(|path| path.exists()) {
            let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            removed.with_context(|| format!("removing {}", path.display()))?;
        }
        self.step(Command::new("cp").arg("-R").arg(&checkout).arg(&source), "copying")?;
        for (what, command) in &self.steps {
            doing(what);
            self.step(Command::new("sh").args(["-ec", command]).current_dir(&source), what)?;
        }
        fs::write(&stamp, &identity).with_context(|| format!("writing {}", stamp.display()))?;
        Ok(source)
    }

    /// Runs a step of the build; what it says is in a file, whose end is told if it fails.
    fn step(&self, command: &mut Command, what: &str) -> Result<()> {
        let log = directory(self.name).join("build.log");
        let file = File::create(&log).with_context(|| format!("making {}", log.display()))?;
        command.stdout(file.try_clone()?).stderr(file);
        let status = command.status().with_context(|| format!("{what}: starting {command:?}"))?;
        if !status.success() {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let lines: Vec<_> = text.lines().collect();
            let end = lines[lines.len().saturating_sub(10)..].join("\n");
            bail!(
                "{what} failed (tools/build/setup {} installs what it takes; {} has all of this):\n{end}",
                self.name,
                log.display()
            );
        }
        Ok(())
    }
}

/// So many compilers or machines at a time.
pub fn parallel() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What tells one checkout from another: its place, and its commit where it has one.
fn identity(checkout: &Path) -> String {
    let output = Command::new("git").arg("-C").arg(checkout).args(["rev-parse", "HEAD"]).output();
    let commit = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    format!("{}\n{commit}\n", checkout.display())
}
