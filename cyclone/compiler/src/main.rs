//! The command `cyc`.

#![forbid(unsafe_code)]

use mimalloc::MiMalloc;
use std::process::ExitCode;

/// Much of what a compiler does is to make small trees: an allocator that is quick at that, and asks the
/// kernel for large pages, saves a third of its time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    ebb_cyclone::driver::main(std::env::args_os().skip(1).collect())
}
