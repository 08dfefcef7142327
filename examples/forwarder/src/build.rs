//! The forwarder's builds.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use plotters::style::RGBColor;

/// The forwarder, built in one way.
pub struct Build {
    pub name: &'static str,
    pub color: RGBColor,
    pub program: PathBuf,
    /// What its processes have in their environment.
    pub environment: &'static [(&'static str, &'static str)],
}

const SOURCES: [&str; 5] = ["forwarder.cyc", "peers.cyc", "routes.cyc", "stream.cyc", "wire.cyc"];

/// The collector's own setting, where Cyclone programs have one that lets the heap double between two collections.
const COLLECTOR_DEFAULTS: &[(&str, &str)] = &[("GC_FREE_SPACE_DIVISOR", "3")];

/// Builds the forwarder in all ways, into `directory`.
pub fn all(directory: &Path) -> Result<Vec<Build>> {
    let this_program = std::env::current_exe().context("finding this program")?;
    let mut builds = Vec::new();
    for (name, color, options, environment) in [
        ("collected", RGBColor(200, 40, 40), &["-O2"][..], &[][..]),
        ("collected by default", RGBColor(220, 140, 40), &["-O2"], COLLECTOR_DEFAULTS),
        ("counted", RGBColor(40, 80, 200), &["-O2", "-DCOUNTED"], &[]),
        ("counted, no collector", RGBColor(20, 140, 60), &["-O2", "-DCOUNTED", "--no-gc"], &[]),
    ] {
        let program = directory.join(format!("build-{}", builds.len()));
        let files = SOURCES.map(|name| sources().join(name));
        compile(Command::new(&this_program).args(["cyc", "build"]).args(options).args(files).arg("-o").arg(&program))?;
        builds.push(Build { name, color, program, environment });
    }
    Ok(builds)
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cyclone")
}

fn compile(command: &mut Command) -> Result<()> {
    let what = command.get_program().to_owned();
    let output = command.output().with_context(|| format!("running {}", what.display()))?;
    if !output.status.success() {
        let arguments: Vec<&OsStr> = command.get_args().collect();
        bail!("{} {:?}:\n{}", what.display(), arguments, String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
