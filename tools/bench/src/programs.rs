//! Compiles the measuring programs.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiled programs; each runs as process 1 and powers the machine off.
pub struct Programs {
    /// Prints when the first user instruction ran.
    pub boot: PathBuf,
    /// Prints what calls and faults cost.
    pub bench: PathBuf,
}

/// Compiles both into `directory`.
pub fn compile(directory: &Path) -> Result<Programs> {
    let programs = Programs { boot: directory.join("boot"), bench: directory.join("bench") };
    build("gcc", &["-nostdlib", "-static", "-O1", "-fno-stack-protector"], "user/bench/boot.c", &programs.boot)?;
    build("musl-gcc", &["-static", "-O2", "-pthread"], "user/bench/bench.c", &programs.bench)?;
    Ok(programs)
}

fn build(compiler: &str, flags: &[&str], source: &str, output: &Path) -> Result<()> {
    let done = Command::new(compiler)
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(output)
        .output()
        .with_context(|| format!("running {compiler} (on Debian and Ubuntu: apt-get install gcc musl-tools)"))?;
    if !done.status.success() {
        bail!("{source} does not compile:\n{}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(())
}
