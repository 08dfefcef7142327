//! One thing to do on both systems, and what came of it.

use ebb_guest::Exit;
use std::path::PathBuf;
use std::time::Duration;

/// A program to run on both systems.
#[derive(Debug, Clone)]
pub struct Task {
    /// What reports call it: `files/append`.
    pub name: String,
    /// What to run.
    pub action: Action,
    /// Its standard input; none is `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// How long it may take on either system.
    pub limit: Duration,
}

impl Task {
    /// Whether its threads wait for each other all the time, so that it takes very long where others take its cores.
    pub fn wants_all_cores(&self) -> bool {
        self.name.starts_with("across_cores/")
    }
}

/// What a task runs.
#[derive(Debug, Clone)]
pub enum Action {
    /// A static program, which lies at this path of the host.
    Program(PathBuf),
    /// A text for BusyBox's shell, with nothing but BusyBox's applets in its `PATH`; the second text is its name.
    Shell(String, String),
}

/// What came of a task on one system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It ended.
    Ended {
        /// All of its standard output.
        stdout: Vec<u8>,
        /// All of its standard error; never compared, but shown with a difference.
        stderr: Vec<u8>,
        /// How it ended.
        exit: Exit,
    },
    /// It was still running at its time limit.
    TimedOut {
        /// What it had written to its standard output by then.
        stdout: Vec<u8>,
    },
    /// The system ended with it: a kernel panic or worse.
    SystemLost(String),
}
