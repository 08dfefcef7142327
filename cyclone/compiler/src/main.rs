//! The command `cyc`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ebb_cyclone::driver::main(std::env::args_os().skip(1).collect())
}
