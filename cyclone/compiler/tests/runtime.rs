//! Runs the tests of the run-time library, which are C programs, as both C compilers build them, with and without
//! optimisation, collector, threads and sanitizers. What a machine lacks (a compiler, libgc, musl) is named and left out.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Build {
    compiler: &'static str,
    options: &'static [&'static str],
    /// What has to follow the sources.
    libraries: &'static [&'static str],
}

const fn build(compiler: &'static str, options: &'static [&'static str], libraries: &'static [&'static str]) -> Build {
    Build { compiler, options, libraries }
}

fn runtime() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime")
}

fn sources() -> Vec<PathBuf> {
    let modules = std::fs::read_to_string(runtime().join("modules")).expect("the list of modules");
    let tests = std::fs::read_dir(runtime().join("tests")).expect("the directory of tests");
    modules
        .lines()
        .map(|name| runtime().join(name))
        .chain(tests.map(|entry| entry.expect("an entry").path()))
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect()
}

/// Whether the machine can compile and link anything at all this way.
fn available(build: &Build, directory: &Path) -> bool {
    let probe = directory.join("probe.c");
    std::fs::write(&probe, "int main(void) { return 0; }\n").expect("the target directory");
    Command::new(build.compiler)
        .args(build.options)
        .arg(&probe)
        .args(build.libraries)
        .arg("-o")
        .arg(directory.join("probe"))
        .output()
        .is_ok_and(|output| output.status.success())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn check(build: &Build, name: &str) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).expect("the target directory");
    let what = format!("{} {:?}", build.compiler, build.options);
    if !available(build, &directory) {
        println!("{what}: this machine cannot build so, skipped");
        return;
    }
    let program = directory.join("runtime-tests");
    let compiled = Command::new(build.compiler)
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror"])
        // Loops around a try count outside its body; what is out of bounds is so on purpose.
        .args(["-Wno-clobbered", "-Wno-stringop-overflow", "-Wno-unknown-warning-option"])
        .args(build.options)
        .args(sources())
        .args(build.libraries)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the compiler ran just now");
    assert!(compiled.status.success(), "{what}:\n{}", text(&compiled.stderr));
    let run = |argument: Option<&str>| -> Output {
        Command::new(&program).args(argument).output().expect("the program was just built")
    };

    let tested = run(None);
    assert!(
        tested.status.success() && text(&tested.stdout) == "all as it should be\n",
        "{what}:\n{}",
        text(&tested.stderr)
    );

    let uncaught = run(Some("uncaught"));
    assert_eq!(uncaught.status.code(), Some(1), "{what}");
    assert_eq!(text(&uncaught.stdout), "goodbye\n", "{what}");
    assert!(
        text(&uncaught.stderr).starts_with("Uncaught exception Other thrown from around thrower.cyc:700\n"),
        "{what}:\n{}",
        text(&uncaught.stderr)
    );
}

macro_rules! builds {
    ($($name:ident: $compiler:literal $options:expr, $libraries:expr;)*) => {
        $(#[test]
        fn $name() {
            check(&build($compiler, &$options, &$libraries), stringify!($name));
        })*
    };
}

builds! {
    gcc_collected: "gcc" ["-O0"], ["-lgc"];
    gcc_collected_optimised: "gcc" ["-O2"], ["-lgc"];
    gcc_without_collector: "gcc" ["-O0", "-D_CYC_NO_GC"], [];
    gcc_without_collector_optimised: "gcc" ["-O2", "-D_CYC_NO_GC"], [];
    gcc_threads: "gcc" ["-O2", "-D_CYC_THREADS", "-pthread"], ["-lgc"];
    gcc_address_sanitizer: "gcc" ["-O1", "-g", "-D_CYC_NO_GC", "-fsanitize=address,undefined"], [];
    gcc_thread_sanitizer: "gcc" ["-O1", "-g", "-D_CYC_NO_GC", "-D_CYC_THREADS", "-fsanitize=thread"], [];
    clang_collected: "clang" ["-O0"], ["-lgc"];
    clang_collected_optimised: "clang" ["-O2"], ["-lgc"];
    clang_without_collector: "clang" ["-O0", "-D_CYC_NO_GC"], [];
    clang_without_collector_optimised: "clang" ["-O2", "-D_CYC_NO_GC"], [];
    clang_threads: "clang" ["-O2", "-D_CYC_THREADS", "-pthread"], ["-lgc"];
    clang_address_sanitizer: "clang" ["-O1", "-g", "-D_CYC_NO_GC", "-fsanitize=address,undefined"], [];
    clang_thread_sanitizer: "clang" ["-O1", "-g", "-D_CYC_NO_GC", "-D_CYC_THREADS", "-fsanitize=thread"], [];
    musl_static: "musl-gcc" ["-O2", "-static", "-D_CYC_NO_GC"], [];
    musl_static_threads: "musl-gcc" ["-O2", "-static", "-D_CYC_NO_GC", "-D_CYC_THREADS", "-pthread"], [];
}
