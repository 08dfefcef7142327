//! Our own programs in `cyclone/tests/programs`: each is accepted, compiled and run, or rejected on the lines it says.
//!
//! A program's first lines say what is expected of it:
//!
//! ```text
//! // expect: accept               it compiles, and
//! // stdout: a line               it writes these lines (blanks at their ends do not count),
//! // exit: 1                      and ends with this code (0 if there is no such line)
//!
//! // expect: error E0301 line 7   it is rejected, with errors on these lines and no others
//! // original: accepts it         where the original compiler differs, and how
//! // options: --compat=0.8         what the compiler is told besides
//! ```
//!
//! `not-yet` beside them lists those that do not do what they should yet. The test fails if one of them does: then its line has to go. With
//! `EBB_UPDATE_PROGRAMS=1` the test writes that list, and fills in codes of errors that are found on the right line.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use wait_timeout::ChildExt;

/// Far more than any of them takes: only one that hangs gets there.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// A program and what is expected of it.
struct Program {
    path: PathBuf,
    /// Its path without the folder of all programs and without `.cyc`.
    name: String,
    expected: Expected,
    options: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Accepted { stdout: String, exit: i32 },
    Rejected(BTreeSet<ErrorAt>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ErrorAt {
    line: u32,
    /// None: any.
    code: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs")
}

/// Reads the expectations at the top of a program.
fn expected(text: &str) -> Result<Expected, String> {
    let mut accepted = false;
    let (mut stdout, mut exit) = (String::new(), 0);
    let mut errors = BTreeSet::new();
    for line in text.lines().map_while(|line| line.strip_prefix("// ")) {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match (key, &value.split(' ').collect::<Vec<_>>()[..]) {
            ("expect", ["accept"]) => accepted = true,
            ("expect", ["error", "line", at]) => {
                errors.insert(ErrorAt { line: at.parse().map_err(|_| line.to_owned())?, code: None });
            }
            ("expect", ["error", code, "line", at]) => {
                errors
                    .insert(ErrorAt { line: at.parse().map_err(|_| line.to_owned())?, code: Some((*code).to_owned()) });
            }
            ("stdout", _) => stdout += &format!("{value}\n"),
            ("exit", [code]) => exit = code.parse().map_err(|_| line.to_owned())?,
            ("original" | "options", _) => {}
            ("expect", _) => return Err(line.to_owned()),
            _ => break,
        }
    }
    match (accepted, errors.is_empty()) {
        (true, true) => Ok(Expected::Accepted { stdout, exit }),
        (false, false) => Ok(Expected::Rejected(errors)),
        _ => Err("either accepted or rejected".to_owned()),
    }
}

/// The options at the top of a program.
fn options(text: &str) -> Vec<String> {
    let lines = text.lines().map_while(|line| line.strip_prefix("// "));
    lines.filter_map(|line| line.strip_prefix("options: ")).flat_map(str::split_whitespace).map(str::to_owned).collect()
}

/// All programs, in the order of their names.
fn programs() -> Vec<Program> {
    let mut programs = Vec::new();
    let features = fs::read_dir(folder()).expect("the folder of programs is there");
    for feature in features.map(|entry| entry.expect("it can be read").path()).filter(|path| path.is_dir()) {
        for path in fs::read_dir(&feature).expect("it can be read").map(|entry| entry.expect("it can be read").path()) {
            if path.extension().is_none_or(|extension| extension != "cyc") {
                continue;
            }
            let name = path.strip_prefix(folder()).expect("it is in there").with_extension("").display().to_string();
            let text = fs::read_to_string(&path).expect("programs are text");
            let expected = expected(&text).unwrap_or_else(|problem| panic!("{name}: {problem}"));
            programs.push(Program { path, name, expected, options: options(&text) });
        }
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    programs
}

/// What a process left; `exit` is None if it crashed or hung.
struct Finished {
    exit: Option<i32>,
    stdout: String,
    stderr: String,
}

fn finish(command: &mut Command, scratch: &Path) -> Finished {
    let (stdout, stderr) = (scratch.join("stdout"), scratch.join("stderr"));
    let create = |path| Stdio::from(File::create(path).expect("scratch is writable"));
    let mut child = command
        .current_dir(scratch)
        .stdin(Stdio::null())
        .stdout(create(&stdout))
        .stderr(create(&stderr))
        .spawn()
        .expect("the program is there");
    let exit = match child.wait_timeout(TIME_LIMIT).expect("it is our child") {
        Some(status) => status.code(),
        None => {
            child.kill().expect("it is our child");
            child.wait().expect("it is our child");
            None
        }
    };
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).expect("it was created")).into_owned();
    Finished { exit, stdout: read(&stdout), stderr: read(&stderr) }
}

/// Lines without blanks at their ends, which a comment in a program cannot show.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).collect()
}

/// The errors about `file` in messages of the form that `--json` asks for.
fn errors(messages: &str, file: &Path) -> BTreeSet<ErrorAt> {
    let values = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    values
        .filter(|value| {
            value["severity"] == "error" && value["file"].as_str().is_some_and(|name| Path::new(name) == file)
        })
        .filter_map(|value| {
            let line = value["line"].as_u64()?.try_into().ok()?;
            Some(ErrorAt { line, code: value["code"].as_str().map(str::to_owned) })
        })
        .collect()
}

/// Compiles, and runs what is accepted. An error says what is wrong.
fn judge(program: &Program) -> Result<BTreeSet<ErrorAt>, String> {
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let cyc = || Command::new(env!("CARGO_BIN_EXE_cyc"));
    match &program.expected {
        Expected::Accepted { stdout, exit } => {
            let binary = scratch.path().join("program");
            let built = finish(
                cyc().arg("build").arg("--plain").args(&program.options).arg("-o").arg(&binary).arg(&program.path),
                scratch.path(),
            );
            if built.exit != Some(0) {
                return Err(format!("not compiled ({:?}): {}", built.exit, built.stderr));
            }
            let ran = finish(&mut Command::new(&binary), scratch.path());
            if ran.exit != Some(*exit) {
                return Err(format!("exit code {:?}, not {exit}: {}", ran.exit, ran.stderr));
            }
            if lines(&ran.stdout) != lines(stdout) {
                return Err(format!("wrote {:?}, not {stdout:?}", ran.stdout));
            }
            Ok(BTreeSet::new())
        }
        Expected::Rejected(wanted) => {
            let checked =
                finish(cyc().arg("check").arg("--json").args(&program.options).arg(&program.path), scratch.path());
            let found = errors(&checked.stderr, &program.path);
            let lines = |errors: &BTreeSet<ErrorAt>| errors.iter().map(|error| error.line).collect::<BTreeSet<_>>();
            let codes_agree =
                wanted.iter().all(|error| error.code.is_none() || found.iter().any(|other| other == error));
            if checked.exit != Some(1) || lines(&found) != lines(wanted) || !codes_agree {
                return Err(format!("wanted {wanted:?}, got {:?}: {}", checked.exit, checked.stderr));
            }
            Ok(found)
        }
    }
}

/// Writes the codes of the found errors into lines that name none.
fn fill_in_codes(program: &Program, found: &BTreeSet<ErrorAt>) {
    let mut text = fs::read_to_string(&program.path).expect("it was read before");
    for error in found {
        if let Some(code) = &error.code {
            let without = format!("// expect: error line {}\n", error.line);
            text = text.replacen(&without, &format!("// expect: error {code} line {}\n", error.line), 1);
        }
    }
    fs::write(&program.path, text).expect("it can be written");
}

#[test]
fn programs_are_accepted_and_rejected_as_they_say() {
    let update = std::env::var_os("EBB_UPDATE_PROGRAMS").is_some();
    let list = folder().join("not-yet");
    let not_yet = fs::read_to_string(&list).expect("the list is there");
    let not_yet: BTreeSet<_> = not_yet.lines().collect();
    let programs = programs();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match judge(program) {
                        Ok(found) if update => fill_in_codes(program, &found),
                        Ok(_) => {}
                        Err(why) => failures.lock().expect("no thread panicked").push((program.name.as_str(), why)),
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no thread panicked");
    failures.sort();
    let failing: BTreeSet<_> = failures.iter().map(|(name, _)| *name).collect();
    println!("{} of {} programs do what they say", programs.len() - failing.len(), programs.len());
    if update {
        let lines: String = failing.iter().map(|name| format!("{name}\n")).collect();
        fs::write(&list, lines).expect("it can be written");
        return;
    }
    let named: BTreeSet<_> = programs.iter().map(|program| program.name.as_str()).collect();
    for (name, why) in failures.iter().filter(|(name, _)| !not_yet.contains(name)) {
        println!("{name}: {why}");
    }
    let now_right: Vec<_> = not_yet.iter().filter(|name| named.contains(*name) && !failing.contains(*name)).collect();
    let unknown: Vec<_> = not_yet.difference(&named).collect();
    let wrong: Vec<_> = failing.difference(&not_yet).collect();
    assert!(
        wrong.is_empty() && now_right.is_empty() && unknown.is_empty(),
        "wrong: {wrong:?}\nto take out of not-yet: right {now_right:?}, unknown {unknown:?}"
    );
}

#[test]
fn expectations_are_read_from_the_first_lines() {
    let accepted = "// expect: accept\n// stdout: one\n// stdout:\n// stdout:  two \n// exit: 3\n// A comment: more.\n// exit: 4\n";
    assert_eq!(expected(accepted), Ok(Expected::Accepted { stdout: "one\n\n two \n".to_owned(), exit: 3 }));
    let rejected = "// expect: error line 4\n// expect: error E0301 line 9\n// original: accepts it\nint x;\n";
    let errors = [ErrorAt { line: 4, code: None }, ErrorAt { line: 9, code: Some("E0301".to_owned()) }];
    assert_eq!(expected(rejected), Ok(Expected::Rejected(errors.into())));
}

#[test]
fn a_program_that_expects_nothing_is_an_error() {
    for text in ["", "int main() { return 0; }\n", "// expect: maybe\n", "// expect: accept\n// expect: error line 1\n"]
    {
        assert!(expected(text).is_err(), "{text:?}");
    }
}
