//! The preprocessor with what the command line and the C compiler say, and the rules for make that come of it.
//!
//! The macros that the C compiler knows by itself are asked for once, and kept beside the compiled libraries.

use super::options::Options;
use super::{archive, home};
use crate::check::Dialect;
use crate::diagnostics::{Code, Diagnostic};
use crate::preprocess::{self, Dependency, Failure, MacroOption, Preprocessed, Settings};
use crate::source::{Source, Span};
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why a file was not preprocessed.
#[derive(Debug)]
pub enum Error {
    /// Something in it, or in what it includes.
    Text(Failure),
    /// Something else.
    Other(String),
}

impl From<String> for Error {
    fn from(message: String) -> Error {
        Error::Other(message)
    }
}

/// The C compiler: what `--cc` or `CC` names, else gcc.
pub fn c_compiler(options: &Options) -> OsString {
    options.c_compiler.clone().or_else(|| std::env::var_os("CC")).unwrap_or_else(|| "gcc".into())
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

/// A text that stands for a file, and the headers that it includes: our own come after those that `-I` names, and the machine's, which are not Cyclone,
/// are not looked for.
///
/// # Errors
/// What is wrong with it.
pub fn preprocess(path: &Path, text: &str, options: &Options) -> Result<Preprocessed, Error> {
    preprocess::preprocess(path, text, &settings(options)?).map_err(Error::Text)
}

fn settings(options: &Options) -> Result<Settings, String> {
    let mut settings = Settings {
        predefined: predefined(&c_compiler(options))?,
        unsaved: options.unsaved.clone(),
        ..Settings::default()
    };
    settings.macros.push(MacroOption::Define("__CYCLONE__".to_owned()));
    settings.macros.extend(["__GNUC__", "linux", "unix"].map(|name| MacroOption::Undefine(name.to_owned())));
    if options.rules.dialect == Dialect::Paper {
        settings.macros.push(MacroOption::Define("__CYCLONE_COMPAT__=8".to_owned()));
    }
    let mut arguments = options.preprocessor.iter();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        let (option, mut value) =
            match ["-isystem", "-include", "-I", "-D", "-U"].iter().find(|option| text.starts_with(*option)) {
                Some(option) => (*option, text[option.len()..].to_owned()),
                None => continue,
            };
        if value.is_empty() {
            value = arguments.next().map_or(String::new(), |value| value.to_string_lossy().into_owned());
        }
        match option {
            "-I" => settings.directories.push(value.into()),
            "-isystem" => settings.system_directories.push(value.into()),
            "-include" => settings.included_first.push(value),
            "-D" => settings.macros.push(MacroOption::Define(value)),
            _ => settings.macros.push(MacroOption::Undefine(value)),
        }
    }
    if options.own_headers {
        settings.directories.push(library_directory(options)?);
    }
    Ok(settings)
}

/// The macros that a C compiler defines by itself, as lines.
fn predefined(compiler: &OsStr) -> Result<String, String> {
    let kept = kept_under(compiler);
    if let Some(text) = kept.as_ref().and_then(|path| std::fs::read_to_string(path).ok()) {
        return Ok(text);
    }
    let cannot = |error: &dyn std::fmt::Display| format!("cannot run the C compiler {}: {error}", compiler.display());
    let output = Command::new(compiler)
        .args(["-E", "-dM", "-x", "c", "-nostdinc", "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| cannot(&error))?;
    if !output.status.success() {
        return Err(cannot(&String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if let Some(path) = kept {
        // It is written beside its name first: others may be reading. What cannot be kept is asked for again.
        let staged = path.with_extension(std::process::id().to_string());
        if std::fs::write(&staged, &text).and_then(|()| std::fs::rename(&staged, &path)).is_err() {
            let _ = std::fs::remove_file(&staged);
        }
    }
    Ok(text)
}

/// The file for the macros of a compiler: another one if the compiler changes.
fn kept_under(compiler: &OsStr) -> Option<PathBuf> {
    let named = Path::new(compiler);
    let program = match named.components().count() {
        1 => std::env::split_paths(&std::env::var_os("PATH")?)
            .map(|directory| directory.join(named))
            .find(|path| path.is_file())?,
        _ => std::path::absolute(named).ok()?,
    };
    let metadata = std::fs::metadata(&program).ok()?;
    let mut hasher = DefaultHasher::new();
    (program, metadata.len(), metadata.modified().ok()).hash(&mut hasher);
    Some(archive::cache().ok()?.join(format!("macros-{:016x}", hasher.finish())))
}

/// What is wrong in its place, or at the file's start. The text is that of the file itself, if it is not what is saved.
pub fn diagnostic(file: &OsStr, text: Option<&str>, error: &Error) -> (Source, Diagnostic) {
    let (name, line, message) = match error {
        Error::Text(failure) => (failure.file.clone(), failure.line, failure.message.clone()),
        Error::Other(message) => (file.to_string_lossy().into_owned(), 1, message.clone()),
    };
    let saved = match text.filter(|_| Path::new(&name) == Path::new(file)) {
        Some(text) => text.to_owned(),
        None => std::fs::read(&name).map(crate::source::text_of).unwrap_or_default(),
    };
    let shown = match error {
        Error::Text(_) => saved.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default(),
        Error::Other(_) => "",
    };
    let mut source = Source::new(&name, shown.to_owned());
    source.add_marker(0, &name, line);
    (source, Diagnostic::error(Code::Preprocessor, Span { start: 0, end: shown.len() as u32 }, message))
}

/// What `-MD` and its like say.
#[derive(Default)]
struct Rule<'a> {
    /// `-MD` or `-MMD`.
    is_asked: bool,
    leaves_out_system: bool,
    has_phony: bool,
    file: Option<&'a OsStr>,
    targets: Vec<String>,
}

impl Rule<'_> {
    fn of(arguments: &[OsString]) -> Rule<'_> {
        let mut rule = Rule::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.to_str() {
                Some("-MD") => rule.is_asked = true,
                Some("-MMD") => (rule.is_asked, rule.leaves_out_system) = (true, true),
                Some("-MP") => rule.has_phony = true,
                Some("-MF") => rule.file = arguments.next().map(OsString::as_os_str),
                Some("-MT") => {
                    rule.targets.extend(arguments.next().map(|target| target.to_string_lossy().into_owned()))
                }
                Some("-MQ") => rule.targets.extend(arguments.next().map(|target| quoted(&target.to_string_lossy()))),
                _ => {}
            }
        }
        rule
    }

    /// The rule as make reads it.
    fn text(&self, source: &Path, dependencies: &[Dependency]) -> String {
        let object =
            || quoted(&Path::new(source.file_name().unwrap_or_default()).with_extension("o").to_string_lossy());
        let targets = if self.targets.is_empty() { object() } else { self.targets.join(" ") };
        let mut out = format!("{targets}:");
        let mut width = out.len();
        let asked = |dependency: &&Dependency| !(self.leaves_out_system && dependency.is_system);
        let names: Vec<String> =
            dependencies.iter().filter(asked).map(|dependency| quoted(&dependency.path.to_string_lossy())).collect();
        for name in &names {
            if width + name.len() > 76 {
                out.push_str(" \\\n");
                width = 0;
            }
            let _ = write!(out, " {name}");
            width += name.len() + 1;
        }
        out.push('\n');
        for name in names.iter().skip(1).filter(|_| self.has_phony) {
            let _ = writeln!(out, "{name}:");
        }
        out
    }
}

/// A name as make reads it.
fn quoted(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            ' ' | '\t' | '#' => out.extend(['\\', c]),
            '$' => out.push_str("$$"),
            c => out.push(c),
        }
    }
    out
}

/// The files that a file depends on, as `-M` or `-MM` asks for them.
pub fn dependencies(how: &OsStr, source: &Path, files: &[Dependency], options: &Options) -> String {
    let rule = Rule { leaves_out_system: how == "-MM", ..Rule::of(&options.dependency_file) };
    rule.text(source, files)
}

/// Writes what `-MD` and its like ask for.
///
/// # Errors
/// If the file cannot be written.
pub fn write_dependencies(source: &Path, files: &[Dependency], options: &Options) -> Result<(), String> {
    let rule = Rule::of(&options.dependency_file);
    if !rule.is_asked {
        return Ok(());
    }
    let path = rule.file.map_or_else(|| source.with_extension("d"), PathBuf::from);
    std::fs::write(&path, rule.text(source, files)).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_the_targets_and_files_that_are_asked_for() {
        let files = [("a b.cyc", false), ("x.h", false), ("/usr/y.h", true)];
        let files = files.map(|(path, is_system)| Dependency { path: path.into(), is_system });
        let rule = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            Rule::of(&arguments).text(Path::new("dir/a b.cyc"), &files)
        };
        assert_eq!(rule(&["-MD"]), "a\\ b.o: a\\ b.cyc x.h /usr/y.h\n");
        assert_eq!(rule(&["-MMD", "-MP", "-MQ", "$x"]), "$$x: a\\ b.cyc x.h\nx.h:\n");
        assert_eq!(rule(&["-MD", "-MT", "$x", "-MT", "y"]), "$x y: a\\ b.cyc x.h /usr/y.h\n");
    }

    #[test]
    fn an_error_is_shown_in_its_line() {
        let failure = Failure { file: "never saved.cyc".to_owned(), line: 2, message: "wrong".to_owned() };
        let (source, diagnostic) =
            diagnostic(OsStr::new("never saved.cyc"), Some("one\n#two\n"), &Error::Text(failure));
        assert_eq!((source.place(0).line, source.slice(diagnostic.span)), (2, "#two"));
    }
}
