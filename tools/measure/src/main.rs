//! `ebb-measure`: lines per crate, where `unsafe` is, how much of the linked kernel has to be trusted, and whether the kernel's rooms keep their
//! order and its user addresses their types.
//!
//! The measure is the one of the Asterinas paper: distinct (file, line) pairs that still have an instruction after linking with
//! link-time optimisation, call sites of inlined code included, grouped by crate. It is taken twice: on a kernel in which nothing
//! is optimised but what is not used is left out, which keeps the lines that the paper's own linking keeps; and on the kernel as it is
//! shipped, where one-liners that were inlined everywhere have vanished. *Trusted* is every crate that contains `unsafe`, and
//! every crate that such a crate depends on; the toolchain's own crates (`core`, `alloc`, `compiler_builtins`) are left out.
#![forbid(unsafe_code)]

mod addresses;
mod executed;
mod linked;
mod rooms;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use cargo_metadata::{CargoOpt, MetadataCommand, Package, PackageId};
use clap::Parser;

/// Prints lines per crate and the trusted share of the linked kernel; fails if `unsafe` stands outside frame/ and
/// libs/, if a room of the kernel uses one above it, or if a user address has no type.
#[derive(Parser)]
struct Options {
    /// A linked kernel with line tables, each is a column of its own: first the one that is not optimised, then the one that is shipped.
    /// Without any, only sources are measured.
    #[arg(long)]
    kernel: Vec<PathBuf>,
    /// Instead: which `unsafe` blocks of the libraries and of `frame::mm` are executed by the tests that run under the checkers.
    #[arg(long)]
    executed: bool,
    /// Only those of this package, by its own tests.
    #[arg(long, requires = "executed")]
    package: Option<String>,
    /// Instead: only whether the kernel's rooms keep their order and user addresses have types.
    #[arg(long)]
    rooms: bool,
    /// The repository.
    #[arg(long, default_value = ".")]
    repository: PathBuf,
}

struct Crate {
    name: String,
    folder: PathBuf,
    ours: bool,
    source: sources::Measured,
    /// For each kernel.
    linked_lines: Vec<usize>,
    trusted: bool,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let root = options.repository.canonicalize().context("the repository's folder")?;
    if options.executed {
        let all = executed::report(&root, options.package.as_deref())?;
        return Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let mut broken = rooms::violations(&root)?;
    broken.extend(addresses::violations(&root)?);
    for violation in &broken {
        eprintln!("{violation}");
    }
    if options.rooms {
        return Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .features(CargoOpt::SomeFeatures(Vec::new()))
        .other_options(["--filter-platform".into(), "x86_64-unknown-none".into(), "--offline".into()])
        .exec()
        .context("`cargo metadata` failed; build the kernel once (`make build`), so that its dependencies are there")?;
    let resolve = metadata.resolve.as_ref().context("cargo resolved no dependencies")?;
    let depends: BTreeMap<&PackageId, Vec<&PackageId>> = resolve
        .nodes
        .iter()
        .map(|node| {
            let normal = node
                .deps
                .iter()
                .filter(|dep| dep.dep_kinds.iter().any(|kind| kind.kind == cargo_metadata::DependencyKind::Normal));
            (&node.id, normal.map(|dep| &dep.pkg).collect())
        })
        .collect();
    let image = metadata
        .workspace_packages()
        .into_iter()
        .find(|package| package.name.as_str() == "ebb-image")
        .context("no package ebb-image")?;
    let in_kernel = reachable(&depends, [&image.id]);

    let mut crates: BTreeMap<&PackageId, Crate> = BTreeMap::new();
    for package in metadata.packages.iter().filter(|package| in_kernel.contains(&package.id) && !is_macro(package)) {
        let folder: PathBuf = package.manifest_path.parent().context("a manifest has a folder")?.into();
        let source = sources::measure(&folder.join("src"))?;
        let ours = folder.starts_with(&root);
        crates.insert(
            &package.id,
            Crate { name: package.name.to_string(), folder, ours, source, linked_lines: Vec::new(), trusted: false },
        );
    }
    let unsafe_crates: Vec<&PackageId> =
        crates.iter().filter(|(_, found)| !found.source.unsafe_places.is_empty()).map(|(&id, _)| id).collect();
    for id in reachable(&depends, unsafe_crates) {
        if let Some(found) = crates.get_mut(id) {
            found.trusted = true;
        }
    }
    for kernel in &options.kernel {
        let lines = linked::lines(kernel)?;
        for found in crates.values_mut() {
            // A crate may lie in another's folder (frame/image in frame): its `src` is its own.
            let folder = found.folder.join("src");
            found.linked_lines.push(lines.iter().filter(|(file, _)| file.starts_with(&folder)).count());
        }
    }
    report(&crates, &options.kernel);

    let misplaced = sources::unsafe_outside(&root, &["frame", "libs", "user", "target"])?;
    for place in &misplaced {
        eprintln!("unsafe outside frame/ and libs/: {place}");
    }
    Ok(if misplaced.is_empty() && broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_macro(package: &Package) -> bool {
    package.targets.iter().any(|target| target.is_proc_macro())
}

fn reachable<'a>(
    depends: &BTreeMap<&'a PackageId, Vec<&'a PackageId>>,
    from: impl IntoIterator<Item = &'a PackageId>,
) -> BTreeSet<&'a PackageId> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&PackageId> = from.into_iter().collect();
    while let Some(id) = open.pop() {
        if found.insert(id) {
            open.extend(depends.get(id).into_iter().flatten());
        }
    }
    found
}

fn report(crates: &BTreeMap<&PackageId, Crate>, kernels: &[PathBuf]) {
    let mut rows: Vec<&Crate> = crates.values().collect();
    // What nothing is linked of is of no interest, unless it is ours.
    rows.retain(|row| row.ours || kernels.is_empty() || row.linked_lines.iter().any(|&lines| lines > 0));
    rows.sort_by_key(|row| (!row.ours, std::cmp::Reverse(row.source.code_lines)));
    let sum = |kernel: usize, counts: fn(&Crate) -> bool| -> usize {
        rows.iter().filter(|row| counts(row)).map(|row| row.linked_lines[kernel]).sum()
    };
    print!("{:<22} {:>9} {:>8}", "crate", "code", "unsafe");
    (0..kernels.len()).for_each(|kernel| print!(" {:>18}", format!("linked ({})", kernel + 1)));
    println!("  trusted");
    for row in &rows {
        print!("{:<22} {:>9} {:>8}", row.name, row.source.code_lines, row.source.unsafe_places.len());
        for (kernel, &lines) in row.linked_lines.iter().enumerate() {
            print!(" {:>10} {:>6.1}%", lines, percent(lines, sum(kernel, |_| true)));
        }
        println!("  {}", if row.trusted { "yes" } else { "" });
    }
    println!("code: lines of Rust with neither blanks nor comments; unsafe: blocks, functions, impls, attributes");
    for (kernel, path) in kernels.iter().enumerate() {
        let (trusted, total) = (sum(kernel, |row| row.trusted), sum(kernel, |_| true));
        println!(
            "({}) {}: trusted {trusted} of {total} linked lines, {:.1} %",
            kernel + 1,
            path.display(),
            percent(trusted, total)
        );
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
