//! Programs of many functions: their text, what they must print, and what they print.

use super::inputs::{Input, makers};
use super::machine::Outcome;
use super::memory::Exception;
use super::print;
use super::syntax::Function;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A function, its number, and calls of it with what they must do.
#[derive(Clone)]
pub struct Case {
    pub number: usize,
    pub function: Function,
    pub calls: Vec<(Input, Outcome)>,
}

/// What every program begins with.
const PRELUDE: &str = include_str!("prelude.cyc");

/// The text of a program, with the line on which each function begins.
pub fn text(cases: &[Case]) -> (String, Vec<usize>) {
    let mut text = format!("{PRELUDE}{}", makers());
    let mut line = text.lines().count() + 1;
    let mut begins = Vec::new();
    for case in cases {
        begins.push(line);
        let part = case_text(case);
        line += part.lines().count();
        text += &part;
    }
    text += "int main(void) {\n";
    for case in cases {
        let (number, calls) = (case.number, case.calls.len());
        let _ = writeln!(text, "  for (int i = 0; i < {calls}; i++) attempt({number}, i, call{number});");
    }
    text += "  return 0;\n}\n";
    (text, begins)
}

/// A function and the calls of it.
pub fn case_text(case: &Case) -> String {
    let name = format!("f{}", case.number);
    let mut text = print::function(&case.function, &name);
    let _ = writeln!(text, "static long call{}(int which) {{\n  switch (which) {{", case.number);
    for (at, (input, _)) in case.calls.iter().enumerate() {
        let (before, arguments) = input.text(&case.function);
        let _ = writeln!(text, "  case {at}: {{ begin({}u); {before}return {name}({arguments}); }}", input.seed);
    }
    text += "  default: return 0l;\n  }\n}\n\n";
    text
}

/// What a call prints, after its name.
fn shown(outcome: &Outcome) -> String {
    let end = match outcome.end {
        Ok(value) => value.to_string(),
        Err((exception, _)) => match exception {
            Exception::Bounds => "bounds",
            Exception::Null => "null",
            Exception::NoMemory => "memory",
            Exception::Odd => "odd",
            Exception::Tired => "tired",
        }
        .to_owned(),
    };
    format!("{end} {}", outcome.hash)
}

/// How programs are compiled.
#[derive(Clone, Copy)]
pub struct Way {
    pub name: &'static str,
    pub cc: &'static str,
    pub arguments: &'static [&'static str],
}

/// A case that did something else than it had to, or was not compiled.
pub struct Difference {
    pub case: Case,
    pub expected: String,
    pub found: String,
}

/// Compiles and runs programs.
pub struct Builder<'a> {
    pub cyc: &'a Path,
    pub directory: &'a Path,
}

impl Builder<'_> {
    fn source(&self, cases: &[Case]) -> Result<(PathBuf, Vec<usize>)> {
        let source = self.directory.join("bounds.cyc");
        let (text, begins) = text(cases);
        std::fs::write(&source, text)?;
        Ok((source, begins))
    }

    /// Without the functions that the compiler rejects: its analysis may know that a pointer is null.
    pub fn accepted(&self, mut cases: Vec<Case>) -> Result<Vec<Case>> {
        loop {
            let (source, begins) = self.source(&cases)?;
            let mut check = Command::new("timeout");
            check.arg("60").arg(self.cyc).args(["check", "--plain", "-w"]).arg(&source);
            let output = check.stdin(Stdio::null()).output().context("cannot start the compiler")?;
            let messages = String::from_utf8_lossy(&output.stderr);
            let lines = messages.lines().filter(|line| line.contains(": error: ")).filter_map(line_number);
            let rejected: BTreeSet<usize> =
                lines.map(|line| begins.partition_point(|&begin| begin <= line).saturating_sub(1)).collect();
            if output.status.success() || rejected.is_empty() {
                return Ok(cases);
            }
            let mut at = 0;
            cases.retain(|_| {
                at += 1;
                !rejected.contains(&(at - 1))
            });
        }
    }

    /// Which cases differ from what they must do.
    pub fn differences(&self, cases: &[Case], way: Way) -> Result<Vec<Difference>> {
        if cases.is_empty() {
            return Ok(Vec::new());
        }
        let (source, _) = self.source(cases)?;
        let program = self.directory.join("bounds");
        let mut build = Command::new("timeout");
        build.arg("120").arg(self.cyc).env("CC", way.cc).args(["build", "--plain", "-w"]).args(way.arguments);
        let built = build.arg(&source).arg("-o").arg(&program).stdin(Stdio::null()).output()?;
        if !built.status.success() {
            if let [case] = cases {
                let found = format!("not built ({}):\n{}", built.status, String::from_utf8_lossy(&built.stderr));
                return Ok(vec![Difference { case: case.clone(), expected: String::new(), found }]);
            }
            let mut all = Vec::new();
            for part in cases.chunks(cases.len().div_ceil(2)) {
                all.extend(self.differences(&self.accepted(part.to_vec())?, way)?);
            }
            return Ok(all);
        }
        // What stays on a heap without a collector is no error.
        let mut run = Command::new("timeout");
        run.env("ASAN_OPTIONS", "detect_leaks=0").arg("20").arg(&program).stdin(Stdio::null());
        let output = run.output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let found: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
        let mut differences = Vec::new();
        for (at, case) in cases.iter().enumerate() {
            let mut is_lost = false;
            let expected = case.calls.iter().enumerate().map(|(which, (_, outcome))| (which, shown(outcome)));
            for (which, expected) in expected {
                let line = found.get(format!("{}.{which}", case.number).as_str());
                if line == Some(&expected.as_str()) {
                    continue;
                }
                is_lost |= line.is_none();
                let ended = || format!("({})\n{}", output.status, String::from_utf8_lossy(&output.stderr));
                let found = line.map_or_else(ended, |line| (*line).to_owned());
                let calls = vec![case.calls[which].clone()];
                differences.push(Difference { case: Case { calls, ..case.clone() }, expected, found });
                break;
            }
            if is_lost {
                // It ended the program: those after it have not been tried.
                differences.extend(self.differences(&cases[at + 1..], way)?);
                break;
            }
        }
        Ok(differences)
    }
}

fn line_number(message: &str) -> Option<usize> {
    message.split(':').nth(1)?.parse().ok()
}
