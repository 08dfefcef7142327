//! A program that leads a session of its own on a terminal: started by this same file, which makes the session and then becomes the
//! program.

use rustix::fs::OFlags;
use rustix::process::{ioctl_tiocsctty, setsid};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The exit codes of shells for a program that is not there, and for one that cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// The command that becomes `program` on `terminal`; its environment and working directory become the program's.
pub fn command(own_path: &OsStr, terminal: &Path, program: &OsStr, argv0: &OsStr) -> Command {
    let mut command = Command::new(own_path);
    command.args(arguments(terminal, program, argv0));
    command
}

/// This file's own arguments in that command.
pub fn arguments<'a>(terminal: &'a Path, program: &'a OsStr, argv0: &'a OsStr) -> [&'a OsStr; 4] {
    [OsStr::new("session"), terminal.as_os_str(), program, argv0]
}

/// Makes this process the leader of a new session on the terminal and executes the program; returns only on an error, which it prints.
pub fn lead(arguments: &[OsString]) -> ExitCode {
    let [terminal, program, argv0, arguments @ ..] = arguments else {
        eprintln!("ebb agent: session TERMINAL PROGRAM ARGV0 [ARGS...]");
        return ExitCode::FAILURE;
    };
    let prepare = || -> io::Result<[File; 4]> {
        setsid()?;
        let terminal = open_terminal(Path::new(terminal))?;
        ioctl_tiocsctty(&terminal)?;
        Ok([terminal.try_clone()?, terminal.try_clone()?, terminal.try_clone()?, terminal])
    };
    match prepare() {
        Ok([stdin, stdout, stderr, mut spare]) => {
            let mut command = Command::new(program);
            command.arg0(argv0).args(arguments).stdin(stdin).stdout(stdout).stderr(stderr);
            let error = command.exec();
            // The terminal may be gone; then nobody is there to read why.
            let _ = writeln!(spare, "ebb: cannot execute {}: {error}", program.display());
            ExitCode::from(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE })
        }
        Err(error) => {
            eprintln!("ebb agent: cannot make {} this session's terminal: {error}", terminal.display());
            ExitCode::FAILURE
        }
    }
}

/// Opens a terminal without making it this session's.
pub fn open_terminal(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(OFlags::NOCTTY.bits() as i32).open(path)
}
