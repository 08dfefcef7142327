//! Where in Ebb the instructions of a row were: QEMU's plugin counts them by address, and the kernel's table of symbols says which function that is.

use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A function less than this part of a row is not listed.
const LEAST: f64 = 0.001;

/// Replaces each file `N` in `profiles` with one that has the name of row N and a line for each function: its share, instructions, name.
///
/// # Errors
/// `nm` is not installed or cannot read the kernel, or a file cannot be read or written.
pub fn write(kernel: &Path, profiles: &Path, rows: &[String]) -> Result<()> {
    let symbols = symbols(kernel)?;
    for (number, row) in rows.iter().enumerate() {
        let counted = profiles.join(number.to_string());
        let text = std::fs::read_to_string(&counted).with_context(|| format!("reading {}", counted.display()))?;
        let path = profiles.join(row);
        std::fs::write(&path, functions(&text, &symbols)).with_context(|| format!("writing {}", path.display()))?;
        std::fs::remove_file(&counted).with_context(|| format!("removing {}", counted.display()))?;
    }
    Ok(())
}

/// Addresses of functions and their names, in order.
fn symbols(kernel: &Path) -> Result<Vec<(u64, String)>> {
    let mut nm = Command::new("nm");
    let listed = nm.args(["--numeric-sort", "--demangle"]).arg(kernel).output();
    let listed = listed.context("running nm (on Debian and Ubuntu: apt-get install binutils)")?;
    let text = String::from_utf8_lossy(&listed.stdout);
    let symbols: Vec<_> = text.lines().filter_map(symbol).collect();
    if symbols.is_empty() {
        bail!("{} has no table of symbols; another profile of the build may keep it", kernel.display());
    }
    Ok(symbols)
}

/// A line of nm's: `address type name`.
fn symbol(line: &str) -> Option<(u64, String)> {
    let (address, rest) = line.split_once(' ')?;
    let (kind, name) = rest.split_once(' ')?;
    matches!(kind, "t" | "T").then_some((u64::from_str_radix(address, 16).ok()?, name.to_owned()))
}

/// The lines of one row, most instructions first.
fn functions(counted: &str, symbols: &[(u64, String)]) -> String {
    let mut by_function: HashMap<&str, f64> = HashMap::new();
    let mut all = 0.0;
    for line in counted.lines() {
        let Some((address, count)) = line.split_once('\t') else { continue };
        let (Ok(address), Ok(count)) = (u64::from_str_radix(address, 16), count.parse::<f64>()) else { continue };
        let after = symbols.partition_point(|(start, _)| *start <= address);
        let name = after.checked_sub(1).map_or("?", |at| &symbols[at].1);
        *by_function.entry(name).or_default() += count;
        all += count;
    }
    let mut sorted: Vec<_> = by_function.into_iter().collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let mut text = String::new();
    for (name, count) in sorted.into_iter().filter(|(_, count)| *count >= all * LEAST) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:5.1} %  {count:>12}  {name}", count * 100.0 / all);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_go_to_the_function_that_starts_before() {
        let nm = ["1000 t first", "2000 T second one", "3000 d data"];
        let symbols: Vec<_> = nm.into_iter().filter_map(symbol).collect();
        let text = functions("1000\t10\n1ff0\t20\n2000\t70\n", &symbols);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with(" 70.0 %") && lines[0].ends_with("second one"), "{text}");
        assert!(lines[1].starts_with(" 30.0 %") && lines[1].ends_with("first"), "{text}");
    }
}
