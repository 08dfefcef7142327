//! A program to run in a guest.

use ebb_protocol::{GroupLimits, Start};
use std::ffi::OsStr;
use std::io::{Cursor, Read};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// A program, its arguments and surroundings. The environment starts with `PATH`, `HOME` and `USER` only.
#[derive(Debug, Clone)]
pub struct Program {
    start: Start,
}

impl Program {
    /// The program at a path of the guest, or of this name in the guest's `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let program = program.as_ref().as_bytes().to_vec();
        let variable = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        Self {
            start: Start {
                argv: vec![program.clone()],
                program,
                env: vec![
                    variable("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
                    variable("HOME", "/root"),
                    variable("USER", "root"),
                ],
                cwd: b"/".to_vec(),
                ..Start::default()
            },
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.start.argv.push(argument.as_ref().as_bytes().to_vec());
        self
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        arguments.into_iter().fold(self, Self::arg)
    }

    /// Sets argument 0, the name that the program is told.
    pub fn arg0(mut self, name: impl AsRef<OsStr>) -> Self {
        self.start.argv[0] = name.as_ref().as_bytes().to_vec();
        self
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let name = name.as_ref().as_bytes().to_vec();
        self.start.env.retain(|(existing, _)| *existing != name);
        self.start.env.push((name, value.as_ref().as_bytes().to_vec()));
        self
    }

    /// Sets the working directory; it is made if it is missing.
    pub fn current_dir(mut self, directory: impl AsRef<OsStr>) -> Self {
        self.start.cwd = directory.as_ref().as_bytes().to_vec();
        self
    }

    /// Gives the program a control group of its own, which is killed at the program's end; [`Guest::take_statistics`](crate::Guest::take_statistics) says what was counted in it. With a bound, which is
    /// rounded down to microseconds, that kill may take so long, and the program is refused whatever would make it take longer.
    pub fn in_group(mut self, reclaim_within: Option<Duration>) -> Self {
        let reclaim_max_us = reclaim_within.map(|bound| u64::try_from(bound.as_micros()).unwrap_or(u64::MAX));
        self.start.group = Some(GroupLimits { reclaim_max_us });
        self
    }

    /// The message that starts the program.
    pub(crate) fn start(&self, input: &Input) -> Start {
        Start { stdin: input.kind(), ..self.start.clone() }
    }
}

/// What a program reads from its standard input.
#[derive(Default)]
pub enum Input {
    /// `/dev/null`.
    #[default]
    Null,
    /// A pipe with all that this reader gives, as it comes.
    Stream(Box<dyn Read + Send>),
    /// A terminal, which is the program's standard output and standard error, too: what it shows comes as standard output.
    Terminal {
        /// What is typed.
        keys: Box<dyn Read + Send>,
        /// Its size at first; [`crate::Interrupt::WindowSize`] changes it.
        rows: u16,
        /// Characters in a line.
        columns: u16,
    },
}

impl Input {
    /// A pipe with these bytes.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Stream(Box::new(Cursor::new(bytes.into())))
    }

    fn kind(&self) -> ebb_protocol::StandardInput {
        match self {
            Self::Null => ebb_protocol::StandardInput::Null,
            Self::Stream(_) => ebb_protocol::StandardInput::Pipe,
            &Self::Terminal { rows, columns, .. } => ebb_protocol::StandardInput::Terminal { rows, columns },
        }
    }
}
