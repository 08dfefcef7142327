//! The C preprocessor: from a file and its headers to one text with line markers.
//!
//! It is C11's with what GNU C adds (`#include_next`, `#import`, named variable arguments, `, ## __VA_ARGS__`, `__COUNTER__`, `__has_include`, `#pragma once`,
//! `push_macro`), and makes the tokens and line markers of `gcc -E`; a test compares the two over many files. To run gcc for it would take several times as long
//! as all of the compiler's own work on a small file.
//!
//! How a file is read ([`lines`], [`token`]): lines that end in a backslash are joined first; where they were is kept, so that lines are counted as
//! they were written. Text between macros is copied as it stands, with a blank for each comment. What Cyclone has beyond C (`` `a ``, `\U`, `@fat`) are signs
//! and names to the preprocessor, and stay together.
//!
//! How macros are expanded ([`expand`], [`macros`]): a name that is a macro is replaced by a *context*, a list of tokens that is read before the rest. While a macro's
//! context is open, the macro is disabled, and its name, if it is read, is never expanded any more. Arguments are expanded apart, in a context that ends
//! there. This is how gcc does it, so that both agree where C leaves open what is meant.
//!
//! Directives ([`directives`]), conditions ([`condition`]), files ([`include`]) and the text that is written ([`output`]) have a file each.
//!
//! The first error ends it. Whatever the text is, it does not panic; the nesting of files, arguments and parentheses and the number of tokens are limited.
//! What it does not have: raw strings, `__VA_OPT__`, `#embed`, and attributes or functions of C compilers: `__has_attribute` and its like are 0.

mod condition;
mod directives;
mod expand;
mod include;
mod lines;
mod macros;
mod output;
mod token;

use crate::hash::{HashMap, HashSet};
use directives::Conditional;
use expand::Context;
use include::File;
use macros::Names;
use output::Output;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Files in files, beyond which a file probably includes itself.
const MOST_FILES: usize = 200;

/// Arguments in arguments.
const MOST_DEPTH: usize = 200;

/// More tokens than this do not come from macros: a few lines could otherwise ask for any number.
const MOST_TOKENS: u64 = 1 << 24;

/// `-D` or `-U`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MacroOption {
    /// `NAME`, `NAME=VALUE` or `NAME(PARAMETERS)=VALUE`.
    Define(String),
    /// `NAME`.
    Undefine(String),
}

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `-I`, in order.
    pub directories: Vec<PathBuf>,
    /// `-isystem`, in order; looked through after the others.
    pub system_directories: Vec<PathBuf>,
    /// `-D` and `-U`, in order.
    pub macros: Vec<MacroOption>,
    /// `-include`, in order.
    pub included_first: Vec<String>,
    /// The macros of the C compiler, as `#define` lines.
    pub predefined: String,
    /// What stands for files that are not saved, by their canonical names.
    pub unsaved: BTreeMap<PathBuf, Arc<str>>,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// As it was found.
    pub path: PathBuf,
    /// It is from a directory of `-isystem`.
    pub is_system: bool,
}

/// What becomes of a file.
#[derive(Debug)]
pub struct Preprocessed {
    /// The text, with line markers.
    pub text: String,
    /// The files that were read, each once, the main file first.
    pub dependencies: Vec<Dependency>,
}

/// Why a file cannot be preprocessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The file, as `#line` names it.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:1: error: {}", self.file, self.line, self.message)
    }
}

type Result<T> = std::result::Result<T, Failure>;

/// Preprocesses a text that stands for a file: headers are looked for beside it.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn preprocess(path: &Path, text: &str, settings: &Settings) -> Result<Preprocessed> {
    let mut preprocessor = Preprocessor::new(settings);
    preprocessor.silently("<built-in>", &settings.predefined)?;
    preprocessor.silently("<command-line>", &command_line(&settings.macros))?;
    let name: Rc<str> = path.to_string_lossy().into();
    preprocessor.base_name = name.clone();
    preprocessor.begin(File::main(path, name, text))?;
    for file in settings.included_first.iter().rev() {
        preprocessor.include_first(file)?;
    }
    preprocessor.run()?;
    Ok(Preprocessed { text: preprocessor.output.text, dependencies: preprocessor.dependencies })
}

/// The options as the lines that they stand for.
fn command_line(options: &[MacroOption]) -> String {
    let line = |option: &MacroOption| match option {
        MacroOption::Define(definition) => match definition.split_once('=') {
            Some((name, value)) => format!("#define {name} {}\n", value.lines().next().unwrap_or_default()),
            None => format!("#define {definition} 1\n"),
        },
        MacroOption::Undefine(name) => format!("#undef {name}\n"),
    };
    options.iter().map(line).collect()
}

struct Preprocessor<'a> {
    settings: &'a Settings,
    names: Names,
    /// The innermost last.
    files: Vec<File>,
    conditionals: Vec<Conditional>,
    /// In a group whose condition does not hold.
    is_skipping: bool,
    contexts: Vec<Context>,
    /// Of arguments in arguments.
    depth: usize,
    tokens: u64,
    /// The line of the outermost macro's name: what `__LINE__` is in it.
    invoked_at: u32,
    /// Some while an `#if` is being read.
    defined: Option<expand::Defined>,
    counter: u64,
    base_name: Rc<str>,
    output: Output,
    /// Nothing is written.
    is_silent: bool,
    /// Arguments are being collected: a directive may stand among them.
    is_collecting: bool,
    dependencies: Vec<Dependency>,
    known: HashSet<PathBuf>,
    /// Files that are read once.
    once: HashSet<PathBuf>,
    /// Texts of files that may be read again.
    texts: HashMap<PathBuf, Rc<lines::Joined>>,
    pushed: HashMap<String, Vec<Option<Rc<macros::Macro>>>>,
}

impl<'a> Preprocessor<'a> {
    fn new(settings: &'a Settings) -> Preprocessor<'a> {
        Preprocessor {
            settings,
            names: Names::new(),
            files: Vec::new(),
            conditionals: Vec::new(),
            is_skipping: false,
            contexts: Vec::new(),
            depth: 0,
            tokens: 0,
            invoked_at: 0,
            defined: None,
            counter: 0,
            base_name: "".into(),
            output: Output::default(),
            is_silent: false,
            is_collecting: false,
            dependencies: Vec::new(),
            known: HashSet::default(),
            once: HashSet::default(),
            texts: HashMap::default(),
            pushed: HashMap::default(),
        }
    }

    /// Directives of no file: nothing is written.
    fn silently(&mut self, name: &str, text: &str) -> Result<()> {
        self.is_silent = true;
        self.files.push(File::inner(name, text));
        self.run()?;
        self.is_silent = false;
        Ok(())
    }

    /// All lines of the files that are open.
    fn run(&mut self) -> Result<()> {
        while !self.files.is_empty() {
            if self.begin_line()? {
                self.text_line()?;
            } else {
                self.end_file()?;
            }
        }
        Ok(())
    }

    /// Goes over directives, and lines that are skipped, to the next line of text; false at the end of the file.
    fn begin_line(&mut self) -> Result<bool> {
        loop {
            let Some(file) = self.files.last_mut() else { return Ok(false) };
            let begin = file.at;
            file.skip_blanks().map_err(|message| file.failure(message))?;
            let Some(byte) = file.peek(0) else { return Ok(false) };
            let is_directive = byte == b'#' || byte == b'%' && file.peek(1) == Some(b':');
            if is_directive {
                file.at += if byte == b'#' { 1 } else { 2 };
                self.directive()?;
            } else if byte == b'\n' {
                file.newline();
            } else if self.is_skipping {
                file.skip_line().map_err(|message| file.failure(message))?;
            } else {
                // Blanks before the text are kept, unless a comment of several lines is among them.
                if !file.text()[begin..file.at].contains(['\n', '/']) {
                    file.at = begin;
                }
                return Ok(true);
            }
        }
    }

    /// Something is wrong at the line that is being read.
    fn failure(&self, message: impl Into<String>) -> Failure {
        match self.files.last() {
            Some(file) => file.failure(message),
            None => Failure { file: self.base_name.to_string(), line: 1, message: message.into() },
        }
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(self.failure(message))
    }
}
