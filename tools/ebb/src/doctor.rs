//! `ebb doctor`: what is missing on this machine, and the command that gets it.

use crate::exit_code;
use ebb_guest::image::busybox;
use ebb_guest::{Accel, artifacts, find_qemu};
use std::path::Path;
use std::process::Command;

enum Finding {
    /// It is there; a word about it.
    Good(String),
    /// It is missing, but only a convenience or a faster way is lost.
    Optional(String),
    /// It is missing and needed; the command that gets it.
    Missing(String),
}

/// Prints what was found; returns the code to exit with.
pub fn doctor() -> u8 {
    let findings = [
        ("QEMU", qemu()),
        ("acceleration", acceleration()),
        ("Ebb kernel", artifact(&artifacts::KERNEL, "make kernel")),
        ("guest agent", artifact(&artifacts::AGENT, "make agent")),
        ("BusyBox (for shell and tour)", busybox()),
        ("setpriv (ends QEMU with ebb)", in_path("setpriv", "util-linux", false)),
        ("linker (to build the kernel)", in_path("ld.lld", "lld", true)),
        ("kernel toolchain", kernel_toolchain()),
        ("mmdebstrap (for ebb image debian)", in_path("mmdebstrap", "mmdebstrap", false)),
        ("musl-gcc (for make test)", in_path("musl-gcc", "musl-tools", false)),
    ];
    let mut complete = true;
    for (what, finding) in findings {
        match finding {
            Finding::Good(word) => println!("ok       {what}: {word}"),
            Finding::Optional(word) => println!("optional {what}: {word}"),
            Finding::Missing(command) => {
                complete = false;
                println!("MISSING  {what}: get it with `{command}`");
            }
        }
    }
    if complete {
        println!("Everything that Ebb needs is here.");
        0
    } else {
        println!("`make setup` gets all of it at once.");
        exit_code::INCOMPLETE
    }
}

fn qemu() -> Finding {
    let Some(path) = find_qemu() else {
        return Finding::Missing("sudo apt-get install qemu-system-x86".into());
    };
    match Command::new(&path).arg("--version").output() {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
            Finding::Good(text)
        }
        _ => Finding::Missing("sudo apt-get install --reinstall qemu-system-x86".into()),
    }
}

fn acceleration() -> Finding {
    match Accel::kvm_obstacle() {
        None => Finding::Good("KVM".into()),
        Some(obstacle) => Finding::Optional(format!("software emulation ({obstacle})")),
    }
}

fn artifact(artifact: &artifacts::Artifact, command: &str) -> Finding {
    match artifact.find(None) {
        Ok(path) => Finding::Good(path.display().to_string()),
        Err(_) => Finding::Missing(command.into()),
    }
}

fn busybox() -> Finding {
    match busybox::find() {
        Ok(path) => Finding::Good(path.display().to_string()),
        Err(_) => Finding::Missing("sudo apt-get install busybox-static".into()),
    }
}

fn in_path(program: &str, package: &str, needed: bool) -> Finding {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|directory| directory.join(program)).find(|path| path.is_file());
    let command = format!("sudo apt-get install {package}");
    match found {
        Some(path) => Finding::Good(path.display().to_string()),
        None if needed => Finding::Missing(command),
        None => Finding::Optional(format!("missing; `{command}`")),
    }
}

/// Either rustup's target for bare metal, or Debian's compiler with the sources of its library.
fn kernel_toolchain() -> Finding {
    let installed = Command::new("rustup").args(["target", "list", "--installed"]).output();
    if installed.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("x86_64-unknown-none")) {
        return Finding::Good("rustup's x86_64-unknown-none".into());
    }
    let sources = Path::new("/usr/bin/rustc").is_file() && Path::new("/usr/bin/cargo").is_file();
    let library = Command::new("/usr/bin/rustc").args(["--print", "sysroot"]).output().is_ok_and(|output| {
        let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Path::new(&sysroot).join("lib/rustlib/src/rust/library/core").is_dir()
    });
    if sources && library {
        Finding::Good("Debian's rustc with its sources".into())
    } else {
        Finding::Missing("rustup target add x86_64-unknown-none".into())
    }
}
