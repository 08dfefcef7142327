//! What came of a program in a guest, and how long it took.

use anyhow::Result;
use ebb_guest::{Error, Exit, Guest, Input, OutputStream, Program};
use std::process::Output;
use std::time::{Duration, Instant};

/// What a program wrote, how it ended, and how long it took.
#[derive(Clone)]
pub struct Ran {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub exit: Exit,
    pub time: Duration,
}

impl Ran {
    /// Runs a program in a guest; `line` is given each line that it writes, as it comes. A program that does not end within the limit, or that takes the machine down, was killed, and its standard error says
    /// so.
    pub fn in_guest(guest: &mut Guest, program: &Program, limit: Duration, mut line: impl FnMut(&str)) -> Result<Self> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let started = Instant::now();
        let exit = guest.stream(program, Input::Null, Some(limit), |stream, bytes| {
            let kept = match stream {
                OutputStream::Stdout => &mut stdout,
                OutputStream::Stderr => &mut stderr,
            };
            kept.extend_from_slice(bytes);
            if let Some(last) = String::from_utf8_lossy(bytes).lines().rfind(|line| !line.is_empty()) {
                line(last);
            }
            Ok(())
        });
        let time = started.elapsed();
        match exit {
            Ok(exit) => Ok(Ran { stdout, stderr, exit, time }),
            Err(error @ (Error::TimedOut(_) | Error::Panicked(_) | Error::Died { .. })) => {
                stderr.extend_from_slice(format!("\n{error}").as_bytes());
                Ok(Ran { stdout, stderr, exit: Exit::Signal(9), time })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What a program of the host's did.
    pub fn on_host(output: Output, time: Duration) -> Self {
        let exit = Exit::Code(output.status.code().unwrap_or(255) as u8);
        Ran { stdout: output.stdout, stderr: output.stderr, exit, time }
    }
}
