//! The command `cargo ebb-lint`: runs `cargo check` with this program in the compiler's place, shows the findings and counts them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal};
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;

use crate::diagnostic::{CHECKED, CODE};
use crate::rule::Rule;

const USAGE: &str = "\
What may suspend is called `_async`, takes `&mut Cx`, and is called from nothing else.

Usage: cargo ebb-lint [--json] [OPTIONS OF cargo check]
       cargo ebb-lint --explain RULE

  --json          One object per line, in the compiler's format for diagnostics
  --explain RULE  What a rule asks for, and how to say that a place is an exception
  -V, --version   This program's version
  -h, --help      This text

All other options are those of `cargo check`: --workspace, -p, --target, --features, --all-targets ...

The environment variable CARGO names the cargo to run. Exit status: 0 nothing found, 1 something found, 2 could not check.
";

const NOT_CHECKED: u8 = 2;

/// Runs the command with its arguments (without the program's name).
pub fn run(arguments: &[OsString]) -> ExitCode {
    let mut arguments = arguments.to_vec();
    if arguments.first().is_some_and(|first| first == "ebb-lint") {
        arguments.remove(0);
    }
    // What stands after `--` would be for somebody else.
    let mut is_json = false;
    let mut passed_on = Vec::new();
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        match argument.to_str().unwrap_or("") {
            "--json" => is_json = true,
            "-h" | "--help" => {
                print!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            "-V" | "--version" => {
                println!("ebb-lint {}", env!("CARGO_PKG_VERSION"));
                return ExitCode::SUCCESS;
            }
            "--explain" => return explain(rest.next().as_deref().and_then(|name| name.to_str()).unwrap_or("")),
            text if text.starts_with("--message-format") => return usage_error("say --json for another format"),
            _ => passed_on.push(argument),
        }
    }
    match check(&passed_on, is_json) {
        Ok(code) => code,
        Err(text) => {
            eprintln!("error: {text}");
            ExitCode::from(NOT_CHECKED)
        }
    }
}

fn usage_error(text: &str) -> ExitCode {
    eprintln!("error: {text}\n\n{USAGE}");
    ExitCode::from(NOT_CHECKED)
}

fn explain(name: &str) -> ExitCode {
    let name = name.strip_prefix(CODE).unwrap_or(name);
    match Rule::ALL.into_iter().find(|rule| rule.name() == name) {
        Some(rule) => {
            println!("{}", rule.explanation());
            ExitCode::SUCCESS
        }
        None => {
            let names: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
            usage_error(&format!("there is no rule `{name}`; the rules are {}", names.join(", ")))
        }
    }
}

fn check(arguments: &[OsString], is_json: bool) -> Result<ExitCode, String> {
    let myself = std::env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let format = match !is_json && std::io::stderr().is_terminal() {
        true => "--message-format=json-diagnostic-rendered-ansi",
        false => "--message-format=json",
    };
    let cannot_run = |error: std::io::Error| format!("cannot run {}: {error}", cargo.display());
    let mut child = Command::new(&cargo)
        .args(["check", format])
        .args(arguments)
        .env("RUSTC_WORKSPACE_WRAPPER", myself)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(cannot_run)?;
    let mut seen = Seen::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.map_err(|error| format!("reading what cargo says: {error}"))?;
            if let Ok(message) = serde_json::from_str::<Value>(&line) {
                seen.message(&message, is_json);
            }
        }
    }
    let status = child.wait().map_err(cannot_run)?;
    if !status.success() || seen.errors > 0 {
        eprintln!("ebb-lint: could not check everything: see above");
        return Ok(ExitCode::from(NOT_CHECKED));
    }
    Ok(seen.summary())
}

/// What cargo has told so far.
#[derive(Default)]
struct Seen {
    /// The findings' texts: a crate that is compiled twice (for its tests, say) gives some of them twice.
    findings: BTreeSet<String>,
    /// Crates that were checked.
    crates: BTreeSet<String>,
    functions: u64,
    calls: u64,
    /// Errors of the compiler.
    errors: usize,
}

impl Seen {
    fn message(&mut self, line: &Value, is_json: bool) {
        if line["reason"] != "compiler-message" {
            return;
        }
        let message = &line["message"];
        let code = message["code"]["code"].as_str().unwrap_or("");
        if code == CHECKED {
            if self.crates.insert(format!("{} {}", line["package_id"], line["target"])) {
                self.functions += message["ebb_lint"]["functions"].as_u64().unwrap_or(0);
                self.calls += message["ebb_lint"]["calls"].as_u64().unwrap_or(0);
            }
            return;
        }
        let is_finding = Rule::ALL.iter().any(|rule| code.strip_prefix(CODE) == Some(rule.name()));
        if !is_finding && message["level"] != "error" {
            return;
        }
        self.errors += usize::from(!is_finding);
        let text = message["rendered"].as_str().unwrap_or("");
        if is_finding && !self.findings.insert(format!("{}{text}", message["spans"])) {
            return;
        }
        match is_json {
            true => println!("{message}"),
            false => eprint!("{text}"),
        }
    }

    fn summary(&self) -> ExitCode {
        let count = |number: u64, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
        let checked = format!(
            "{} that may suspend and {} of such, in {}",
            count(self.functions, "function", "functions"),
            count(self.calls, "call", "calls"),
            count(self.crates.len() as u64, "crate", "crates"),
        );
        if self.findings.is_empty() {
            eprintln!("ebb-lint: nothing found; checked {checked}");
            return ExitCode::SUCCESS;
        }
        eprintln!("ebb-lint: {}; checked {checked}", count(self.findings.len() as u64, "finding", "findings"));
        eprintln!("`cargo ebb-lint --explain RULE` tells what a rule asks for");
        ExitCode::from(1)
    }
}
