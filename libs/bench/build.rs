//! Compiles what uses our own `ac.h`, and the peers that are C or C++ where they are installed: Boost.Context by its header, libco by pkg-config or by
//! the variable `LIBCO`, a folder with `libco.h` and `libco.c`.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=shim");
    println!("cargo::rerun-if-env-changed=LIBCO");
    println!("cargo::rustc-check-cfg=cfg(ac, boost_context, libco)");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    println!("cargo::rustc-env=COMPILER={}", says(&rustc, &["--version"]).unwrap_or_else(|| "rustc".to_owned()));
    println!("cargo::rustc-env=C_COMPILER={}", says("cc", &["--version"]).unwrap_or_else(|| "none".to_owned()));
    let header = Path::new("../tasks/c/include");
    println!("cargo::rerun-if-changed={}", header.display());
    let mut own = cc::Build::new();
    if own.opt_level(2).std("gnu11").include(header).file("shim/ac.c").try_compile("ebb_ac_shim").is_ok() {
        println!("cargo::rustc-cfg=ac");
    }
    if Path::new("/usr/include/boost/context/fiber.hpp").exists() {
        let compiled = cc::Build::new()
            .cpp(true)
            .opt_level(3)
            .std("c++17")
            .warnings(false)
            .file("shim/boost_context.cpp")
            .try_compile("ebb_boost_context");
        if compiled.is_ok() {
            println!("cargo::rustc-link-lib=boost_context");
            println!("cargo::rustc-cfg=boost_context");
        }
    }
    if let Some(folder) = std::env::var_os("LIBCO").map(PathBuf::from) {
        let sources = [PathBuf::from("shim/libco.c"), folder.join("libco.c")];
        if cc::Build::new()
            .opt_level(3)
            .warnings(false)
            .include(&folder)
            .files(sources)
            .try_compile("ebb_libco")
            .is_ok()
        {
            println!("cargo::rustc-cfg=libco");
        }
    } else if let Some(flags) = says("pkg-config", &["--libs-only-l", "libco"])
        && cc::Build::new().opt_level(3).warnings(false).file("shim/libco.c").try_compile("ebb_libco").is_ok()
    {
        flags.split_whitespace().for_each(|flag| {
            println!("cargo::rustc-link-lib={}", flag.trim_start_matches("-l"));
        });
        println!("cargo::rustc-cfg=libco");
    }
}

/// The first line of what a command prints, if it succeeds.
fn says(command: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(command).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned())
}
