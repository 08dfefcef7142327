//! The command line: which files, through which phases, with which output.
//!
//! A translation unit goes through the preprocessor ([`crate::preprocess`]; [`preprocessing`] says with which macros and directories), which leaves line
//! markers, then through the compiler's phases ([`mod@unit`]) on a thread with a large stack: the parser's limits
//! ([`crate::parse::DEPTH_LIMIT`]) are set for it. C text goes to the C compiler ([`build`]), and what it makes is linked with the
//! library and run time, which are compiled once for each set of options ([`archive`]).
//!
//! Exit codes: 0 all went well, 1 the input has errors, 2 the command line has.

mod archive;
mod build;
mod generators;
mod home;
mod lsp;
mod options;
mod preprocessing;
mod project;
mod unit;

use crate::ast::Item;
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Source;
use crate::{lex, parse};
use options::{Options, Stop};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use thin_vec::ThinVec;
use unit::Outcome;

const USAGE: &str = "\
cyc: a compiler for Cyclone

  cyc build [options] FILE..            compile and link .cyc, .c, .o and .a files
  cyc run [options] FILE.. [-- ARG..]   the same, and run the program
  cyc check [options] FILE..            report errors
  cyc emit-c [options] FILE             write C
  cyc preprocess [options] FILE         write what the compiler reads
  cyc lsp [options]                     serve an editor (Language Server Protocol)
  cyc yacc [options] FILE.y             write a parser, FILE.cyc and FILE.h (options are bison's)
  cyc lex [options] FILE.re             write a lexical analyser, FILE.cyc (options are re2c's)
  cyc new DIRECTORY                     begin a project
  cyc explain CODE                      say what an error code means

options
  -o FILE           where the result goes
  -c                compile, do not link
  -I DIR, -D NAME[=VALUE], -U NAME, -include FILE, -isystem DIR
  -nostdinc         do not read our own headers
  -M, -MM           with preprocess: the files this one depends on, for make
  -MD, -MMD, -MF FILE, -MT NAME, -MP    with build: write these beside what is compiled
  -O.., -g, -f.., -m..                  for the C compiler; -fsanitize=address, with --no-gc, also looks at C code beside
  -l NAME, -L DIR, -static, -Wl,..      for the linker
  --no-gc           no collector: the heap is malloc's, and what nobody frees stays
  -fthreads         the program may have threads, which take turns
  --compat=0.8      the dialect of Cyclone 0.8
  --compat=1.0      what the original accepts although it is not safe is accepted, with a warning
  --lib DIR         headers here instead of our own
  --cc NAME         the C compiler (default: what CC names, else gcc)
  -w, -Werror       hide warnings, or take them for errors (all are on, as if by -Wall)
  -Wlose-unique     report unique and counted pointers that are lost
  --explain-checks  list the checks that remain at run time
  --no-line         no #line in the C text
  --no-preprocess   the files are preprocessed already
  --parse-only      check the syntax only
  --plain, --json   messages on one line each: for scripts, for editors
  --time            say how long each phase took

CYC_HOME names the directory of the library and run time, CYC_CACHE the one where they are kept compiled.
";

/// The stack of the thread that compiles; see [`crate::parse::DEPTH_LIMIT`].
const STACK_BYTES: usize = 512 << 20;

/// Runs the command with these arguments (without the program's name).
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let Some((command, rest)) = arguments.split_first() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    let command = command.to_string_lossy();
    let own = rest.iter().take_while(|argument| *argument != "--");
    if own.into_iter().any(|argument| argument == "--help" || argument == "-h") {
        return help();
    }
    match &*command {
        "build" | "run" | "check" | "emit-c" | "preprocess" => match options::read(rest) {
            Ok(options) => on_large_stack(&command, options),
            Err(message) => wrong_command(&message),
        },
        "lsp" => match options::read_for_any_file(rest) {
            Ok(options) => on_large_stack(&command, options),
            Err(message) => wrong_command(&message),
        },
        "new" => match rest {
            [directory] => project::begin(directory),
            _ => wrong_command("new takes the name of a directory"),
        },
        "yacc" => generators::parser(rest),
        "lex" => generators::analyser(rest),
        "explain" => explain(rest),
        "help" | "--help" | "-h" => help(),
        "--version" => {
            println!("cyc {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        file if Path::new(file).extension().is_some() => wrong_command(&format!(
            "{file} is not a command; `cyc build {file}` compiles a file, `cyc run {file}` also runs it"
        )),
        _ => wrong_command(&format!("there is no command {command}; `cyc help` lists them")),
    }
}

fn help() -> ExitCode {
    print!("{USAGE}");
    ExitCode::SUCCESS
}

fn wrong_command(message: &str) -> ExitCode {
    eprintln!("cyc: {message}");
    ExitCode::from(2)
}

fn explain(arguments: &[OsString]) -> ExitCode {
    match arguments.first().and_then(|code| code.to_str()).and_then(Code::explain) {
        Some(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        None => wrong_command("explain takes an error code, such as E0003"),
    }
}

fn on_large_stack(command: &str, options: Options) -> ExitCode {
    let command = command.to_owned();
    let worker = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || match command.as_str() {
        "check" => check(&options),
        "emit-c" => emit_c(options),
        "preprocess" => preprocess(&options),
        "run" => build::run(options),
        "lsp" => lsp::serve(&options),
        _ => build::build(options),
    });
    match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(Ok(code))) => ExitCode::from(code),
        Ok(Ok(Err(message))) => {
            eprintln!("cyc: {message}");
            ExitCode::FAILURE
        }
        _ => {
            eprintln!("cyc: the compiler itself failed; please report the input that made it fail");
            ExitCode::from(101)
        }
    }
}

/// What a command comes to: an exit code, or why it could not do its work.
type Result = std::result::Result<u8, String>;

fn check(options: &Options) -> Result {
    let mut failed = false;
    for file in &options.files {
        failed |= matches!(unit::compile(file, options), Outcome::Failed);
    }
    Ok(u8::from(failed))
}

fn emit_c(mut options: Options) -> Result {
    options.stop = Stop::C;
    let [file] = &options.files[..] else { return Err("emit-c takes one file".to_owned()) };
    match unit::compile(file, &options) {
        Outcome::C(text) => write(&options, text.as_bytes()),
        Outcome::Checked => Ok(0),
        Outcome::Failed => Ok(1),
    }
}

fn preprocess(options: &Options) -> Result {
    let mut all = Vec::new();
    for file in &options.files {
        let made = match unit::preprocess(file, options) {
            Ok(made) => made,
            Err(preprocessing::Error::Text(failure)) => return Err(failure.to_string()),
            Err(preprocessing::Error::Other(message)) => return Err(message),
        };
        let text = match &options.dependencies {
            Some(how) => preprocessing::dependencies(how, Path::new(file), &made.dependencies, options),
            None => made.text,
        };
        all.extend(text.into_bytes());
    }
    write(options, &all)
}

/// Writes to the file that `-o` names, or to the standard output.
fn write(options: &Options, bytes: &[u8]) -> Result {
    let written = match options.output.as_deref() {
        Some(path) if path.as_os_str() != OsStr::new("-") => std::fs::write(path, bytes),
        _ => std::io::stdout().lock().write_all(bytes),
    };
    written.map_err(|error| error.to_string()).map(|()| 0)
}

/// A translation unit after the parser.
#[derive(Debug)]
pub struct Unit {
    /// Its text and places.
    pub source: Source,
    /// What could be parsed.
    pub items: ThinVec<Item>,
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
