//! One program that runs for the host: its process group, its three pipes or its terminal, and what has to happen before it
//! counts as ended.

use crate::children::{self, Reaped};
use crate::group::{self, Group};
use crate::line::Line;
use crate::session;
use ebb_protocol::flow::Window;
use ebb_protocol::{Exit, OutputStream, StandardInput, Start, StartError, ToHost};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A program that was started and whose end has not been reported yet.
pub struct Run {
    pid: Pid,
    exit: Option<Exit>,
    stdin: Option<Input>,
    outputs: [Output; 2],
    terminal: Option<Terminal>,
    group: Option<Group>,
}

/// The terminal of a program's session.
struct Terminal {
    master: File,
    /// Open until the program has ended: without it the master says "hung up" before the program has opened its side.
    _slave: File,
}

/// What a program's standard streams are, seen from here.
struct Streams {
    stdin: Option<File>,
    stdout: File,
    stderr: Option<File>,
    terminal: Option<Terminal>,
}

/// What becomes the program's standard streams.
struct ProgramsEnds {
    stdin: Stdio,
    stdout: Stdio,
    stderr: OwnedFd,
}

impl Streams {
    /// Three pipes, or two and `/dev/null`; and the program's ends.
    fn pipes(has_input: bool) -> io::Result<(Self, ProgramsEnds)> {
        let (from_stdout, stdout) = io::pipe()?;
        let (from_stderr, stderr) = io::pipe()?;
        let (stdin, to_stdin) = if has_input {
            let (stdin, to_stdin) = io::pipe()?;
            // The program may leave its input unread: writing must never stop the agent.
            rustix::fs::fcntl_setfl(&to_stdin, OFlags::NONBLOCK)?;
            (stdin.into(), Some(file(to_stdin)))
        } else {
            (Stdio::null(), None)
        };
        let streams =
            Self { stdin: to_stdin, stdout: file(from_stdout), stderr: Some(file(from_stderr)), terminal: None };
        Ok((streams, ProgramsEnds { stdin, stdout: stdout.into(), stderr: stderr.into() }))
    }

    /// A new terminal, and the path of the program's side.
    fn terminal(rows: u16, columns: u16) -> io::Result<(Self, PathBuf)> {
        let master = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?);
        grantpt(&master)?;
        unlockpt(&master)?;
        let path = PathBuf::from(OsStr::from_bytes(ptsname(&master, Vec::new())?.as_bytes()));
        tcsetwinsize(&master, window_size(rows, columns))?;
        rustix::fs::fcntl_setfl(&master, OFlags::NONBLOCK)?;
        let streams = Self {
            stdin: Some(master.try_clone()?),
            stdout: master.try_clone()?,
            stderr: None,
            terminal: Some(Terminal { _slave: session::open_terminal(&path)?, master }),
        };
        Ok((streams, path))
    }
}

fn file(pipe: impl Into<OwnedFd>) -> File {
    File::from(pipe.into())
}

fn window_size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

struct Input {
    pipe: File,
    /// What came from the host, and how much of the first part is written.
    queue: VecDeque<Vec<u8>>,
    written: usize,
    ends: bool,
}

/// One of the program's output pipes; `pipe` is gone when nothing more can come.
pub struct Output {
    pub stream: OutputStream,
    pub pipe: Option<File>,
    pub window: Window,
}

impl Run {
    /// Starts the program in a process group of its own, or in a session of its own on a new terminal. A working directory that is
    /// missing is made.
    pub fn start(own_path: &OsStr, start: &Start) -> Result<Self, StartError> {
        let failed = |doing: String| move |error: io::Error| group::start_error(doing, &error);
        let cwd = OsStr::from_bytes(&start.cwd);
        std::fs::create_dir_all(cwd).map_err(failed(format!("enter the working directory {}", cwd.display())))?;

        let group = start.group.as_ref().map(Group::make).transpose()?;
        let program = OsStr::from_bytes(&start.program);
        let name = start.argv.first().map_or(program, |name| OsStr::from_bytes(name));
        let arguments = start.argv.iter().skip(1).map(|argument| OsStr::from_bytes(argument));
        let becomes = |program: &OsStr, argv0: &OsStr, stderr: BorrowedFd<'_>| match &group {
            Some(group) => group.command(own_path, stderr, program, argv0),
            None => {
                let mut command = Command::new(program);
                command.arg0(argv0);
                command
            }
        };
        let (mut command, streams, stderr) = match start.stdin {
            StandardInput::Terminal { rows, columns } => {
                let (streams, path) = Streams::terminal(rows, columns).map_err(failed("make a terminal".into()))?;
                let stderr = io::stderr().as_fd().try_clone_to_owned().map_err(failed("make a terminal".into()))?;
                let mut command = becomes(own_path, own_path, stderr.as_fd());
                command.args(session::arguments(&path, program, name));
                (command, streams, stderr)
            }
            StandardInput::Null | StandardInput::Pipe => {
                let has_input = start.stdin == StandardInput::Pipe;
                let (streams, ends) = Streams::pipes(has_input).map_err(failed("make pipes".into()))?;
                let mut command = becomes(program, name, ends.stderr.as_fd());
                command.process_group(0).stdin(ends.stdin).stdout(ends.stdout);
                (command, streams, ends.stderr)
            }
        };
        command
            .args(arguments)
            .env_clear()
            .envs(start.env.iter().map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))))
            .current_dir(cwd);
        let child = match &group {
            Some(_) => group::spawn(command, program)?,
            None => command.stderr(stderr).spawn().map_err(failed(format!("execute {}", program.display())))?,
        };
        let output = |stream, pipe| Output { stream, pipe, window: Window::full() };
        Ok(Self {
            pid: Pid::from_child(&child),
            exit: None,
            stdin: streams.stdin.map(|pipe| Input { pipe, queue: VecDeque::new(), written: 0, ends: false }),
            outputs: [output(OutputStream::Stdout, Some(streams.stdout)), output(OutputStream::Stderr, streams.stderr)],
            terminal: streams.terminal,
            group,
        })
    }

    /// The host's terminal has another size now.
    pub fn resize(&self, rows: u16, columns: u16) {
        if let Some(Terminal { master, .. }) = &self.terminal {
            // A terminal of another size is usable, if less pleasant.
            let _ = tcsetwinsize(master, window_size(rows, columns));
        }
    }

    /// The pipe to the program's standard input, if there are bytes to write into it.
    pub fn waiting_input(&self) -> Option<&File> {
        self.stdin.as_ref().filter(|input| !input.queue.is_empty()).map(|input| &input.pipe)
    }

    /// The program's two output streams.
    pub fn outputs(&self) -> &[Output; 2] {
        &self.outputs
    }

    /// Takes bytes for the program's standard input.
    pub fn queue_input(&mut self, bytes: Vec<u8>) {
        if let Some(input) = &mut self.stdin {
            input.queue.push_back(bytes);
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
        let Some(first) = input.queue.front() else { return Ok(()) };
        match input.pipe.write(&first[input.written..]) {
            Ok(count) => {
                input.written += count;
                if input.written == first.len() {
                    input.queue.pop_front();
                    input.written = 0;
                }
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
        let Some(pipe) = &output.pipe else { return Ok(()) };
        match line.pass_output(pipe, output.stream, output.window.available_bytes())? {
            Ok(0) => output.pipe = None,
            Ok(count) => output.window.spend(count),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // Of a terminal: the last process has closed it.
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

    /// Delivers a signal to the program's process group. A signal that does not exist is ignored. SIGKILL, which the host sends at a time limit, ends a program's
    /// whole control group.
    pub fn signal(&mut self, number: u8) {
        if let (Some(group), Some(Signal::KILL)) = (&mut self.group, Signal::from_named_raw(i32::from(number))) {
            group.kill();
        }
        if let Some(signal) = Signal::from_named_raw(i32::from(number)) {
            // The group may just have ended.
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Takes the ended processes; `Some` once the program has ended, its output has been sent, and nothing that it
    /// started is left. What it leaves behind is killed; the host is told before that may take long.
    pub fn finished(&mut self, line: &mut Line) -> io::Result<Option<Exit>> {
        let Reaped { exit, others_left } = children::reap(self.pid);
        let Some(ended) = self.exit.or(exit) else { return Ok(None) };
        if self.exit.replace(ended).is_none() {
            line.send(&ToHost::Ended)?;
            if let Some(group) = &mut self.group {
                group.kill();
            }
        }
        if others_left {
            children::kill_all_others();
            return Ok(None);
        }
        // Now the terminal's last words can be read to their end.
        self.terminal = None;
        let all_sent = self.outputs.iter().all(|output| output.pipe.is_none());
        if !all_sent {
            return Ok(None);
        }
        if let Some(group) = self.group.take() {
            line.send(&ToHost::Statistics(group.finish()))?;
        }
        Ok(Some(ended))
    }
}
