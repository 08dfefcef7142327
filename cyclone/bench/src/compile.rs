//! How quickly Cyclone becomes C.

use crate::measure;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs of each file; the least time counts.
const RUNS: u32 = 5;

/// Prints lines per second for each file: its preprocessed lines that are not empty, over the time from them to C.
///
/// # Errors
/// If a file cannot be preprocessed or compiled.
pub fn table(cyc: &Path, files: &[PathBuf], options: &[String]) -> Result<()> {
    println!("{:<28} {:>8} {:>10} {:>12}", "file", "lines", "ms to C", "lines/s");
    for file in files {
        let directory = tempfile::tempdir()?;
        let input = directory.path().join("input.cyc");
        let output = Command::new(cyc).arg("preprocess").args(options).arg(file).stderr(Stdio::inherit()).output()?;
        anyhow::ensure!(output.status.success(), "{} cannot be preprocessed", file.display());
        std::fs::write(&input, &output.stdout)?;
        let lines = output
            .stdout
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.starts_with(b"#") && line.iter().any(|byte| !byte.is_ascii_whitespace()))
            .count();
        let result = directory.path().join("output.c");
        let arguments = ["emit-c", "--no-preprocess", "-o"];
        let arguments: Vec<&str> = arguments.into_iter().chain([result.to_str().unwrap_or_default()]).collect();
        let mut best = u64::MAX;
        for _ in 0..RUNS {
            let mut arguments = arguments.clone();
            let path = input.to_str().unwrap_or_default();
            arguments.push(path);
            best = best.min(measure::run(cyc, &arguments)?.micros);
        }
        println!(
            "{:<28} {lines:>8} {:>10.1} {:>12.0}",
            file.file_name().unwrap_or_default().to_string_lossy(),
            best as f64 / 1000.0,
            lines as f64 / (best as f64 / 1e6)
        );
    }
    Ok(())
}
