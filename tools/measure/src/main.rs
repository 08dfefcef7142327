//! `ebb-measure`: lines per crate, where `unsafe` is, and how much of the linked kernel has to be trusted.
//!
//! The measure is the one of the Asterinas paper: distinct (file, line) pairs that still have an instruction after linking with
//! link-time optimisation, call sites of inlined code included, grouped by crate. *Trusted* is every crate that contains `unsafe`, and
//! every crate that such a crate depends on; the toolchain's own crates (`core`, `alloc`, `compiler_builtins`) are left out.
#![forbid(unsafe_code)]

mod linked;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use cargo_metadata::{CargoOpt, MetadataCommand, Package, PackageId};
use clap::Parser;

/// Prints lines per crate and the trusted share of the linked kernel; fails if `unsafe` stands outside frame/ and libs/.
#[derive(Parser)]
struct Options {
    /// The linked kernel, with line tables. Without it only sources are measured.
    #[arg(long)]
    kernel: Option<PathBuf>,
    /// The repository.
    #[arg(long, default_value = ".")]
    repository: PathBuf,
}

struct Crate {
    name: String,
    folder: PathBuf,
    ours: bool,
    source: sources::Measured,
    linked_lines: usize,
    trusted: bool,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let root = options.repository.canonicalize().context("the repository's folder")?;
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
            Crate { name: package.name.to_string(), folder, ours, source, linked_lines: 0, trusted: false },
        );
    }
    let unsafe_crates: Vec<&PackageId> =
        crates.iter().filter(|(_, found)| !found.source.unsafe_places.is_empty()).map(|(&id, _)| id).collect();
    for id in reachable(&depends, unsafe_crates) {
        if let Some(found) = crates.get_mut(id) {
            found.trusted = true;
        }
    }
    if let Some(kernel) = &options.kernel {
        let lines = linked::lines(kernel)?;
        for found in crates.values_mut() {
            // A crate may lie in another's folder (frame/image in frame): its `src` is its own.
            let folder = found.folder.join("src");
            found.linked_lines = lines.iter().filter(|(file, _)| file.starts_with(&folder)).count();
        }
    }
    report(&crates, options.kernel.is_some());

    let misplaced = sources::unsafe_outside(&root, &["frame", "libs", "user", "target"])?;
    for place in &misplaced {
        eprintln!("unsafe outside frame/ and libs/: {place}");
    }
    Ok(if misplaced.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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

fn report(crates: &BTreeMap<&PackageId, Crate>, linked: bool) {
    println!("{:<22} {:>9} {:>8} {:>9} {:>9}  trusted", "crate", "code", "unsafe", "linked", "");
    let mut rows: Vec<&Crate> = crates.values().collect();
    rows.sort_by_key(|row| (!row.ours, std::cmp::Reverse(row.source.code_lines)));
    let total: usize = rows.iter().map(|row| row.linked_lines).sum();
    for row in &rows {
        println!(
            "{:<22} {:>9} {:>8} {:>9} {:>8.1}%  {}",
            row.name,
            row.source.code_lines,
            row.source.unsafe_places.len(),
            row.linked_lines,
            percent(row.linked_lines, total),
            if row.trusted { "yes" } else { "" },
        );
    }
    let trusted: usize = rows.iter().filter(|row| row.trusted).map(|row| row.linked_lines).sum();
    println!("code: lines of Rust with neither blanks nor comments; unsafe: blocks, functions, impls, attributes");
    if linked {
        println!("trusted: {trusted} of {total} linked lines, {:.1} %", percent(trusted, total));
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
