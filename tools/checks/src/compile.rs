//! Compiling the checks into static programs, those whose sources changed.

use crate::suites::build::parallel;
use anyhow::{Context, Result, bail};
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::SystemTime;

/// Where the checks' sources are, seen from the top of the repository.
pub const CHECKS: &str = "user/checks";

/// A check program.
pub struct Compiled {
    /// `subsystem/program`.
    pub name: String,
    /// The static program.
    pub path: PathBuf,
}

/// Compiles every C file in the folders of `user/checks` and every Rust program in `user/checks/rust`, and returns them by
/// name. A file that does not compile is an error.
pub fn all() -> Result<Vec<Compiled>> {
    let mut programs = c_programs()?;
    programs.extend(rust_programs()?);
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

/// The program that starts every other one on both systems, built if its source changed.
pub fn launcher() -> Result<PathBuf> {
    let source = Path::new(CHECKS).join("launch.c");
    let path = output_directory().join("checks/launch");
    if modified(&path).is_none_or(|built| Some(built) < modified(&source)) {
        compile(&source, &path)?;
    }
    Ok(path)
}

/// Where built programs go.
fn output_directory() -> PathBuf {
    let directory = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    // Absolute: the programs are started in directories of their own.
    std::path::absolute(&directory).unwrap_or(directory)
}

fn c_programs() -> Result<Vec<Compiled>> {
    let header_time = modified(&Path::new(CHECKS).join("check.h"));
    let mut programs = Vec::new();
    let mut stale = Vec::new();
    for folder in entries(Path::new(CHECKS))?.into_iter().filter(|path| path.is_dir()) {
        let headers = entries(&folder)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "h"));
        let header_time = headers.map(|path| modified(&path)).fold(header_time, Option::max);
        for source in entries(&folder)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "c")) {
            let name = format!("{}/{}", file_stem(&folder), file_stem(&source));
            let path = output_directory().join("checks").join(&name);
            let built = modified(&path);
            if built.is_none() || built < modified(&source) || built < header_time {
                stale.push((source, path.clone()));
            }
            programs.push(Compiled { name, path });
        }
    }
    let stale = Mutex::new(stale.into_iter());
    let next = || stale.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        let compiler = || -> Result<()> {
            while let Some((source, path)) = next() {
                compile(&source, &path)?;
            }
            Ok(())
        };
        let compilers: Vec<_> = (0..parallel()).map(|_| scope.spawn(compiler)).collect();
        compilers.into_iter().try_for_each(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })?;
    Ok(programs)
}

fn compile(source: &Path, path: &Path) -> Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    }
    let output = Command::new("musl-gcc")
        .args(["-static", "-O1", "-pthread", "-Wall", "-Werror", "-I", CHECKS, "-o"])
        .arg(path)
        .arg(source)
        .output()
        .context("running musl-gcc (on Debian and Ubuntu: apt-get install musl-tools)")?;
    if !output.status.success() {
        bail!("{} does not compile:\n{}", source.display(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn rust_programs() -> Result<Vec<Compiled>> {
    let folder = Path::new(CHECKS).join("rust/src/bin");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let sources = entries(&folder)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let target = "x86_64-unknown-linux-gnu";
    let status = Command::new("tools/build/host-cargo")
        .args(["build", "--quiet", "--release", "-p", "ebb-user-checks", "--target", target])
        .env(
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
            "-C target-feature=+crt-static -C relocation-model=static",
        )
        .status()
        .context("running cargo")?;
    if !status.success() {
        bail!("the checks in {} do not compile", folder.display());
    }
    let built = output_directory().join(target).join("release");
    Ok(sources
        .map(|source| {
            let stem = file_stem(&source);
            Compiled { name: format!("rust/{stem}"), path: built.join(stem) }
        })
        .collect())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let context = || format!("reading {} (is this the top of the repository?)", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(context)? {
        paths.push(entry.with_context(context)?.path());
    }
    paths.sort();
    Ok(paths)
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn file_stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
