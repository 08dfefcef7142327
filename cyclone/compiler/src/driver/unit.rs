//! One translation unit: from a file to C text.

use super::options::{Options, Stop, Warnings};
use super::{home, parse_text};
use crate::diagnostics::{Code, Diagnostic, Severity, render};
use crate::flow::remaining::Remaining;
use crate::lower::lower;
use crate::original::Originals;
use crate::source::{Source, Span, text_of};
use crate::tree::Program;
use crate::{check, flow};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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
    let text = if options.preprocess { preprocess(file, options) } else { read(file) };
    let text = match text {
        Ok(text) => text,
        Err(message) => {
            let (source, diagnostic) = preprocessor_error(file, &message);
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

/// The preprocessor's first error (`file:line:column: error: what`) in its place; else all that it said, at the file's start.
pub fn preprocessor_error(file: &OsStr, message: &str) -> (Source, Diagnostic) {
    let placed = message.lines().find_map(|line| {
        let (place, what) = line.split_once(" fatal error: ").or_else(|| line.split_once(" error: "))?;
        let mut parts = place.trim_end_matches(':').rsplitn(3, ':');
        let (_, line, file) = (parts.next()?, parts.next()?.parse::<usize>().ok()?, parts.next()?);
        let text = read(OsStr::new(file)).ok()?;
        let start = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum::<usize>();
        let end = start + text[start..].lines().next().map_or(0, str::len);
        Some((Source::new(file, text), Span { start: start as u32, end: end as u32 }, what.to_owned()))
    });
    let (source, span, what) = placed
        .unwrap_or_else(|| (Source::new(&file.to_string_lossy(), String::new()), Span::default(), message.to_owned()));
    (source, Diagnostic::error(Code::Preprocessor, span, what))
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

/// The C compiler: what `--cc` or `CC` names, else gcc.
pub fn c_compiler(options: &Options) -> OsString {
    options.c_compiler.clone().or_else(|| std::env::var_os("CC")).unwrap_or_else(|| "gcc".into())
}

/// The arguments of the C compiler for preprocessing Cyclone: our own headers come after those that `-I` names, and the
/// machine's own, which are not Cyclone, are not looked for.
///
/// # Errors
/// If our headers are not found.
pub fn preprocessor_arguments(options: &Options) -> Result<Vec<OsString>, String> {
    let mut arguments: Vec<OsString> =
        ["-x", "c", "-w", "-nostdinc", "-D__CYCLONE__", "-U__GNUC__", "-Ulinux", "-Uunix"].map(OsString::from).into();
    if options.rules.dialect == check::Dialect::Paper {
        arguments.push("-D__CYCLONE_COMPAT__=8".into());
    }
    arguments.extend(options.preprocessor.iter().cloned());
    if options.own_headers {
        let library = library_directory(options)?;
        // With `-isystem` those of a wrapper such as musl-gcc, which names its own directory, would come first.
        arguments.extend(["-I".into(), library.into_os_string()]);
    }
    Ok(arguments)
}

/// Where our own headers are.
///
/// # Errors
/// If they are not found.
pub fn library_directory(options: &Options) -> Result<PathBuf, String> {
    match &options.library {
        Some(library) => Ok(library.clone()),
        None => Ok(home::directory()?.join("lib")),
    }
}

/// Runs the C preprocessor.
///
/// # Errors
/// Its messages.
pub fn preprocess(file: &OsStr, options: &Options) -> Result<String, String> {
    text_within_limits(run_preprocessor("-E", file, options)?)
}

/// Runs the C preprocessor over a text that stands for a file.
///
/// # Errors
/// Its messages.
pub fn preprocess_text(path: &Path, text: &str, options: &Options) -> Result<String, String> {
    let compiler = c_compiler(options);
    let failed = |error: std::io::Error| format!("cannot run the preprocessor {}: {error}", compiler.display());
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut child = Command::new(&compiler)
        .arg("-E")
        .args(preprocessor_arguments(options)?)
        .arg("-iquote")
        .arg(directory)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let name = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    let whole = format!("#line 1 \"{name}\"\n{text}");
    let input = child.stdin.take();
    // While it is written, the output must be read.
    let writer = std::thread::spawn(move || input.map(|mut input| input.write_all(whole.as_bytes())));
    let output = child.wait_with_output().map_err(failed)?;
    // A preprocessor that stopped reading says why itself.
    let _ = writer.join();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned());
    }
    text_within_limits(output.stdout)
}

/// The files that a file depends on, as a rule for make.
///
/// # Errors
/// The preprocessor's messages.
pub fn dependencies(how: &OsStr, file: &OsStr, options: &Options) -> Result<Vec<u8>, String> {
    run_preprocessor(&how.to_string_lossy(), file, options)
}

fn run_preprocessor(how: &str, file: &OsStr, options: &Options) -> Result<Vec<u8>, String> {
    let compiler = c_compiler(options);
    let output = Command::new(&compiler)
        .arg(how)
        .args(preprocessor_arguments(options)?)
        .args(&options.dependency_file)
        .arg(file)
        .stdin(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run the preprocessor {}: {error}", compiler.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned());
    }
    Ok(output.stdout)
}
