//! Random functions over unique and counted pointers, aliases, unions, datatypes, exceptions and regions: what the compiler accepts must be safe.
//!
//! Of random functions ([`generate`]) the statements go that the compiler rejects, until it accepts what is left. That is compiled with the address
//! sanitizer by gcc and clang in turn, without a collector, and run with several inputs. A report of the sanitizer, a signal, or C that the C compiler refuses is an error of ours. It is shown
//! as the shortest function that still has it.

mod generate;

use anyhow::{Context, Result};
use generate::{LINES_BEFORE, Stmt, function, text, without_lines};
use indicatif::ProgressBar;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Functions of one program.
const FUNCTIONS: u64 = 400;
/// How often statements go before a function goes.
const ROUNDS: usize = 12;

/// What every program begins with.
const PRELUDE: &str = include_str!("prelude.cyc");

/// What has been tried.
#[derive(Default)]
pub struct Report {
    pub functions: u64,
    pub accepted: u64,
    pub wrong: usize,
}

#[derive(Clone)]
struct Case {
    number: u64,
    body: Vec<Stmt>,
}

/// The program of one function.
pub fn program(number: u64) -> String {
    source(&[Case { number, body: function(number) }]).0
}

/// Tries the functions with these numbers; what goes wrong is printed, `at_most` so many.
pub fn run(
    cyc: &Path,
    directory: &Path,
    numbers: std::ops::Range<u64>,
    at_most: usize,
    progress: &ProgressBar,
) -> Result<Report> {
    let compilers: Vec<&str> = ["gcc", "clang"].into_iter().filter(|cc| super::is_there(cc)).collect();
    anyhow::ensure!(!compilers.is_empty(), "no C compiler is installed");
    let mut compilers = compilers.into_iter().cycle();
    let mut report = Report::default();
    let mut first = numbers.start;
    while first < numbers.end {
        let last = (first + FUNCTIONS).min(numbers.end);
        let builder = Builder { cyc, cc: compilers.next().unwrap_or("gcc"), directory };
        let cases = (first..last).map(|number| Case { number, body: function(number) }).collect();
        let cases = builder.accepted(cases, ROUNDS)?;
        report.functions += last - first;
        report.accepted += cases.len() as u64;
        for (case, _) in builder.wrong(&cases)? {
            if report.wrong >= at_most {
                return Ok(report);
            }
            report.wrong += 1;
            progress.suspend(|| eprintln!("function {} goes wrong; making it shorter", case.number));
            let (case, how) = builder.shortest(case)?;
            progress.suspend(|| println!("{}{how}\n", text(case.number, &case.body)));
        }
        progress.inc(last - first);
        first = last;
    }
    Ok(report)
}

/// A program and the line on which each function begins.
fn source(cases: &[Case]) -> (String, Vec<usize>) {
    let mut all = PRELUDE.to_owned();
    let mut begins = Vec::new();
    for case in cases {
        begins.push(all.lines().count() + 1);
        all += &text(case.number, &case.body);
    }
    all += "static void call(int which, int n) {\n  renew();\n  try {\n    switch (which) {\n";
    for case in cases {
        all += &format!("    case {}: sink(f{}(n)); break;\n", case.number, case.number);
    }
    all += "    default: break;\n    }\n  } catch { default: break; }\n  sink(look(g_cell) + look_at(g_int));\n}\n";
    all += "int main(int argc, string_t ?argv) {\n";
    all += "  int only = argc > 1 ? atoi(argv[1]) : -1;\n  for (int n = 0; n < 5; n++) {\n";
    for case in cases {
        all += &format!("    if (only < 0 || only == {}) call({}, n);\n", case.number, case.number);
    }
    (all + "  }\n  printf(\"done\\n\");\n  return 0;\n}\n", begins)
}

struct Builder<'a> {
    cyc: &'a Path,
    cc: &'static str,
    directory: &'a Path,
}

impl Builder<'_> {
    fn write(&self, cases: &[Case]) -> Result<(PathBuf, Vec<usize>)> {
        let path = self.directory.join("owners.cyc");
        let (text, begins) = source(cases);
        std::fs::write(&path, text)?;
        Ok((path, begins))
    }

    /// What the compiler accepts of functions: without the statements that it rejects, if that helps soon, or not at all.
    fn accepted(&self, mut cases: Vec<Case>, rounds: usize) -> Result<Vec<Case>> {
        for round in 0.. {
            let (path, begins) = self.write(&cases)?;
            let mut check = Command::new("timeout");
            check.arg("60").arg(self.cyc).args(["check", "--plain", "-w"]).arg(&path);
            let output = check.stdin(Stdio::null()).output().context("cannot start the compiler")?;
            if output.status.success() {
                break;
            }
            let messages = String::from_utf8_lossy(&output.stderr);
            let mut wrong: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for line in messages.lines().filter(|line| line.contains(": error: ")) {
                let Some(line) = line.split(':').nth(1).and_then(|line| line.parse().ok()) else { continue };
                let Some(at) = begins.partition_point(|&begin| begin <= line).checked_sub(1) else { continue };
                wrong.entry(at).or_default().insert(line - begins[at]);
            }
            anyhow::ensure!(!wrong.is_empty(), "the compiler failed:\n{messages}");
            for (at, lines) in wrong.into_iter().rev() {
                let of_body = lines.iter().filter_map(|line| line.checked_sub(LINES_BEFORE)).collect();
                let shorter = without_lines(&cases[at].body, &of_body);
                let is_shorter = text(0, &shorter).len() < text(0, &cases[at].body).len();
                match round < rounds && is_shorter {
                    true => cases[at].body = shorter,
                    false => drop(cases.remove(at)),
                }
            }
        }
        Ok(cases)
    }

    /// The functions that do harm when they run, or are no C, and how.
    fn wrong(&self, cases: &[Case]) -> Result<Vec<(Case, String)>> {
        if cases.is_empty() {
            return Ok(Vec::new());
        }
        let (path, _) = self.write(cases)?;
        let program = self.directory.join("owners");
        let mut build = Command::new("timeout");
        build.arg("300").arg(self.cyc).env("CC", self.cc).args([
            "build",
            "--plain",
            "-w",
            "-g",
            "--no-gc",
            "-fsanitize=address",
            "-O0",
        ]);
        let built = build.arg(&path).arg("-o").arg(&program).stdin(Stdio::null()).output()?;
        if !built.status.success() {
            if let [case] = cases {
                return Ok(vec![(case.clone(), format!("not built:\n{}", String::from_utf8_lossy(&built.stderr)))]);
            }
            let mut all = Vec::new();
            for part in cases.chunks(cases.len().div_ceil(2)) {
                all.extend(self.wrong(part)?);
            }
            return Ok(all);
        }
        if run_alone(&program, None)?.is_none() {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for case in cases {
            if let Some(how) = run_alone(&program, Some(case.number))? {
                all.push((case.clone(), how));
            }
        }
        Ok(all)
    }

    /// The shortest function that goes wrong in place of one that does, and how.
    fn shortest(&self, case: Case) -> Result<(Case, String)> {
        let again = |body: &[Stmt]| -> Result<Option<String>> {
            let cases = self.accepted(vec![Case { number: case.number, body: body.to_vec() }], 0)?;
            Ok(self.wrong(&cases)?.pop().map(|(_, how)| how))
        };
        let mut body = case.body.clone();
        let mut how = again(&body)?.unwrap_or_default();
        let mut at = 0;
        while let Some(shorter) = without(&body, &mut at.clone()) {
            match again(&shorter)? {
                Some(found) => (body, how) = (shorter, found),
                None => at += 1,
            }
        }
        Ok((Case { body, ..case }, how))
    }
}

/// The statements without number `at`, which counts down, or with its body in its place.
fn without(body: &[Stmt], at: &mut usize) -> Option<Vec<Stmt>> {
    for (index, statement) in body.iter().enumerate() {
        let replaced = |by: &[Stmt]| [&body[..index], by, &body[index + 1..]].concat();
        if *at == 0 {
            return Some(replaced(&[]));
        }
        *at -= 1;
        if let Stmt::Block(before, inner, behind) = statement {
            if *at == 0 {
                return Some(replaced(inner));
            }
            *at -= 1;
            if let Some(shorter) = without(inner, at) {
                return Some(replaced(&[Stmt::Block(before.clone(), shorter, behind.clone())]));
            }
        }
    }
    None
}

/// What a program reports that runs all of its functions, or one.
fn run_alone(program: &Path, only: Option<u64>) -> Result<Option<String>> {
    let mut run = Command::new("timeout");
    // What stays on a heap without a collector is no error.
    run.env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=1").arg("30").arg(program);
    run.args(only.map(|number| number.to_string())).stdin(Stdio::null());
    let output = run.output()?;
    if output.status.success() {
        return Ok(None);
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    let first = messages.lines().filter(|line| !line.trim().is_empty()).take(12).collect::<Vec<_>>().join("\n");
    Ok(Some(format!("{}\n{first}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_gives_the_same_function_each_time() {
        assert_eq!(program(1), program(1));
        assert_ne!(program(1), program(2));
    }

    #[test]
    fn statements_on_wrong_lines_go_and_bodies_of_blocks_stay() {
        let line = |text: &str| Stmt::Line(text.to_owned());
        let body = vec![line("a"), Stmt::Block("{".to_owned(), vec![line("b"), line("c")], "}".to_owned()), line("d")];
        let left = |wrong: &[usize]| text(0, &without_lines(&body, &wrong.iter().copied().collect()));
        assert!(left(&[0, 3]).ends_with("  {\n    b\n  }\n  d\n  return sink(x + y);\n}\n"));
        assert!(left(&[1, 5]).ends_with("  a\n  b\n  c\n  return sink(x + y);\n}\n"));
        assert_eq!(text(0, &[]).lines().take_while(|line| !line.contains("return")).count(), LINES_BEFORE);
    }

    #[test]
    fn each_statement_is_left_out_once() {
        let body = vec![
            Stmt::Line("a".to_owned()),
            Stmt::Block("{".to_owned(), vec![Stmt::Line("b".to_owned())], "}".to_owned()),
        ];
        let shorter: Vec<usize> = (0..).map_while(|at: usize| Some(without(&body, &mut at.clone())?.len())).collect();
        assert_eq!(shorter, [1, 1, 2, 2]);
    }
}
