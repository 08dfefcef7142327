//! The command `ebb`: runs Linux programs on the Ebb kernel, in QEMU.
//!
//! One file per subcommand: [`run`], [`shell`], [`image`], [`tour`], [`doctor`]. What they share: which machine to start
//! ([`machine`]), signals of the host ([`signals`]), and the exit code of every failure ([`exit_code`]). All the work is
//! done by the crate `ebb-guest`.

#![forbid(unsafe_code)]

mod doctor;
mod exit_code;
mod group;
mod image;
mod machine;
mod run;
mod shell;
mod signals;
mod terminal;
mod time;
mod tour;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Runs Linux programs on the Ebb kernel, in QEMU.
#[derive(Parser)]
#[command(version, after_help = exit_code::TABLE, max_term_width = 100, args_override_self = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run one program and exit with its code.
    #[command(after_help = exit_code::TABLE, args_override_self = true)]
    Run(run::Arguments),
    /// An interactive shell with job control.
    Shell(shell::Arguments),
    /// Make root file systems for `ebb run` and `ebb shell`.
    #[command(args_override_self = true)]
    Image(image::Arguments),
    /// A short tour of Ebb in BusyBox sh.
    Tour(tour::Arguments),
    /// What is missing on this machine, and the command that gets it.
    Doctor,
}

fn main() -> ExitCode {
    let command_line = match CommandLine::try_parse() {
        Ok(command_line) => command_line,
        Err(error) => {
            // Help and version come this way too. There is no one to tell if printing fails.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(exit_code::USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let outcome = match command_line.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Shell(arguments) => shell::shell(&arguments),
        Command::Image(arguments) => image::image(arguments),
        Command::Tour(arguments) => tour::tour(&arguments),
        Command::Doctor => Ok(doctor::doctor()),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("ebb: {error}");
            ExitCode::from(exit_code::of(&error))
        }
    }
}
