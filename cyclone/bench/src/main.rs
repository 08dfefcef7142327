//! `make bench-cyclone`: the programs of `programs/`, in Cyclone and in C, side by side.
//!
//! Each program exists twice, with the same algorithm: `NAME.c` is built by `cc -O2`, `NAME.cyc` by `cyc build -O2` with all checks on. Both
//! are run several times in turn, so that a change of the machine's load meets both; the least time of each counts. Their output must
//! be the same. With `--original` the original compiler builds the Cyclone programs too.
//!
//! There are two tables. In the first the C programs allocate as those in Cyclone do, from arenas and from the collector: it says what
//! checks cost. In the second they use `malloc` and `free`: it says what regions and the collector win or lose.

#![forbid(unsafe_code)]

mod compile;
mod measure;
mod programs;
mod table;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures Cyclone programs beside the same programs in C.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Option<Action>,
    /// Only programs whose names contain this.
    #[arg(long)]
    only: Option<String>,
    /// Runs of each program.
    #[arg(long, default_value_t = 11)]
    runs: u32,
    /// The compiler `cyc`.
    #[arg(long, default_value = "cyc")]
    cyc: PathBuf,
    /// The C compiler, for both.
    #[arg(long, default_value = "gcc")]
    cc: String,
    /// The original Cyclone compiler, where you have it (it is called as `FILE -O2 -o OUT`).
    #[arg(long)]
    original: Option<PathBuf>,
    /// Do not count instructions (for which valgrind is needed).
    #[arg(long)]
    no_instructions: bool,
    /// More options for `cyc build`.
    #[arg(long, allow_hyphen_values = true)]
    cyc_options: Vec<String>,
    /// Measure how quickly these Cyclone files become C instead (options for the preprocessor after `--`).
    #[arg(long, num_args = 1..)]
    compile: Vec<PathBuf>,
    /// Options of `cyc` for `--compile`.
    #[arg(last = true)]
    compile_options: Vec<String>,
}

#[derive(Subcommand)]
enum Action {
    /// Runs one program and prints its costs; used by this program itself.
    #[command(hide = true)]
    Measure {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match &options.command {
        Some(Action::Measure { program, arguments }) => measure::measure(program, arguments),
        None if !options.compile.is_empty() => compile::table(&options.cyc, &options.compile, &options.compile_options),
        None => table::tables(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ebb-cyclone-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
