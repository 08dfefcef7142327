//! One text through all phases.

use ebb_cyclone::check::{Dialect, check};
use ebb_cyclone::diagnostics::{Diagnostic, Form, Severity, render};
use ebb_cyclone::driver::parse_text;
use ebb_cyclone::flow;
use ebb_cyclone::lower::{LineInfo, lower};
use ebb_cyclone::original::Originals;
use ebb_cyclone::source::Source;
use std::io::Write;
use std::panic;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, Once};
use std::time::Duration;

/// Far more than any of the texts takes.
const TIME_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    Rejected,
}

/// Where the compiler went wrong, which is the same for texts that show the same fault, and how.
pub struct Failure {
    pub place: String,
    pub what: String,
}

/// Where the last panic was, and its message.
static PANIC: Mutex<(String, String)> = Mutex::new((String::new(), String::new()));

/// Compiles a text on a thread with a stack like that of the command.
pub fn try_text(text: &str, dialect: Dialect) -> Result<Outcome, Failure> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if std::thread::current().name() != Some("compiler") {
                return default(info);
            }
            let place = info.location().map_or_else(String::new, |at| format!("{}:{}", at.file(), at.line()));
            *PANIC.lock().expect("nothing panics while it is held") = (place, info.to_string());
        }));
    });
    let (done, outcome) = channel();
    let owned = text.to_owned();
    let compiler = std::thread::Builder::new().name("compiler".to_owned()).stack_size(512 << 20);
    let compiler =
        compiler.spawn(move || drop(done.send(compile(owned, dialect)))).expect("there is memory for a thread");
    match outcome.recv_timeout(TIME_LIMIT) {
        // What a program includes as C is not looked at.
        Ok(Some(_)) if text.contains("C include") => Ok(Outcome::Accepted),
        Ok(Some(c)) => c_compiler_accepts(&c).map(|()| Outcome::Accepted),
        Ok(None) => Ok(Outcome::Rejected),
        Err(RecvTimeoutError::Timeout) => {
            Err(Failure { place: "a hang".to_owned(), what: format!("more than {TIME_LIMIT:?}") })
        }
        Err(RecvTimeoutError::Disconnected) => {
            compiler.join().expect_err("it ended without an outcome");
            let (place, what) = PANIC.lock().expect("nothing panics while it is held").clone();
            Err(Failure { place, what })
        }
    }
}

/// The C text of what is accepted.
fn compile(text: String, dialect: Dialect) -> Option<String> {
    let mut unit = parse_text("fuzz.cyc", text);
    let mut c = None;
    if !has_errors(&unit.diagnostics) {
        let mut program = check(&unit.source, &unit.items, dialect.into(), &mut unit.diagnostics);
        flow::analyse(
            &mut program,
            flow::Options { warn_lost: true, ..flow::Options::default() },
            &mut unit.diagnostics,
        );
        if !has_errors(&unit.diagnostics) {
            c = lower(&program, &unit.source, LineInfo::Source).map_err(|more| unit.diagnostics.extend(more)).ok();
        }
    }
    show(&unit.diagnostics, &unit.source);
    c
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Every message has a form: its spans are ranges of the text, at boundaries of characters.
fn show(diagnostics: &[Diagnostic], source: &Source) {
    for diagnostic in diagnostics {
        for form in [Form::Plain, Form::Json, Form::Source { colour: false }] {
            assert!(!render(diagnostic, source, &mut Originals::default(), form).is_empty());
        }
    }
}

/// Where the tests' environment names a C compiler: the C is C.
fn c_compiler_accepts(c: &str) -> Result<(), Failure> {
    let Some(compiler) = std::env::var_os("EBB_FUZZ_C") else { return Ok(()) };
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime");
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lib/c");
    let mut compiling = Command::new(compiler)
        .args(["-fsyntax-only", "-w", "-x", "c", "-"])
        .arg("-I")
        .arg(runtime)
        .arg("-I")
        .arg(library)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the C compiler is there");
    compiling.stdin.take().expect("it is piped").write_all(c.as_bytes()).expect("the C compiler reads it");
    let output = compiling.wait_with_output().expect("the C compiler ends");
    if output.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let first = messages.lines().find_map(|line| line.split_once("error: ")).map_or("", |(_, what)| what);
    // Without the names in it, so that one fault is shown once.
    let kind = first.split(['\u{2018}', '\u{2019}', '\'']).step_by(2).collect::<String>();
    Err(Failure { place: format!("C: {kind}"), what: messages })
}
