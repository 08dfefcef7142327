//! From files of any kind to objects and programs.

use super::options::{Heap, Options, Stop};
use super::preprocessing::c_compiler;
use super::unit::{Outcome, compile};
use super::{archive, home};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What C compilers must not conclude from what C leaves undefined: that would undo checks.
const SAFETY: [&str; 3] = ["-fwrapv", "-fno-strict-aliasing", "-fno-delete-null-pointer-checks"];

/// A function that takes much of the stack touches each page of it, so that it reaches the guard page below and nothing behind it.
const STACK: &str = "-fstack-clash-protection";

/// A short loop that lies across two lines of the instruction cache takes up to twice the time: where speed is asked for, this
/// is not left to chance.
const LOOPS: &str = "-falign-loops=32";

/// With its checks a function is larger than the same without: gcc's measure of what is small enough to be written in the place of a
/// call is too small for it. Clang, which has no such option, passes over it.
const INLINE_LIMIT: &str = "-finline-limit=200";

/// A directory for intermediate files, of a name that nobody else knows, that is removed in the end.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    /// A new directory.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new() -> Result<Scratch, String> {
        let made = tempfile::Builder::new().prefix("cyc-").tempdir();
        made.map(Scratch).map_err(|error| format!("{}: {error}", std::env::temp_dir().display()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// `cyc build`
pub fn build(options: Options) -> super::Result {
    let scratch = Scratch::new()?;
    if options.compile_only {
        return objects_only(&options, &scratch);
    }
    let output = options.output.clone().unwrap_or_else(|| "a.out".into());
    link_program(&options, &scratch, &output)
}

/// `cyc run`
pub fn run(options: Options) -> super::Result {
    let scratch = Scratch::new()?;
    let program = options.output.clone().unwrap_or_else(|| scratch.path().join("program"));
    let code = link_program(&options, &scratch, &program)?;
    if code != 0 {
        return Ok(code);
    }
    let program = program.canonicalize().unwrap_or(program);
    let status = Command::new(&program)
        .args(&options.arguments)
        .status()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    // A program ended by a signal is reported as shells do.
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return Ok(128 + signal as u8);
    }
    Ok(status.code().unwrap_or(1) as u8)
}

fn objects_only(options: &Options, scratch: &Scratch) -> super::Result {
    if options.output.is_some() && options.files.len() > 1 {
        return Err("-o with -c takes one file".to_owned());
    }
    for file in &options.files {
        let output = match &options.output {
            Some(output) => output.clone(),
            None => Path::new(Path::new(file).file_name().unwrap_or(file)).with_extension("o"),
        };
        if object(file, &output, options, scratch)?.is_none() {
            return Ok(1);
        }
    }
    Ok(0)
}

fn link_program(options: &Options, scratch: &Scratch, output: &Path) -> super::Result {
    let mut inputs: Vec<OsString> = Vec::new();
    let mut failed = false;
    for (index, file) in options.files.iter().enumerate() {
        if !matches!(extension(file), Some("cyc" | "c" | "h")) && file != "-" {
            inputs.push(file.clone());
            continue;
        }
        let path = scratch.path().join(format!("{index}.o"));
        match object(file, &path, options, scratch)? {
            Some(path) => inputs.push(path.into()),
            None => failed = true,
        }
    }
    if failed {
        return Ok(1);
    }
    let library = archive::library(options).map_err(|error| with_missing_collector(error, options))?;
    let mut command = Command::new(c_compiler(options));
    command.args(&options.compiler).args(&inputs).arg("-o").arg(output).args(&options.linker);
    // The library and the run time call each other.
    command.arg("-Wl,--start-group").arg(library).arg("-Wl,--end-group");
    if options.heap == Heap::Collected {
        command.arg("-lgc");
    }
    if options.threads {
        command.arg("-pthread");
    }
    // Names for the stack trace of an exception that nobody catches.
    command.args(["-rdynamic", "-lm"]);
    succeed(command).map_err(|error| with_missing_collector(error, options))?;
    Ok(0)
}

/// The error of a compilation, and what to do if it is that the collector is not there.
fn with_missing_collector(error: String, options: &Options) -> String {
    let compiler = || {
        let mut command = Command::new(c_compiler(options));
        command.args(&options.compiler).stdin(Stdio::null()).stderr(Stdio::null());
        command
    };
    let has_header = || {
        let mut preprocessor = compiler();
        preprocessor.args(["-E", "-include", "gc.h", "-x", "c", "/dev/null"]).stdout(Stdio::null());
        preprocessor.status().is_ok_and(|status| status.success())
    };
    // What is not found is printed as it was asked for.
    let has_library = || {
        ["libgc.so", "libgc.a"].iter().any(|name| {
            let found = compiler().arg(format!("-print-file-name={name}")).output();
            found.is_ok_and(|output| output.stdout.contains(&b'/'))
        })
    };
    if options.heap == Heap::Malloc || has_header() && has_library() {
        return error;
    }
    format!(
        "{error}: libgc, the collector, is not there for {}; install it (libgc-dev), or build with --no-gc",
        c_compiler(options).display()
    )
}

fn extension(file: &OsStr) -> Option<&str> {
    Path::new(file).extension().and_then(OsStr::to_str)
}

/// Compiles a `.cyc` or `.c` file to an object; `None` if it has errors, which were shown.
///
/// # Errors
/// If the C compiler fails.
pub fn object(file: &OsStr, output: &Path, options: &Options, scratch: &Scratch) -> Result<Option<PathBuf>, String> {
    let mut command = c_compiler_command(options)?;
    let dependency_file = dependency_file(output, options);
    if extension(file) == Some("c") {
        command.args(&options.preprocessor).args(dependency_file).arg("-c").arg(file);
    } else {
        let options = Options { stop: Stop::C, dependency_file, ..options.clone() };
        let Outcome::C(text) = compile(file, &options) else { return Ok(None) };
        let stem = output.file_stem().unwrap_or(OsStr::new("unit")).to_string_lossy().into_owned();
        let path = scratch.path().join(format!("{stem}.c"));
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        command.arg("-w").arg("-c").arg(&path);
        let is_chosen = options.compiler.iter().any(|option| option.to_string_lossy().starts_with("-finline-limit"));
        if is_optimized(&options) && !is_chosen {
            command.arg(INLINE_LIMIT);
        }
    }
    command.arg("-o").arg(output);
    succeed(command)?;
    Ok(Some(output.to_path_buf()))
}

/// `-MD` and its like for what becomes `output`: whose rule it is and where it goes, unless that was said.
fn dependency_file(output: &Path, options: &Options) -> Vec<OsString> {
    let mut arguments = options.dependency_file.clone();
    let given =
        |flags: &[&str]| options.dependency_file.iter().any(|argument| flags.iter().any(|flag| argument == flag));
    if given(&["-MD", "-MMD"]) {
        if !given(&["-MF"]) {
            arguments.extend(["-MF".into(), output.with_extension("d").into_os_string()]);
        }
        if !given(&["-MT", "-MQ"]) {
            arguments.extend(["-MQ".into(), output.into()]);
        }
    }
    arguments
}

/// The C compiler with what all C of a program needs.
pub fn c_compiler_command(options: &Options) -> Result<Command, String> {
    let mut command = Command::new(c_compiler(options));
    command.arg("-std=gnu11").args(SAFETY).arg(STACK).arg("-I").arg(home::directory()?.join("runtime"));
    if is_optimized(options) {
        command.arg(LOOPS);
    }
    command.args(defines(options)).args(&options.compiler);
    Ok(command)
}

fn is_optimized(options: &Options) -> bool {
    options.compiler.iter().any(|option| option == "-O2" || option == "-O3")
}

/// The macros that choose a variant of the run time.
pub fn defines(options: &Options) -> Vec<&'static str> {
    let mut list = Vec::new();
    if options.heap == Heap::Malloc {
        list.push("-D_CYC_NO_GC");
    }
    if options.threads {
        list.extend(["-D_CYC_THREADS", "-pthread"]);
    }
    list
}

/// Runs a command that must succeed; its messages have been shown by itself.
pub fn succeed(mut command: Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("cannot run {name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed")) }
}
