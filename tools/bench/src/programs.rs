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
    /// Prints what operations cost where there are many of something.
    pub many: PathBuf,
    /// Prints for how long another process does not run while one ends that has very many of something.
    pub watch: PathBuf,
}

/// Compiles them into `directory`.
pub fn compile(directory: &Path) -> Result<Programs> {
    let [boot, bench, many, watch] = ["boot", "bench", "many", "watch"].map(|name| directory.join(name));
    let programs = Programs { boot, bench, many, watch };
    let alone = ["-nostdlib", "-static", "-O1", "-fno-stack-protector"];
    build("gcc", &alone, &["user/bench/boot.c".into()], &programs.boot)?;
    build("musl-gcc", &["-static", "-O2", "-pthread"], &["user/bench/bench.c".into()], &programs.bench)?;
    build("musl-gcc", &["-static", "-O2", "-pthread"], &["user/bench/watch.c".into()], &programs.watch)?;
    build("musl-gcc", &["-static", "-O2"], &sources_in("user/bench/many")?, &programs.many)?;
    Ok(programs)
}

/// Compiles the programs that measure what two cores reach, and how soon memory comes back.
pub fn compile_cores(directory: &Path) -> Result<[PathBuf; 2]> {
    let programs = ["cores", "reuse"];
    for program in programs {
        let source = format!("user/bench/{program}.c").into();
        build("musl-gcc", &["-static", "-O2", "-pthread"], &[source], &directory.join(program))?;
    }
    Ok(programs.map(|program| directory.join(program)))
}

/// Compiles the program that ends workloads with very many objects.
pub fn compile_groups(directory: &Path) -> Result<PathBuf> {
    let program = directory.join("groups");
    build("musl-gcc", &["-static", "-O2"], &sources_in("user/bench/groups")?, &program)?;
    Ok(program)
}

/// Compiles the program that is process 1 of machines with a disk.
pub fn compile_disks(directory: &Path) -> Result<PathBuf> {
    let program = directory.join("disks");
    build("musl-gcc", &["-static", "-O2"], &sources_in("user/bench/disks")?, &program)?;
    Ok(program)
}

/// Compiles the program whose sockets talk to each other.
pub fn compile_network(directory: &Path) -> Result<PathBuf> {
    let program = directory.join("network");
    build("musl-gcc", &["-static", "-O2"], &sources_in("user/bench/network")?, &program)?;
    Ok(program)
}

/// Compiles the plugin with which QEMU counts instructions.
pub fn compile_plugin(directory: &Path) -> Result<PathBuf> {
    let plugin = directory.join("windows.so");
    build("gcc", &["-shared", "-fPIC", "-O2"], &["tools/bench/plugin/windows.c".into()], &plugin)?;
    Ok(plugin)
}

/// The C files of a folder.
fn sources_in(folder: &str) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading {folder}"))?;
    let mut sources = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort();
    Ok(sources)
}

fn build(compiler: &str, flags: &[&str], sources: &[PathBuf], output: &Path) -> Result<()> {
    let done = Command::new(compiler)
        .args(flags)
        .args(sources)
        .arg("-o")
        .arg(output)
        .output()
        .with_context(|| format!("running {compiler} (on Debian and Ubuntu: apt-get install gcc musl-tools)"))?;
    if !done.status.success() {
        bail!("{} does not compile:\n{}", output.display(), String::from_utf8_lossy(&done.stderr));
    }
    Ok(())
}
