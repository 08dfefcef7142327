//! The command line, read like that of a C compiler.

use crate::check::{Dialect, Loopholes, Rules};
use crate::diagnostics::Form;
use crate::lower::LineInfo;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

/// Whether reports of the compiler that are not errors stop it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Warnings {
    /// Not shown.
    Hidden,
    /// Shown.
    Shown,
    /// Errors.
    Errors,
}

/// How far a command goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// After the syntax.
    Syntax,
    /// After the checks.
    Check,
    /// After the C text.
    C,
}

/// What the heap region is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heap {
    /// Collected (libgc).
    Collected,
    /// `malloc`'s: what nobody frees stays.
    Malloc,
}

/// What the command line asks for.
#[derive(Clone, Debug)]
pub struct Options {
    /// `.cyc`, `.c`, `.o`, `.a` files; `-` is the standard input.
    pub files: Vec<OsString>,
    /// What follows `--`: arguments of the program that `run` starts.
    pub arguments: Vec<OsString>,
    /// `-I`, `-D` and others of the preprocessor.
    pub preprocessor: Vec<OsString>,
    /// `-O2`, `-g`, `-m..`, `-f..`: for the C compiler.
    pub compiler: Vec<OsString>,
    /// `-l`, `-L`, `-Wl,..`, `-static`: for linking.
    pub linker: Vec<OsString>,
    /// `-o`.
    pub output: Option<PathBuf>,
    /// `-c`.
    pub compile_only: bool,
    /// `-M` and its like.
    pub dependencies: Option<OsString>,
    /// `-MD` and what goes with it: dependencies are written while a file is compiled.
    pub dependency_file: Vec<OsString>,
    /// The files are to be preprocessed.
    pub preprocess: bool,
    /// Our own headers are used.
    pub own_headers: bool,
    /// `--lib`: where the headers and the library are instead of ours.
    pub library: Option<PathBuf>,
    /// How far to go.
    pub stop: Stop,
    /// The form of messages.
    pub form: Form,
    /// What becomes of warnings.
    pub warnings: Warnings,
    /// `-Wlose-unique`: report leaks.
    pub lose_unique: bool,
    /// List the checks that remain.
    pub explain_checks: bool,
    /// `#line` in the C text.
    pub lines: LineInfo,
    /// Say how long each phase took.
    pub time: bool,
    /// The dialect, and what becomes of the original's loopholes.
    pub rules: Rules,
    /// What the heap is.
    pub heap: Heap,
    /// The program may have threads.
    pub threads: bool,
    /// What stands for files that an editor has not saved, by their canonical names.
    pub unsaved: BTreeMap<PathBuf, Arc<str>>,
    /// `--cc`.
    pub c_compiler: Option<OsString>,
}

/// Reads the arguments after the command.
///
/// # Errors
/// A message for the user.
pub fn read(arguments: &[OsString]) -> Result<Options, String> {
    let options = read_for_any_file(arguments)?;
    if options.files.is_empty() { Err("no files given".to_owned()) } else { Ok(options) }
}

/// Reads arguments that hold for files which are named later.
///
/// # Errors
/// A message for the user.
pub fn read_for_any_file(arguments: &[OsString]) -> Result<Options, String> {
    let colour = std::io::stderr().is_terminal();
    let mut options = Options {
        files: Vec::new(),
        arguments: Vec::new(),
        preprocessor: Vec::new(),
        compiler: Vec::new(),
        linker: Vec::new(),
        output: None,
        compile_only: false,
        dependencies: None,
        dependency_file: Vec::new(),
        preprocess: true,
        own_headers: true,
        library: None,
        stop: Stop::Check,
        form: Form::Source { colour },
        warnings: Warnings::Shown,
        lose_unique: false,
        explain_checks: false,
        lines: LineInfo::Source,
        time: false,
        rules: Rules::default(),
        heap: Heap::Collected,
        threads: false,
        unsaved: BTreeMap::new(),
        c_compiler: None,
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(text) = argument.to_str() else {
            options.files.push(argument.clone());
            continue;
        };
        let mut value = || rest.next().cloned().ok_or_else(|| format!("{text} needs a value"));
        match text {
            "--" => {
                options.arguments = rest.cloned().collect();
                break;
            }
            "-o" => options.output = Some(value()?.into()),
            "--lib" => options.library = Some(value()?.into()),
            "--cc" => options.c_compiler = Some(value()?),
            "-I" | "-D" | "-U" | "-include" | "-isystem" => {
                let value = value()?;
                options.preprocessor.extend([argument.clone(), value]);
            }
            "-MD" | "-MMD" | "-MP" => options.dependency_file.push(argument.clone()),
            "-MF" | "-MT" | "-MQ" => {
                let value = value()?;
                options.dependency_file.extend([argument.clone(), value]);
            }
            "-l" | "-L" | "-Xlinker" => {
                let value = value()?;
                options.linker.extend([argument.clone(), value]);
            }
            _ if !options.set(text) && !options.pass_on(text, argument) => {
                if text.starts_with('-') && text != "-" {
                    return Err(format!("unknown option {text}"));
                }
                options.files.push(argument.clone());
            }
            _ => {}
        }
    }
    Ok(options)
}

impl Options {
    /// Options of our own without a value.
    fn set(&mut self, text: &str) -> bool {
        match text {
            "-c" => self.compile_only = true,
            "--parse-only" => self.stop = Stop::Syntax,
            "--no-preprocess" => self.preprocess = false,
            "--plain" => self.form = Form::Plain,
            "--json" => self.form = Form::Json,
            "--time" => self.time = true,
            "--explain-checks" => self.explain_checks = true,
            "--no-line" => self.lines = LineInfo::None,
            "--no-gc" | "-nogc" => self.heap = Heap::Malloc,
            "-fthreads" | "-pthread" => self.threads = true,
            "--compat=0.8" => self.rules.dialect = Dialect::Paper,
            "--compat=1.0" => self.rules.loopholes = Loopholes::Open,
            "-nostdinc" => self.own_headers = false,
            "-w" => self.warnings = Warnings::Hidden,
            "-Werror" => self.warnings = Warnings::Errors,
            "-Wlose-unique" => self.lose_unique = true,
            "-M" | "-MM" => self.dependencies = Some(text.into()),
            // The rest of the warnings of C compilers is not asked for here: there is one set, always on.
            _ if text.starts_with("-W") && !text.starts_with("-Wl,") => {}
            _ => return false,
        }
        true
    }

    /// Options for other programs.
    fn pass_on(&mut self, text: &str, argument: &OsStr) -> bool {
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
        let list = if begins(&["-I", "-D", "-U"]) {
            &mut self.preprocessor
        } else if begins(&["-l", "-L", "-Wl,", "-static", "-shared", "-rdynamic", "-no-pie", "-pie"]) {
            &mut self.linker
        } else if begins(&["-O", "-g", "-f", "-m", "-std=", "-p"]) {
            &mut self.compiler
        } else {
            return false;
        };
        list.push(argument.to_owned());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Options, String> {
        let arguments: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        read(&arguments)
    }

    #[test]
    fn options_go_to_the_program_they_are_for() {
        let options = of("a.cyc -O2 -Iinclude -D X=1 -lm -Wall b.o -o out -- -x y").unwrap();
        assert_eq!(options.files, ["a.cyc", "b.o"]);
        assert_eq!(options.compiler, ["-O2"]);
        assert_eq!(options.preprocessor, ["-Iinclude", "-D", "X=1"]);
        assert_eq!(options.linker, ["-lm"]);
        assert_eq!(options.arguments, ["-x", "y"]);
        assert_eq!(options.output.unwrap().to_str(), Some("out"));
    }

    #[test]
    fn whatever_the_arguments_are_they_are_read_or_refused() {
        use std::os::unix::ffi::OsStrExt;
        const WORDS: &[&[u8]] = &[
            b"",
            b"-",
            b"--",
            b"-o",
            b"-c",
            b"a.cyc",
            b"-I",
            b"-Ix",
            b"-D",
            b"-l",
            b"-MF",
            b"-M",
            b"-Wl,",
            b"-W",
            b"-O2",
            b"--cc",
            b"--lib",
            b"--cc=x",
            b"-\xff",
            b"\xc3(",
            b"@file",
            b"--json",
            b"-std=",
            b"-include",
            b"\n",
            b"-x",
        ];
        let mut state = 1_u64;
        let mut below = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit
        };
        for _ in 0..20_000 {
            let count = below(6);
            let arguments: Vec<OsString> =
                (0..count).map(|_| OsStr::from_bytes(WORDS[below(WORDS.len())]).to_owned()).collect();
            match read(&arguments) {
                Ok(options) => assert!(!options.files.is_empty()),
                Err(message) => assert!(!message.is_empty()),
            }
        }
    }

    #[test]
    fn an_unknown_option_or_a_missing_value_is_an_error() {
        assert!(of("a.cyc --frobnicate").is_err());
        assert!(of("a.cyc -o").is_err());
        assert!(of("-O2").is_err());
    }
}
