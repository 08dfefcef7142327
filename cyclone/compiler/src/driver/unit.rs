//! One translation unit: from a file to C text.

use super::options::{Options, Stop, Warnings};
use super::{parse_text, preprocessing};
use crate::diagnostics::{Diagnostic, Severity, render};
use crate::flow::remaining::Remaining;
use crate::lower::lower;
use crate::original::Originals;
use crate::preprocess::Preprocessed;
use crate::source::{Source, text_of};
use crate::tree::Program;
use crate::{check, flow};
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// The result of compiling a unit.
pub enum Outcome {
    /// It has errors, which were shown.
    Failed,
    /// It has none, and C was not asked for.
    Checked,
    /// The C text.
    C(String),
}

/// Compiles a file as far as the options say. Messages go to the standard error output.
pub fn compile(file: &OsStr, options: &Options) -> Outcome {
    if file != "-"
        && let Err(error) = std::fs::metadata(file)
    {
        eprintln!("cyc: {}: {error}", file.display());
        return Outcome::Failed;
    }
    let text = match options.preprocess {
        true => preprocess(file, options).map(|made| made.text),
        false => read(file).map_err(preprocessing::Error::Other),
    };
    let text = match text {
        Ok(text) => text,
        Err(error) => {
            let (source, diagnostic) = preprocessing::diagnostic(file, None, &error);
            eprint!("{}", render(&diagnostic, &source, &mut Originals::default(), options.form));
            return Outcome::Failed;
        }
    };
    let mut times = Times { last: Instant::now(), text: String::new() };
    let mut unit = parse_text(&file.to_string_lossy(), text);
    times.phase("parse");
    let (mut program, mut remaining) = (None, Vec::new());
    if options.stop != Stop::Syntax && !has_errors(&unit.diagnostics) {
        program = Some(check::check(&unit.source, &unit.items, options.rules, &mut unit.diagnostics));
        times.phase("check");
    }
    if let Some(program) = &mut program {
        let flow_options = flow::Options { warn_lost: options.lose_unique, loopholes: options.rules.loopholes };
        remaining = flow::analyse(program, flow_options, &mut unit.diagnostics);
        times.phase("flow");
    }
    let mut c = None;
    if let (Some(program), false) = (&program, has_errors(&unit.diagnostics)) {
        // Some errors are found only here, so that a check writes C, too.
        c = write_c(program, &unit.source, options, &mut unit.diagnostics);
        times.phase("C");
    }
    if options.stop != Stop::C {
        c = None;
    }
    let failed = show(&unit.diagnostics, &unit.source, options);
    if options.explain_checks {
        explain_checks(remaining, &unit.source);
    }
    if options.time {
        let lines = unit.source.text.matches('\n').count();
        eprintln!("{}: {lines} lines,{}", file.display(), times.text);
    }
    // The process ends soon after: to free each node of the trees first would take as long as a phase.
    std::mem::forget((unit, program));
    match (failed, c) {
        (true, _) => Outcome::Failed,
        (false, Some(text)) => Outcome::C(text),
        (false, None) => Outcome::Checked,
    }
}

struct Times {
    last: Instant,
    text: String,
}

impl Times {
    fn phase(&mut self, name: &str) {
        let now = Instant::now();
        let micros = now.duration_since(self.last).as_micros();
        self.text.push_str(&format!(" {name} {micros} us"));
        self.last = now;
    }
}

fn write_c(program: &Program, source: &Source, options: &Options, diagnostics: &mut Vec<Diagnostic>) -> Option<String> {
    match lower(program, source, options.lines) {
        Ok(text) => Some(text),
        Err(more) => {
            diagnostics.extend(more);
            None
        }
    }
}

/// Lists the checks that are left for run time, in the order of the source.
fn explain_checks(mut remaining: Vec<Remaining>, source: &Source) {
    remaining.sort_by_key(|check| check.span.start);
    let mut originals = Originals::default();
    for check in &remaining {
        let quote = originals.quote(source, check.span);
        println!("{}:{}:{}: {}", quote.file, quote.line, quote.columns.start + 1, check.reason);
    }
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Prints messages in the order of the source; true if one of them is an error.
fn show(diagnostics: &[Diagnostic], source: &Source, options: &Options) -> bool {
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    sorted.sort_by_key(|diagnostic| diagnostic.span.start);
    let mut failed = false;
    let mut originals = Originals::default();
    let mut out = std::io::stderr().lock();
    for diagnostic in sorted {
        let is_error = diagnostic.severity == Severity::Error || options.warnings == Warnings::Errors;
        failed |= is_error;
        if is_error || options.warnings == Warnings::Shown {
            let _ = out.write_all(render(diagnostic, source, &mut originals, options.form).as_bytes());
        }
    }
    failed
}

fn read(file: &OsStr) -> Result<String, String> {
    let bytes = if file == "-" {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    text_within_limits(bytes.map_err(|error| error.to_string())?)
}

fn text_within_limits(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.len() > u32::MAX as usize {
        return Err("the file is larger than 4 GiB".to_owned());
    }
    Ok(text_of(bytes))
}

/// What the compiler reads for a file, and the files that it was made from; dependencies are written, if that was asked for.
///
/// # Errors
/// What is wrong with it.
pub fn preprocess(file: &OsStr, options: &Options) -> Result<Preprocessed, preprocessing::Error> {
    let text = read(file)?;
    let path = if file == "-" { Path::new("<stdin>") } else { Path::new(file) };
    let made = preprocessing::preprocess(path, &text, options)?;
    if made.text.len() > u32::MAX as usize {
        return Err("the file is larger than 4 GiB".to_owned().into());
    }
    preprocessing::write_dependencies(path, &made.dependencies, options)?;
    Ok(made)
}
