//! Compiles the programs in `c/` in many ways and runs them: each checks itself.
//!
//! Needs `gcc`; what `clang`, `g++` and `clang++` have to do is left out, and said so, where they are not installed.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Programs with nested functions as tasks: GCC only.
const NESTED: &[&[&str]] = &[
    &["figure1.c"],
    &["dispatch.c"],
    &["interleave.c"],
    &["loops.c"],
    &["two_units.c", "two_units_other.c"],
    &["cancel.c"],
    &["threads.c"],
    &["races.c"],
];
/// How many of them are compiled in which way.
const WAYS: &[(usize, &[&str])] = &[
    (8, &["-O0"]),
    (5, &["-O1"]),
    (8, &["-O2"]),
    (5, &["-O3", "-march=native"]),
    (5, &["-Os"]),
    (5, &["-O2", "-flto"]),
    (5, &["-O2", "-fno-pie", "-no-pie"]),
    (3, &["-O0", "-fPIE", "-pie"]),
    (3, &["-O2", "-fcf-protection", "-fomit-frame-pointer", "-fstack-protector-strong"]),
    (3, &["-O2", "-flto", "-flto-partition=one", "-ffunction-sections"]),
];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where this test's own files are.
fn scratch() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("programs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder under the target folder");
    folder
}

/// The library as C gets it, which cargo makes beside the tests.
fn archive() -> PathBuf {
    let tests = std::env::current_exe().expect("this test is a file");
    let folder = tests.parent().expect("in a folder");
    let made = |folder: &Path| {
        let files = std::fs::read_dir(folder).expect("cargo's folder").filter_map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_ours = (name.starts_with("libac-") || name == "libac.a") && name.ends_with(".a");
            is_ours.then(|| (entry.metadata().and_then(|data| data.modified()).expect("a date"), entry.path()))
        });
        files.max().map(|(_, path)| path)
    };
    made(folder).or_else(|| made(folder.parent()?)).expect("cargo makes libac.a for the tests")
}

/// Recursion without end.
const DEEPER: &str = "int deeper(volatile int n) { return n == 0 ? 0 : 1 + deeper(n + 1); }";

fn has(compiler: &str) -> bool {
    Command::new(compiler).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Whether a compiler has the run-time library of AddressSanitizer, which Debian packs apart from clang.
fn has_address_sanitizer(compiler: &str) -> bool {
    let program = scratch().join(format!("sanitizer-probe-{compiler}"));
    let mut probe = Command::new(compiler);
    probe.args(["-fsanitize=address", "-xc", "-", "-o"]).arg(&program);
    probe.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = probe.spawn() else { return false };
    let written = child.stdin.take().map(|mut source| source.write_all(b"int main(void) { return 0; }"));
    let is_linked = child.wait().is_ok_and(|status| status.success()) && matches!(written, Some(Ok(())));
    let _ = std::fs::remove_file(program);
    if !is_linked {
        eprintln!("{compiler} has no AddressSanitizer here: what it has to do is left out");
    }
    is_linked
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn must(command: &mut Command) {
    let output = run(command);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A shared library of the archive, so that linking a program takes no time; which is how the installed one is made, too.
fn shared(folder: &Path) -> PathBuf {
    let library = folder.join("libac.so");
    let exports = here().join("cmake/exports.map");
    must(
        Command::new("gcc")
            .args(["-shared", "-o"])
            .arg(&library)
            .arg(format!("-Wl,--version-script={}", exports.display()))
            .args(["-Wl,--whole-archive"])
            .arg(archive())
            .args(["-Wl,--no-whole-archive", "-Wl,--gc-sections", "-lpthread", "-ldl"]),
    );
    library
}

/// One program to be compiled and run.
struct Job {
    compiler: &'static str,
    options: Vec<&'static str>,
    sources: Vec<&'static str>,
    library: PathBuf,
}

impl Job {
    fn run(&self, folder: &Path, number: usize) {
        let program = folder.join(format!("program{number}"));
        let sources = self.sources.iter().map(|source| here().join("tests/c").join(source));
        must(
            Command::new(self.compiler)
                .args(["-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-I"])
                .arg(here().join("include"))
                .args(&self.options)
                .args(sources)
                .arg("-o")
                .arg(&program)
                .arg(&self.library)
                .args(["-lm", "-lpthread", "-ldl"]),
        );
        must(
            Command::new("timeout")
                .arg("60")
                .arg(&program)
                .env("LD_LIBRARY_PATH", folder)
                .env("ASAN_OPTIONS", "detect_stack_use_after_return=0:detect_leaks=0"),
        );
        let _ = std::fs::remove_file(program);
    }
}

/// Programs under AddressSanitizer, which is not told of switches: it must not keep the frames of calls in a place of its own, where it
/// throws away what is on other stacks. GCC believes variables that a nested function uses to be smaller than they are when it marks
/// their scope.
fn sanitized() -> Vec<Job> {
    let library = archive();
    let mut jobs = Vec::new();
    for (level, nested) in [("-O0", &NESTED[3..4]), ("-O2", NESTED)] {
        for sources in nested {
            let options = vec!["-std=gnu11", level, "-fsanitize=address", "-fno-sanitize-address-use-after-scope"];
            jobs.push(Job { compiler: "gcc", options, sources: sources.to_vec(), library: library.clone() });
        }
        for compiler in ["gcc", "clang"] {
            for source in ["figure1_strict.c", "dispatch.c"] {
                let options = vec!["-std=c11", level, "-fsanitize=address"];
                jobs.push(Job { compiler, options, sources: vec![source], library: library.clone() });
            }
        }
        for compiler in ["g++", "clang++"] {
            let options = vec!["-std=c++17", level, "-fsanitize=address"];
            jobs.push(Job { compiler, options, sources: vec!["lambda.cpp"], library: library.clone() });
        }
    }
    jobs
}

/// Runs all jobs, on all cores.
fn run_all(folder: &Path, jobs: &[Job]) {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((number, job)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    jobs.get(number).map(|job| (number, job))
                } {
                    job.run(folder, number);
                }
            });
        }
    });
}

#[test]
fn programs_do_what_they_check_however_they_are_compiled() {
    let folder = scratch();
    let shared = shared(&folder);
    let mut jobs = Vec::new();
    for &(programs, way) in WAYS {
        for sources in &NESTED[..programs] {
            let options = [&["-std=gnu11"], way].concat();
            jobs.push(Job { compiler: "gcc", options, sources: sources.to_vec(), library: shared.clone() });
        }
    }
    // As it is linked where there is no shared library.
    for options in [vec!["-std=gnu11", "-O2"], vec!["-std=gnu11", "-O2", "-static"]] {
        jobs.push(Job { compiler: "gcc", options, sources: vec!["loops.c"], library: archive() });
    }
    for compiler in ["gcc", "clang"] {
        if !has(compiler) {
            eprintln!("{compiler} is not installed: left out");
            continue;
        }
        for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            let options = vec!["-std=c11", "-pedantic", level];
            for source in ["figure1_strict.c", "dispatch.c"] {
                jobs.push(Job { compiler, options: options.clone(), sources: vec![source], library: shared.clone() });
            }
        }
    }
    for compiler in ["g++", "clang++"] {
        if !has(compiler) {
            eprintln!("{compiler} is not installed: left out");
            continue;
        }
        for options in [vec!["-std=c++17", "-O0"], vec!["-std=c++17", "-O2"], vec!["-std=c++20", "-pedantic", "-O3"]] {
            jobs.push(Job { compiler, options, sources: vec!["lambda.cpp"], library: shared.clone() });
        }
    }
    run_all(&folder, &jobs);
    std::fs::remove_dir_all(folder).expect("made by this test");
}

#[test]
fn programs_break_no_rule_that_address_sanitizer_knows() {
    let folder = scratch().join("sanitized");
    std::fs::create_dir_all(&folder).expect("a folder");
    let compilers: Vec<_> =
        ["gcc", "clang", "g++", "clang++"].into_iter().filter(|one| has_address_sanitizer(one)).collect();
    assert!(compilers.contains(&"gcc"), "gcc has AddressSanitizer");
    let jobs: Vec<Job> = sanitized().into_iter().filter(|job| compilers.contains(&job.compiler)).collect();
    run_all(&folder, &jobs);
    std::fs::remove_dir_all(folder).expect("made by this test");
}

#[test]
fn address_sanitizer_sees_a_fault_in_a_task() {
    let folder = scratch().join("fault");
    std::fs::create_dir_all(&folder).expect("a folder");
    let body = "volatile int beside[4]; volatile int at = 4; THCYield(); beside[at] = 1;";
    let options = ["-O1", "-fsanitize=address", "-fno-sanitize-address-use-after-scope"];
    let said = failure_of(&folder, "fault", &format!("LCD_MAIN({{ ASYNC({{ {body} }}); }});"), &options);
    assert!(said.contains("stack-buffer-overflow"), "{said}");
    std::fs::remove_dir_all(folder).expect("made by this test");
}

#[test]
fn stacks_are_not_executable_when_tasks_are_nested_functions() {
    let folder = scratch().join("stack");
    std::fs::create_dir_all(&folder).expect("a folder");
    let object = folder.join("figure1.o");
    let source = here().join("tests/c/interleave.c");
    must(
        Command::new("gcc")
            .args(["-std=gnu11", "-O2", "-Wtrampolines", "-Werror", "-c", "-I"])
            .arg(here().join("include"))
            .args([source.as_os_str(), OsStr::new("-o"), object.as_os_str()]),
    );
    let sections = run(Command::new("readelf").args(["-SW"]).arg(&object));
    let sections = String::from_utf8_lossy(&sections.stdout).into_owned();
    let note = sections.lines().find(|line| line.contains(".note.GNU-stack")).expect("GCC writes the note");
    assert!(!note.contains(" X "), "{note}");
    std::fs::remove_dir_all(folder).expect("made by this test");
}

/// What a program with such a `main` says, which must fail.
fn failure_of(folder: &Path, name: &str, body: &str, options: &[&str]) -> String {
    let source = folder.join(format!("{name}.c"));
    let program = folder.join(name);
    std::fs::write(&source, format!("#include <ac.h>\n{DEEPER}\nint main(void)\n{{\n    {body}\n    return 0;\n}}\n"))
        .expect("a file");
    must(
        Command::new("gcc")
            .args(["-std=gnu11", "-I"])
            .arg(here().join("include"))
            .args(options)
            .args([source.as_os_str(), OsStr::new("-o"), program.as_os_str()])
            .arg(archive())
            .args(["-lpthread", "-ldl"]),
    );
    let output = run(Command::new("timeout").arg("60").arg(&program));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{name}: {said}");
    said
}

#[test]
fn a_program_that_breaks_a_rule_ends_with_a_message() {
    let folder = scratch().join("misuse");
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, body, message) in [
        ("first", "LCD_MAIN({ THCFinish(); });", "the first task of a thread ends with its function"),
        ("done", "thc_done();", "this thread was not initialised"),
        ("inner", "LCD_MAIN({ ASYNC({ thc_done(); }); });", "called by another task"),
        ("overflow", "LCD_MAIN({ ASYNC({ deeper(1); }); });", "has overflowed its stack of"),
    ] {
        let said = failure_of(&folder, name, body, &["-O0"]);
        assert!(said.contains(message), "{name}: {said}");
    }
    std::fs::remove_dir_all(folder).expect("made by this test");
}
