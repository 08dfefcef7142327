//! The end of processes: process 1 is told of its own children's and inherits everybody's orphans.

use ebb_protocol::Exit;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, wait};
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};

/// Becomes readable whenever a child has ended.
pub struct ChildNotice {
    pipe: PipeReader,
}

impl ChildNotice {
    /// From here on SIGCHLD writes a byte into a pipe.
    pub fn install() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        rustix::fs::fcntl_setfl(&reader, rustix::fs::OFlags::NONBLOCK)?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, writer)?;
        Ok(Self { pipe: reader })
    }

    /// Takes all notices that have come so far.
    pub fn clear(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.pipe.read(&mut bytes), Ok(count) if count > 0) {}
    }
}

impl AsFd for ChildNotice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// What a look at the ended children found.
pub struct Reaped {
    /// How the process that was asked for ended, if it did.
    pub exit: Option<Exit>,
    /// Whether any process but this one is left.
    pub others_left: bool,
}

/// Takes every child that has ended, and notes how `awaited` did.
pub fn reap(awaited: Pid) -> Reaped {
    let mut exit = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == awaited => exit = exit_of(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Reaped { exit, others_left: true },
            Err(_) => return Reaped { exit, others_left: false },
        }
    }
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(Exit::Code(code as u8)),
        (None, Some(signal)) => Some(Exit::Signal(signal as u8)),
        (None, None) => None,
    }
}

/// Kills every process but this one.
pub fn kill_all_others() {
    // The group "1" is `kill`'s -1: all processes but the caller and process 1. No process left is no error here.
    let _ = kill_process_group(Pid::INIT, Signal::KILL);
}
