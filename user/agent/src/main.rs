//! Process 1 in a guest that the host's tools started.
//!
//! | command line | what it does |
//! | --- | --- |
//! | `agent root DEVICE TYPE ...` | makes the file system on DEVICE its root, with what is written kept in memory (or there, with the option `rw`), and goes on as the rest says |
//! | `agent serve` | runs programs for the host, one after the other, until the host says to power off |
//! | `agent shell [NAME=VALUE...] [PROGRAM [ARGS...]]` | runs one program (root's login shell, if none is named) on the console with job control, then powers off |
//! | `agent session TERMINAL PROGRAM ARGV0 [ARGS...]` | becomes PROGRAM, leader of a new session with this terminal |
//! | `agent group DIRECTORY STDERR PROGRAM ARGV0 [ARGS...]` | enters a control group and becomes PROGRAM, with this standard error |
//!
//! The same file runs on Ebb and on Linux. It asks little of the kernel: files, pipes, `poll`, starting and awaiting
//! processes, one signal handler. What goes wrong before the host can be told is printed on the console, and the
//! machine powers off.

#![forbid(unsafe_code)]

mod children;
mod group;
mod line;
mod modules;
mod mounts;
mod power;
mod root;
mod run;
mod serve;
mod session;
mod shell;
mod volumes;

use root::Root;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

fn main() -> ExitCode {
    let boot_ns = power::nanoseconds_since_boot();
    let mut arguments = std::env::args_os();
    let own_path = arguments.next().unwrap_or_else(|| OsString::from("/proc/self/exe"));
    let mut mode = arguments.next();
    let mut rest: Vec<OsString> = arguments.collect();
    // For disks, be the root on one or not.
    if std::process::id() == 1
        && let Err(error) = modules::load()
    {
        let _ = power::off_after(Err(error));
        return ExitCode::FAILURE;
    }
    let mut root = Root::of_archive(own_path);
    if mode.as_deref().is_some_and(|mode| mode == "root") {
        let entered = match &rest[..] {
            [device, kind, options, ..] => root::enter(device, kind, options, &root.own_path),
            _ => Err(std::io::Error::other("`root` wants a device, a type and options")),
        };
        root = match entered {
            Ok(entered) => entered,
            Err(error) => {
                let _ = power::off_after(Err(error));
                return ExitCode::FAILURE;
            }
        };
        rest.drain(..3);
        mode = (!rest.is_empty()).then(|| rest.remove(0));
    }
    let mut volumes = Vec::new();
    while mode.as_deref().is_some_and(|mode| mode == "volume") {
        if rest.len() < volumes::WORDS {
            let _ = power::off_after(Err(std::io::Error::other("`volume` wants a tag, a place, access and options")));
            return ExitCode::FAILURE;
        }
        volumes.push(rest.drain(..volumes::WORDS).collect::<Vec<_>>());
        mode = (!rest.is_empty()).then(|| rest.remove(0));
    }
    let serves = |root: Root, serve: &dyn Fn(&OsStr) -> std::io::Result<()>| {
        mounts::mount_what_is_missing();
        if root.is_entered {
            mounts::mount_run();
        }
        let mounted = volumes.iter().try_for_each(|volume| volumes::mount_one(volume));
        let served = mounted.and_then(|()| serve(&root.own_path));
        power::off_after(served.and(root.leave()))
    };

    let outcome = match mode.as_deref().and_then(|mode| mode.to_str()) {
        Some("session") => return session::lead(&rest),
        Some("group") => return group::enter(&rest),
        Some("serve") | None => serves(root, &|own_path| serve::serve(own_path, boot_ns)),
        Some("shell") => serves(root, &|own_path| shell::run_on_console(own_path, &rest, boot_ns)),
        Some(other) => Err(std::io::Error::other(format!("unknown mode `{other}`"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ebb agent: {error}");
            ExitCode::FAILURE
        }
    }
}
