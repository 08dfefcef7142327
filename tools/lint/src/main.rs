#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod command;
mod diagnostic;
mod judgement;
mod mir;
mod probe;
mod rule;
mod settings;
mod signature;
mod source;
mod wrapper;

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Cargo puts `ebb-lint` before the options of a subcommand, and the compiler's path before its arguments.
    let is_command = arguments
        .first()
        .is_none_or(|first| first == "ebb-lint" || first.to_str().is_some_and(|first| first.starts_with('-')));
    match is_command {
        true => command::run(&arguments),
        false => wrapper::run(&arguments),
    }
}
