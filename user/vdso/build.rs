//! Makes the shared objects: compiles this crate's own sources for user mode (`--cfg ebb_vdso`) and links them at once, with and without `rdpid`, so that what the crate is a
//! dependency of gets the bytes whatever it is compiled for.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The calls are compiled for the target that user programs have; `core` is there for it wherever this script runs.
const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() {
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=vdso.lds");
    let out = PathBuf::from(variable("OUT_DIR"));
    make(&out, "vdso", &[]);
    make(&out, "vdso-rdpid", &["--cfg", "ebb_rdpid"]);
}

fn make(out: &Path, name: &str, options: &[&str]) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (object, image) = (out.join(name).with_extension("o"), out.join(name).with_extension("so"));
    run(Command::new(variable("RUSTC"))
        .args(["--crate-name", "vdso", "--crate-type", "lib", "--edition", "2024", "--target", TARGET])
        .args(["--cfg", "ebb_vdso"])
        .args(options)
        .args(["-C", "opt-level=3", "-C", "panic=abort", "-C", "codegen-units=1", "-C", "relocation-model=pic"])
        // Debuggers and unwinders find the caller of a call by them.
        .args(["-C", "force-unwind-tables=yes"])
        .arg("--emit")
        .arg(format!("obj={}", object.display()))
        .arg(sources.join("src/lib.rs")));
    // What the calls would need from elsewhere (a panic, memcpy) is not there: the linker refuses it.
    run(Command::new("ld.lld")
        .args(["-shared", "-soname", "linux-vdso.so.1", "--hash-style=both", "--eh-frame-hdr", "--build-id=sha1"])
        .args(["-z", "defs", "-z", "noexecstack", "-z", "max-page-size=4096", "--gc-sections", "--strip-all", "-T"])
        .arg(sources.join("vdso.lds"))
        .arg("-o")
        .args([&image, &object]));
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

fn run(command: &mut Command) {
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{command:?}: {status}"),
        Err(error) => panic!("{command:?}: {error}"),
    }
}
