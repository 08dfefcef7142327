//! One program that runs for the host: its process group, its three pipes, and what has to happen before it counts as
//! ended.

use crate::children::{self, Reaped};
use crate::line::Line;
use ebb_protocol::flow::Window;
use ebb_protocol::{Exit, OutputStream, StandardInput, Start, ToHost};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The most bytes that travel in one message of output.
const CHUNK_BYTES: usize = 8192;

/// Why a program could not be started: what was tried, and Linux's number of the error.
pub struct StartError {
    pub doing: String,
    pub errno: i32,
}

/// A program that was started and whose end has not been reported yet.
pub struct Run {
    pid: Pid,
    exit: Option<Exit>,
    stdin: Option<Input>,
    outputs: [Output; 2],
}

struct Input {
    pipe: PipeWriter,
    queue: VecDeque<u8>,
    ends: bool,
}

/// One of the program's output pipes; `pipe` is gone when nothing more can come.
pub struct Output {
    pub stream: OutputStream,
    pub pipe: Option<PipeReader>,
    pub window: Window,
}

impl Run {
    /// Starts the program in a process group of its own. A working directory that is missing is made.
    pub fn start(start: &Start) -> Result<Self, StartError> {
        let failed =
            |doing: String| move |error: io::Error| StartError { doing, errno: error.raw_os_error().unwrap_or(0) };
        let cwd = OsStr::from_bytes(&start.cwd);
        std::fs::create_dir_all(cwd).map_err(failed(format!("enter the working directory {}", cwd.display())))?;

        let pipes = failed("make pipes".into());
        let make = || -> io::Result<_> { Ok((io::pipe()?, io::pipe()?, io::pipe()?)) };
        let ((stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr)) = make().map_err(pipes)?;
        // The program may leave its input unread: writing must never stop the agent.
        rustix::fs::fcntl_setfl(&to_stdin, OFlags::NONBLOCK)
            .map_err(|errno| StartError { doing: "make a pipe".into(), errno: errno.raw_os_error() })?;

        let program = OsStr::from_bytes(&start.program);
        let mut command = Command::new(program);
        if let Some((name, rest)) = start.argv.split_first() {
            command.arg0(OsStr::from_bytes(name)).args(rest.iter().map(|argument| OsStr::from_bytes(argument)));
        }
        command
            .env_clear()
            .envs(start.env.iter().map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))))
            .current_dir(cwd)
            .process_group(0)
            .stdout(stdout)
            .stderr(stderr);
        let input = match start.stdin {
            StandardInput::Null => {
                command.stdin(Stdio::null());
                None
            }
            StandardInput::Pipe => {
                command.stdin(stdin);
                Some(Input { pipe: to_stdin, queue: VecDeque::new(), ends: false })
            }
        };
        let child = command.spawn().map_err(failed(format!("execute {}", program.display())))?;
        let output = |stream, pipe| Output { stream, pipe: Some(pipe), window: Window::full() };
        Ok(Self {
            pid: Pid::from_child(&child),
            exit: None,
            stdin: input,
            outputs: [output(OutputStream::Stdout, from_stdout), output(OutputStream::Stderr, from_stderr)],
        })
    }

    /// The pipe to the program's standard input, if there are bytes to write into it.
    pub fn waiting_input(&self) -> Option<&PipeWriter> {
        self.stdin.as_ref().filter(|input| !input.queue.is_empty()).map(|input| &input.pipe)
    }

    /// The program's two output streams.
    pub fn outputs(&self) -> &[Output; 2] {
        &self.outputs
    }

    /// Takes bytes for the program's standard input.
    pub fn queue_input(&mut self, bytes: &[u8]) {
        if let Some(input) = &mut self.stdin {
            input.queue.extend(bytes);
        }
    }

    /// The program's standard input ends behind what was queued.
    pub fn end_input(&mut self) {
        if let Some(input) = &mut self.stdin {
            input.ends = true;
            if input.queue.is_empty() {
                self.stdin = None;
            }
        }
    }

    /// Writes as much input as the program's pipe takes, and gives the host credit for it.
    pub fn pass_input(&mut self, line: &mut Line) -> io::Result<()> {
        let Some(input) = &mut self.stdin else { return Ok(()) };
        let (first, _) = input.queue.as_slices();
        match input.pipe.write(first) {
            Ok(count) => {
                input.queue.drain(..count);
                if input.ends && input.queue.is_empty() {
                    self.stdin = None;
                }
                line.send(&ToHost::StdinCredit(count as u32))
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(()),
            Err(_) => {
                // Nobody reads any more; for the host this is no error, as it is none for a shell's pipeline.
                self.stdin = None;
                line.send(&ToHost::StdinClosed)
            }
        }
    }

    /// Reads once from one output stream and sends it to the host.
    pub fn pass_output(&mut self, index: usize, line: &mut Line) -> io::Result<()> {
        let output = &mut self.outputs[index];
        let Some(pipe) = &mut output.pipe else { return Ok(()) };
        let mut bytes = [0; CHUNK_BYTES];
        let room = output.window.available_bytes().min(CHUNK_BYTES);
        match pipe.read(&mut bytes[..room]) {
            Ok(0) => output.pipe = None,
            Ok(count) => {
                output.window.spend(count);
                line.send(&ToHost::Output(output.stream, bytes[..count].to_vec()))?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => output.pipe = None,
        }
        Ok(())
    }

    /// The host passed bytes of this stream on.
    pub fn refund(&mut self, stream: OutputStream, count: usize) {
        if let Some(output) = self.outputs.iter_mut().find(|output| output.stream == stream) {
            output.window.refund(count);
        }
    }

    /// Nobody reads this stream any more.
    pub fn close_output(&mut self, stream: OutputStream) {
        if let Some(output) = self.outputs.iter_mut().find(|output| output.stream == stream) {
            output.pipe = None;
        }
    }

    /// Delivers a signal to the program's process group. A signal that does not exist is ignored.
    pub fn signal(&self, number: u8) {
        if let Some(signal) = Signal::from_named_raw(i32::from(number)) {
            // The group may just have ended.
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Takes the ended processes; `Some` once the program has ended, its output has been sent, and nothing that it
    /// started is left. What it leaves behind is killed.
    pub fn finished(&mut self) -> Option<Exit> {
        let Reaped { exit, others_left } = children::reap(self.pid);
        self.exit = self.exit.or(exit);
        let exit = self.exit?;
        if others_left {
            children::kill_all_others();
            return None;
        }
        let all_sent = self.outputs.iter().all(|output| output.pipe.is_none());
        all_sent.then_some(exit)
    }
}
