//! Has QEMU count the instructions that a guest runs between two marks: what `tools/bench/plugin` says.

use crate::programs;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where the processor was: instructions between two marks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Count {
    /// In programs.
    pub user: f64,
    /// In the kernel.
    pub kernel: f64,
}

impl Count {
    /// In both.
    pub fn total(&self) -> f64 {
        self.user + self.kernel
    }
}

/// QEMU's plugin, and where it writes.
pub struct Plugin {
    library: PathBuf,
    windows: PathBuf,
}

impl Plugin {
    /// Compiles it into `directory`.
    ///
    /// # Errors
    /// The compiler is not installed, or fails.
    pub fn compile(directory: &Path) -> Result<Self> {
        Ok(Self { library: programs::compile_plugin(directory)?, windows: directory.join("windows") })
    }

    /// What QEMU is told with `-plugin`. With `profiles` the instructions of each block of the kernel's code are counted as well, for [`profile::write`](crate::profile::write).
    ///
    /// # Errors
    /// That directory cannot be made.
    pub fn option(&self, profiles: Option<&Path>) -> Result<String> {
        let mut option = OsString::from(&self.library);
        option.push(",out=");
        option.push(&self.windows);
        if let Some(profiles) = profiles {
            std::fs::create_dir_all(profiles).with_context(|| format!("making {}", profiles.display()))?;
            option.push(",profile=");
            option.push(profiles);
        }
        Ok(option.to_string_lossy().into_owned())
    }

    /// What a machine that has ended counted: as many pairs of marks as it should have met.
    ///
    /// # Errors
    /// It met another number of them.
    pub fn counts(&self, windows: usize) -> Result<Vec<Count>> {
        let text = std::fs::read_to_string(&self.windows).context("reading what QEMU's plugin counted")?;
        let counts: Vec<Count> = text.lines().filter_map(count).collect();
        if counts.len() != windows {
            bail!("QEMU's plugin saw {} of {windows} rows; it is for QEMU 4.2 to 8.1", counts.len());
        }
        Ok(counts)
    }
}

/// A line of the plugin's: `user<TAB>kernel`.
fn count(line: &str) -> Option<Count> {
    let (user, kernel) = line.split_once('\t')?;
    Some(Count { user: user.parse().ok()?, kernel: kernel.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_from_other_text() {
        assert_eq!(count("10\t20"), Some(Count { user: 10.0, kernel: 20.0 }));
        assert_eq!(count(""), None);
    }
}
