//! What cargo runs in the compiler's place for the crates of the workspace (`RUSTC_WORKSPACE_WRAPPER`).
//!
//! The compiler is run as cargo asked, so that everything that depends on the crate can go on; then once more, for its MIR alone. The
//! findings go to standard error among the compiler's own messages, in the form that cargo asked for: so cargo keeps them with
//! the crate and shows them again as long as neither the crate, its `Cargo.toml` nor this program changes.

use std::ffi::{OsStr, OsString};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::diagnostic::{self, Colours};
use crate::judgement::{Sources, judge};
use crate::mir::{self, Body, Mir};
use crate::probe;
use crate::settings::Settings;

/// Runs the compiler `arguments[0]` with the rest of the arguments, then lints the crate.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let Some((rustc, arguments)) = arguments.split_first() else { return ExitCode::from(2) };
    match Command::new(rustc).args(arguments).status() {
        Ok(status) if status.success() => {}
        Ok(status) => return ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(101)),
        Err(error) => {
            eprintln!("cannot run {}: {error}", rustc.display());
            return ExitCode::from(101);
        }
    }
    let invocation = Invocation::new(arguments);
    if !invocation.is_linted() {
        return ExitCode::SUCCESS;
    }
    match lint(rustc, &invocation) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            invocation.emit(&diagnostic::failed(&text));
            ExitCode::from(101)
        }
    }
}

fn lint(rustc: &OsStr, invocation: &Invocation) -> Result<(), String> {
    probe::check(rustc)?;
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let settings = folder.as_deref().map_or_else(|| Ok(Settings::default()), Settings::read)?;
    let bodies = bodies(rustc, invocation)?;
    let dependencies =
        invocation.dependency_file().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    let sources = Sources::default();
    let (findings, counts) = judge(&bodies, &rust_files(&dependencies), &settings, &sources);
    for finding in &findings {
        invocation.emit(&diagnostic::json(finding, &sources, invocation.colours()));
    }
    if invocation.wants_json() {
        invocation.emit(&diagnostic::checked(counts));
    }
    // What else the result depends on. Without the file cargo asks for no such thing.
    if let Some(file) = invocation.dependency_file().filter(|_| !dependencies.is_empty()) {
        let also = [std::env::current_exe().ok(), folder.map(|folder| folder.join("Cargo.toml"))];
        let also: Vec<PathBuf> = also.into_iter().flatten().collect();
        std::fs::write(&file, with_dependencies(&dependencies, &also))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

fn bodies(rustc: &OsStr, invocation: &Invocation) -> Result<Vec<Body>, String> {
    let cannot_run = |error: std::io::Error| format!("cannot run {}: {error}", rustc.display());
    let mut child = Command::new(rustc)
        .args(invocation.without_outputs())
        .args(["--cap-lints", "allow"])
        .args(probe::FLAGS)
        .env("RUSTC_BOOTSTRAP", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot_run)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (mir, said) = std::thread::scope(|scope| {
        // Both at once, because the compiler stops when nobody reads one of them.
        let said = scope.spawn(move || {
            let mut text = Vec::new();
            stderr.map(|mut stderr| stderr.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        });
        let mir =
            stdout.map_or_else(|| Ok(Mir::default()), |stdout| mir::read(BufReader::with_capacity(1 << 16, stdout)));
        (mir, said.join().unwrap_or_default())
    });
    let status = child.wait().map_err(cannot_run)?;
    if !status.success() {
        return Err(format!("the compiler gave no MIR ({status}):\n{}", said.trim()));
    }
    let mir = mir.map_err(|error| format!("reading MIR: {error}"))?;
    match mir.not_understood {
        None => Ok(mir.bodies),
        Some(line) => Err(format!(
            "the compiler's MIR has a line that is not understood, so not everything could be checked: {line}"
        )),
    }
}

/// One call of the compiler by cargo.
struct Invocation {
    arguments: Vec<OsString>,
}

impl Invocation {
    fn new(arguments: &[OsString]) -> Self {
        Invocation { arguments: arguments.to_vec() }
    }

    /// Crates that run while something is compiled (build scripts, macros) are no concern of the rules, and questions to the
    /// compiler have no crate.
    fn is_linted(&self) -> bool {
        let is_crate = self.values("--crate-name").next().is_some_and(|name| !name.starts_with("build_script_"));
        let is_macro = self.values("--crate-type").any(|kind| kind == "proc-macro");
        let is_question =
            self.values("--print").next().is_some() || self.arguments.iter().any(|argument| argument == "-");
        is_crate && !is_macro && !is_question
    }

    /// The values of an option, given as `--option value` or `--option=value`.
    fn values(&self, option: &str) -> impl Iterator<Item = String> {
        self.arguments.iter().enumerate().filter_map(move |(index, argument)| {
            let argument = argument.to_str()?;
            if argument == option {
                return self.arguments.get(index + 1)?.to_str().map(str::to_owned);
            }
            argument.strip_prefix(option)?.strip_prefix('=').map(str::to_owned)
        })
    }

    fn wants_json(&self) -> bool {
        self.values("--error-format").any(|format| format == "json")
    }

    fn colours(&self) -> Colours {
        match self.values("--json").any(|parts| parts.split(',').any(|part| part == "diagnostic-rendered-ansi")) {
            true => Colours::Ansi,
            false => Colours::None,
        }
    }

    fn emit(&self, message: &serde_json::Value) {
        match self.wants_json() {
            true => eprintln!("{message}"),
            false => eprint!("{}", message["rendered"].as_str().unwrap_or_default()),
        }
    }

    /// The arguments without those that say what to write and how to report.
    fn without_outputs(&self) -> Vec<&OsString> {
        let with_value = ["--emit", "--out-dir", "-o", "--error-format", "--json", "--diagnostic-width", "--cap-lints"];
        let mut kept = Vec::new();
        let mut arguments = self.arguments.iter().peekable();
        while let Some(argument) = arguments.next() {
            let text = argument.to_str().unwrap_or("");
            let is_dropped = |option: &&str| text.strip_prefix(*option).is_some_and(|rest| rest.starts_with('='));
            if with_value.contains(&text) || (text == "-C" && arguments.peek().is_some_and(|next| is_incremental(next)))
            {
                arguments.next();
            } else if !with_value.iter().any(is_dropped)
                && !text.strip_prefix("-C").is_some_and(|value| is_incremental(OsStr::new(value)))
            {
                kept.push(argument);
            }
        }
        kept
    }

    /// The file in which the compiler tells cargo what the crate depends on.
    fn dependency_file(&self) -> Option<PathBuf> {
        let folder = self.values("--out-dir").next()?;
        let name = self.values("--crate-name").next()?;
        let extra = self.values("-C").find_map(|value| value.strip_prefix("extra-filename=").map(str::to_owned));
        Some(Path::new(&folder).join(format!("{name}{}.d", extra.unwrap_or_default())))
    }
}

fn is_incremental(value: &OsStr) -> bool {
    value.to_str().is_some_and(|value| value.starts_with("incremental="))
}

/// The crate's own source files, in the first rule of a file in make's form.
fn rust_files(text: &str) -> Vec<String> {
    let first = text.lines().next().and_then(|line| line.split_once(": ")).map_or("", |(_, files)| files);
    let files = first.replace("\\ ", "\0");
    let files = files.split_whitespace().map(|file| file.replace('\0', " "));
    files.filter(|file| file.ends_with(".rs")).collect()
}

/// Adds files to the first rule of a file in make's form; cargo reads no other one.
fn with_dependencies(text: &str, also: &[PathBuf]) -> String {
    let Some(at) = text.find(": ") else { return text.to_owned() };
    let names = also.iter().filter_map(|path| path.to_str()).map(|path| path.replace(' ', "\\ "));
    let names: String = names.map(|name| format!("{name} ")).collect();
    format!("{}{names}{}", &text[..at + 2], &text[at + 2..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation(text: &str) -> Invocation {
        Invocation { arguments: text.split(' ').map(OsString::from).collect() }
    }

    #[test]
    fn libraries_and_programs_are_linted_and_what_runs_at_build_time_is_not() {
        assert!(invocation("--crate-name a src/lib.rs --crate-type lib").is_linted());
        assert!(!invocation("--crate-name build_script_build build.rs --crate-type bin").is_linted());
        assert!(!invocation("--crate-name a src/lib.rs --crate-type proc-macro").is_linted());
        assert!(!invocation("- --crate-name ___ --print=file-names --crate-type lib").is_linted());
        assert!(!invocation("-vV").is_linted());
    }

    #[test]
    fn the_second_run_writes_nothing() {
        let invocation = invocation(
            "--crate-name a src/lib.rs --error-format=json --json=artifacts --emit=dep-info,metadata -C incremental=/i -Cincremental=/i \
             -C opt-level=1 --out-dir /o --cfg x",
        );
        let kept: Vec<&str> =
            invocation.without_outputs().into_iter().map(|argument| argument.to_str().unwrap()).collect();
        assert_eq!(kept, ["--crate-name", "a", "src/lib.rs", "-C", "opt-level=1", "--cfg", "x"]);
    }

    #[test]
    fn the_file_of_dependencies_is_found_and_gets_more() {
        let invocation = invocation("--crate-name a --out-dir /o -C extra-filename=-12");
        assert_eq!(invocation.dependency_file(), Some(PathBuf::from("/o/a-12.d")));
        assert_eq!(
            with_dependencies("/o/a-12.d: src/lib.rs\n\nsrc/lib.rs:\n", &[PathBuf::from("/b c/d")]),
            "/o/a-12.d: /b\\ c/d src/lib.rs\n\nsrc/lib.rs:\n"
        );
        assert_eq!(
            rust_files("/o/a.d: src/lib.rs src/a\\ b.rs README.md\n\nsrc/lib.rs:\n"),
            ["src/lib.rs", "src/a b.rs"]
        );
    }
}
