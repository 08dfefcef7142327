//! The command line: which files, through which phases, with which output.
//!
//! A translation unit goes through the C preprocessor of the machine (`gcc -E`, or what `CC` names), which leaves line markers,
//! then through the compiler's phases on a thread with a large stack: the parser's limits ([`crate::parse::DEPTH_LIMIT`]) are set
//! for it. Exit codes: 0 all went well, 1 the input has errors, 2 the command line has.

use crate::ast::Item;
use crate::check::{self, Dialect};
use crate::diagnostics::{Code, Diagnostic, Form, Severity, render};
use crate::source::{Source, Span};
use crate::{lex, parse};
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::process::{Command, ExitCode, Stdio};

const USAGE: &str = "\
cyc: a compiler for Cyclone

  cyc check [options] FILE..     report errors
  cyc explain CODE               say what an error code means

options
  --parse-only      stop after the syntax 
  --no-preprocess   the files are preprocessed already
  -I DIR, -D NAME[=VALUE], -U NAME   for the preprocessor
  -nostdinc         do not read the machine's own C headers
  -isystem DIR      read headers here after those of -I
  --plain           one line per message: file:line: error: ...
  --json            one object per message, one per line
  --time            say how long each file took and how many lines it has

CC names the C compiler that preprocesses (default: gcc).
";

/// The stack of the thread that compiles; see [`crate::parse::DEPTH_LIMIT`].
const STACK_BYTES: usize = 512 << 20;

/// What the command line asks for.
#[derive(Debug)]
struct Options {
    files: Vec<OsString>,
    preprocessor: Vec<OsString>,
    preprocess: bool,
    parse_only: bool,
    form: Form,
    time: bool,
}

/// Runs the command with these arguments (without the program's name).
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let Some((command, rest)) = arguments.split_first() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    match command.to_str() {
        Some("check") => match options(rest) {
            Ok(options) => check_files(options),
            Err(message) => {
                eprintln!("cyc: {message}");
                ExitCode::from(2)
            }
        },
        Some("explain") => explain(rest),
        Some("help" | "--help" | "-h") => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        Some("--version") => {
            println!("cyc {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn explain(arguments: &[OsString]) -> ExitCode {
    match arguments.first().and_then(|code| code.to_str()).and_then(Code::explain) {
        Some(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("cyc: explain takes an error code, such as E0003");
            ExitCode::from(2)
        }
    }
}

fn options(arguments: &[OsString]) -> Result<Options, String> {
    let colour = std::io::stderr().is_terminal();
    let mut options = Options {
        files: Vec::new(),
        preprocessor: Vec::new(),
        preprocess: true,
        parse_only: false,
        form: Form::Source { colour },
        time: false,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--parse-only") => options.parse_only = true,
            Some("--no-preprocess") => options.preprocess = false,
            Some("--plain") => options.form = Form::Plain,
            Some("--json") => options.form = Form::Json,
            Some("--time") => options.time = true,
            Some("-I" | "-D" | "-U" | "-include" | "-isystem") => {
                let value = arguments.next().ok_or_else(|| format!("{} needs a value", argument.display()))?;
                options.preprocessor.push(argument.clone());
                options.preprocessor.push(value.clone());
            }
            Some("-nostdinc") => options.preprocessor.push(argument.clone()),
            Some(text) if ["-I", "-D", "-U"].iter().any(|prefix| text.starts_with(prefix)) => {
                options.preprocessor.push(argument.clone());
            }
            Some(text) if text.starts_with('-') && text != "-" => return Err(format!("unknown option {text}")),
            _ => options.files.push(argument.clone()),
        }
    }
    if options.files.is_empty() {
        return Err("no files given".to_owned());
    }
    Ok(options)
}

fn check_files(options: Options) -> ExitCode {
    let worker = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        let mut failed = false;
        for file in &options.files {
            failed |= !check_file(file, &options);
        }
        failed
    });
    match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(false)) => ExitCode::SUCCESS,
        Ok(Ok(true)) => ExitCode::FAILURE,
        _ => {
            eprintln!("cyc: the compiler itself failed; please report the input that made it fail");
            ExitCode::from(101)
        }
    }
}

fn check_file(file: &OsStr, options: &Options) -> bool {
    let text = if options.preprocess { preprocess(file, &options.preprocessor) } else { read(file) };
    let text = match text {
        Ok(text) => text,
        Err(message) => {
            let source = Source::new(&file.to_string_lossy(), String::new());
            eprint!(
                "{}",
                render(&Diagnostic::error(Code::Preprocessor, Span::default(), message), &source, options.form)
            );
            return false;
        }
    };
    let begin = std::time::Instant::now();
    let mut unit = parse_text(&file.to_string_lossy(), text);
    if !options.parse_only && unit.diagnostics.is_empty() {
        check::check(&unit.source, &unit.items, Dialect::One, &mut unit.diagnostics);
    }
    let elapsed = begin.elapsed();
    let mut out = std::io::stderr().lock();
    for diagnostic in &unit.diagnostics {
        let _ = out.write_all(render(diagnostic, &unit.source, options.form).as_bytes());
    }
    if options.time {
        let lines = unit.source.text.bytes().filter(|&byte| byte == b'\n').count();
        let _ = writeln!(out, "{}: {lines} lines, done in {} us", file.display(), elapsed.as_micros());
    }
    unit.diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error);
    unit.diagnostics.is_empty()
}

/// A translation unit after the parser.
#[derive(Debug)]
pub struct Unit {
    /// Its text and places.
    pub source: Source,
    /// What could be parsed.
    pub items: Vec<Item>,
    /// What is wrong with it.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses preprocessed text. Never panics on any text, given a stack of some hundred megabytes in a debug build.
pub fn parse_text(file: &str, text: String) -> Unit {
    let mut source = Source::new(file, text);
    let mut diagnostics = Vec::new();
    let tokens = lex::lex(&mut source, &mut diagnostics);
    let items = parse::parse(&source, &tokens, &mut diagnostics);
    Unit { source, items, diagnostics }
}

fn read(file: &OsStr) -> Result<String, String> {
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    text_of(bytes)
}

/// Text that is not UTF-8 (old sources often are Latin-1, in comments) has its strange bytes replaced.
fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.len() > u32::MAX as usize {
        return Err("the file is larger than 4 GiB".to_owned());
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

fn preprocess(file: &OsStr, arguments: &[OsString]) -> Result<String, String> {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "gcc".into());
    let output = Command::new(&compiler)
        .args(["-E", "-x", "c", "-w", "-D__CYCLONE__", "-U__GNUC__"])
        .args(arguments)
        .arg(file)
        .stdin(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run the preprocessor {}: {error}", compiler.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned());
    }
    text_of(output.stdout)
}
