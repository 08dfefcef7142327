//! A machine that runs, and the programs that run in it, one after the other.
//!
//! Everything that happens comes as an [`Event`] through one channel, from the threads that read the lines, from the one
//! that reads a program's input, and from [`Remote`]s; the caller's thread takes them one by one and is the only one that
//! writes to the line.

use crate::console::Log;
use crate::error::Doing;
use crate::image::Image;
use crate::kernel::PowerState;
use crate::line::{LineWriter, read_lines};
use crate::program::{Input, Program};
use crate::qemu::{Ports, Qemu, lacks_memory};
use crate::statistics::Statistics;
use crate::{ConsoleUse, Error, Kernel, Machine, Network, Result};
use ebb_protocol::flow::{Line, Window};
use ebb_protocol::{Exit, OutputStream, StartError, ToGuest, ToHost};
use std::borrow::Cow;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// Credit for output goes back in portions of at least this many bytes.
const CREDIT_PORTION_BYTES: usize = 32 * 1024;
/// How long a program that was killed at its time limit may take to be gone.
const KILL_LIMIT: Duration = Duration::from_secs(120);

const SIGKILL: u8 = 9;

/// A running machine whose agent is ready. Dropping it ends the machine at once.
pub struct Guest {
    machine: Machine,
    qemu: Qemu,
    line: LineWriter,
    events: Receiver<Event>,
    sender: Sender<Event>,
    log: Log,
    log_reader: Option<JoinHandle<()>>,
    console: Option<UnixStream>,
    boot_time: Duration,
    kernel_boot_time: Duration,
    runs: u64,
    statistics: Option<Statistics>,
    _directory: tempfile::TempDir,
}

/// What a program wrote and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// All of its standard output.
    pub stdout: Vec<u8>,
    /// All of its standard error.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub exit: Exit,
}

/// What another thread can send to the program that runs, or to whoever waits for the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// A signal, by its Linux number. Before the program has started it ends the wait with [`Error::Interrupted`].
    Signal(u8),
    /// The host's terminal has this many rows and columns now.
    WindowSize(u16, u16),
    /// Whoever waits for the guest stops waiting, with [`Error::Interrupted`] by this signal; the guest is lost.
    Abandon(u8),
}

/// Sends [`Interrupt`]s to a guest from any thread.
#[derive(Clone)]
pub struct Remote {
    sender: Sender<Event>,
}

impl Remote {
    /// Passes it on to the guest; of no effect once the guest is gone.
    pub fn send(&self, interrupt: Interrupt) {
        let _ = self.sender.send(Event::Interrupt(interrupt));
    }
}

enum Event {
    Message(ToHost),
    LineDown(String),
    Interrupt(Interrupt),
    /// Input for the run of this number; empty at its end.
    Input(u64, Vec<u8>),
}

impl Guest {
    /// Starts a machine with this file system (the agent is added if missing) and waits until it is ready.
    ///
    /// QEMU may end with the thread that calls this, so let that thread live as long as the guest.
    pub fn boot(machine: Machine, image: &Image) -> Result<Self> {
        Self::boot_with(machine, image, |_| {})
    }

    /// The same; `connect` is given a [`Remote`] before the wait begins, so that the boot can be interrupted.
    pub fn boot_with(machine: Machine, image: &Image, connect: impl FnOnce(Remote)) -> Result<Self> {
        let started = Instant::now();
        let directory = tempfile::Builder::new().prefix("ebb-").tempdir().doing(|| "making a directory".into())?;
        let archive = directory.path().join("root.cpio");
        write_image(&machine, image, &archive)?;

        let (sender, events) = channel();
        connect(Remote { sender: sender.clone() });
        let mut qemu = Qemu::start(&machine, &archive, crate::image::AGENT_PATH, directory.path())?;
        let Some(Ports { console, serial, port }) = qemu.ports.take() else {
            return Err(Error::Died { why: "QEMU has no serial ports".into(), log: None });
        };
        let log = Log::default();
        let (log_reader, console) = match machine.console {
            ConsoleUse::Interactive => (None, Some(console)),
            shown => (Some(log.keep(console, shown == ConsoleUse::Shown)), None),
        };
        let connecting = || "connecting to the guest".to_owned();
        let to_events = sender.clone();
        let (serial_writer, port_writer) = (LineWriter::new(Line::Serial, &serial), LineWriter::new(Line::Port, &port));
        let chosen = read_lines([(Line::Serial, serial), (Line::Port, port)], move |message| {
            to_events.send(message.map_or_else(Event::LineDown, Event::Message)).is_ok()
        });
        let mut guest = Self {
            machine,
            qemu,
            line: serial_writer.doing(connecting)?,
            events,
            sender,
            log,
            log_reader,
            console,
            boot_time: Duration::ZERO,
            kernel_boot_time: Duration::ZERO,
            runs: 0,
            statistics: None,
            _directory: directory,
        };
        guest.kernel_boot_time = guest.wait_until_ready(started)?;
        if chosen.get() == Some(&Line::Port) {
            guest.line = port_writer.doing(connecting)?;
        }
        guest.boot_time = started.elapsed();
        Ok(guest)
    }

    fn wait_until_ready(&mut self, started: Instant) -> Result<Duration> {
        let limit = self.machine.boot_limit;
        loop {
            match self.next_event(Some(started + limit)) {
                Some(Event::Message(ToHost::Ready { boot_ns })) => return Ok(Duration::from_nanos(boot_ns)),
                Some(Event::LineDown(why)) => {
                    let error = self.ending(why);
                    return Err(match &error {
                        Error::Panicked(text) | Error::Died { log: Some(text), .. } if speaks_of_memory(text) => {
                            Error::TooLittleMemory { given: self.machine.memory.0, why: text.clone() }
                        }
                        _ => error,
                    });
                }
                Some(Event::Interrupt(Interrupt::Signal(number) | Interrupt::Abandon(number))) => {
                    return Err(Error::Interrupted(number));
                }
                Some(_) => {}
                None => {
                    return Err(Error::Died {
                        why: format!("no sign of life from the guest within {} s", limit.as_secs_f64()),
                        log: self.log.last_lines(20),
                    });
                }
            }
        }
    }

    /// From the call of [`Self::boot`] until the agent was ready, on the host's clock.
    pub fn boot_time(&self) -> Duration {
        self.boot_time
    }

    /// From the start of the kernel's clock to the agent's first instruction, on the guest's clock.
    pub fn kernel_boot_time(&self) -> Duration {
        self.kernel_boot_time
    }

    /// The kernel's console.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The machine as it was started.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// A way to interrupt this guest from other threads.
    pub fn remote(&self) -> Remote {
        Remote { sender: self.sender.clone() }
    }

    /// The console's stream, once, of a machine with [`ConsoleUse::Interactive`].
    pub fn take_console(&mut self) -> Option<UnixStream> {
        self.console.take()
    }

    /// Runs a program to its end and keeps what it writes. At the time limit it is killed ([`Error::TimedOut`]); the guest
    /// remains usable if that helped, see [`Self::stream`].
    pub fn run(&mut self, program: &Program, input: Input, limit: Option<Duration>) -> Result<Output> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let exit = self.stream(program, input, limit, |stream, bytes| {
            match stream {
                OutputStream::Stdout => stdout.extend_from_slice(bytes),
                OutputStream::Stderr => stderr.extend_from_slice(bytes),
            }
            Ok(())
        })?;
        Ok(Output { stdout, stderr, exit })
    }

    /// Runs a program to its end and passes on what it writes as it comes.
    ///
    /// When `sink` fails, that stream is closed for the program, as if the reader of a pipe had gone. After
    /// [`Error::TimedOut`] and [`Error::Spawn`] the next program can be run; after any other error the guest is lost.
    pub fn stream(
        &mut self,
        program: &Program,
        input: Input,
        limit: Option<Duration>,
        sink: impl FnMut(OutputStream, &[u8]) -> io::Result<()>,
    ) -> Result<Exit> {
        self.runs += 1;
        self.statistics = None;
        let start = program.start(&input);
        self.send(&ToGuest::Start(start))?;
        let feed = match input {
            Input::Null => None,
            Input::Stream(reader) | Input::Terminal { keys: reader, .. } => {
                Some(Feed::start(reader, self.line.kind().input_bytes(), self.runs, self.sender.clone()))
            }
        };
        let mut run = Run { guest: self, feed, sink, ended: false, owed_bytes: [0; 2], closed: [false; 2] };
        let outcome = run.run_to_end(limit);
        if let Some(feed) = &run.feed {
            feed.stop();
        }
        outcome
    }

    /// What was counted in the group of the last program, once, if it was started [in one](Program::in_group) and has ended, by itself or at its time limit.
    pub fn take_statistics(&mut self) -> Option<Statistics> {
        self.statistics.take()
    }

    /// Waits until the agent reports an end that nobody here started: that of the shell on the console.
    pub fn wait_for_exit(&mut self) -> Result<Exit> {
        loop {
            match self.next_event(None) {
                Some(Event::Message(ToHost::Exited(exit))) => return Ok(exit),
                Some(Event::Message(ToHost::Received(count))) => self.received(count)?,
                Some(Event::Interrupt(Interrupt::WindowSize(rows, columns))) => {
                    self.send(&ToGuest::WindowSize { rows, columns })?;
                }
                Some(Event::Interrupt(Interrupt::Signal(number) | Interrupt::Abandon(number))) => {
                    return Err(Error::Interrupted(number));
                }
                Some(Event::LineDown(why)) => return Err(self.ending(why)),
                Some(_) => {}
                None => return Err(Error::Died { why: "nobody listens to the guest".into(), log: None }),
            }
        }
    }

    /// Tells the guest to power off and waits for it; an error if it does not end in order.
    pub fn shutdown(mut self) -> Result<()> {
        self.send(&ToGuest::Shutdown)?;
        self.wait_for_power_off()
    }

    /// Waits for the machine's orderly end.
    pub fn wait_for_power_off(mut self) -> Result<()> {
        match self.qemu.power_state(&self.machine) {
            (PowerState::Off, _) => Ok(()),
            (state, why) => Err(self.describe(state, why)),
        }
    }

    fn send(&mut self, message: &ToGuest) -> Result<()> {
        self.line.send(message).map_err(|error| self.ending(error.to_string()))
    }

    fn received(&mut self, count: u32) -> Result<()> {
        self.line.received(count as usize).map_err(|error| self.ending(error.to_string()))
    }

    /// The next event; `None` when the deadline has passed.
    fn next_event(&self, deadline: Option<Instant>) -> Option<Event> {
        match deadline {
            None => self.events.recv().ok(),
            // The channel never closes: this guest holds a sender itself.
            Some(deadline) => self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok(),
        }
    }

    /// Why the line is down.
    fn ending(&mut self, line_says: String) -> Error {
        let (state, why) = self.qemu.power_state(&self.machine);
        let complaint = self.qemu.complaint();
        if let Some(said) = complaint.as_deref().filter(|said| lacks_memory(said)) {
            return Error::TooLittleMemory { given: self.machine.memory.0, why: said.to_owned() };
        }
        let why = match (complaint, state) {
            (Some(complaint), _) => format!("{why}: {complaint}"),
            (None, PowerState::Failed) => format!("{line_says}; {why}"),
            (None, _) => why,
        };
        self.describe(state, why)
    }

    fn describe(&mut self, state: PowerState, why: String) -> Error {
        // The console's last words may still be on their way, if QEMU has ended; if it has not, they never end.
        if state != PowerState::Failed
            && let Some(reader) = self.log_reader.take()
        {
            let _ = reader.join();
        }
        let text = self.log.text();
        let panic_text = self.machine.kernel.panic_text(&text).map(str::to_owned);
        match (state, panic_text) {
            (_, Some(text)) => Error::Panicked(text),
            (PowerState::Panicked, None) => {
                Error::Panicked(self.log.last_lines(40).unwrap_or_else(|| "(it printed nothing)".into()))
            }
            (PowerState::Reset, None) => Error::Panicked(format!(
                "it reset the processor without a word (a triple fault)\n{}",
                self.log.last_lines(20).unwrap_or_default()
            )),
            (PowerState::Off, None) => {
                Error::Died { why: "the guest powered off by itself".into(), log: self.log.last_lines(20) }
            }
            (PowerState::Failed, None) => Error::Died { why, log: self.log.last_lines(20) },
        }
    }
}

/// Writes the archive, with the agent and what a Linux kernel needs for the machine's devices, and checks that machine has room for it.
fn write_image(machine: &Machine, image: &Image, archive: &Path) -> Result<()> {
    let agent_path = Path::new(crate::image::AGENT_PATH);
    let mut image = Cow::Borrowed(image);
    if !image.has_program(agent_path) {
        image.to_mut().add_agent(None)?;
    }
    if let Kernel::Linux(kernel) = &machine.kernel
        && (!machine.disks.is_empty() || machine.network != Network::None)
    {
        image.to_mut().add_device_modules(kernel, machine)?;
    }
    let bytes = image.write_to(archive)?;
    let needed = machine.kernel.own_memory_bytes().saturating_add(machine.kernel.unpacking_memory_bytes(bytes));
    if needed > machine.memory.bytes() {
        let why = format!(
            "the kernel and a file system of {} MiB need at least {} MiB",
            bytes.div_ceil(1 << 20),
            needed.div_ceil(1 << 20)
        );
        return Err(Error::TooLittleMemory { given: machine.memory.0, why });
    }
    Ok(())
}

fn speaks_of_memory(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("out of memory") || text.contains("no more memory") || text.contains("no memory")
}

/// One program's run, from the host's side.
struct Run<'a, S> {
    guest: &'a mut Guest,
    feed: Option<Feed>,
    sink: S,
    /// Whether the program has ended, though not all that it left behind.
    ended: bool,
    /// Bytes of each stream that were passed on and not yet credited.
    owed_bytes: [usize; 2],
    closed: [bool; 2],
}

impl<S: FnMut(OutputStream, &[u8]) -> io::Result<()>> Run<'_, S> {
    fn run_to_end(&mut self, limit: Option<Duration>) -> Result<Exit> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        if let ControlFlow::Break(exit) = self.until(deadline)? {
            return Ok(exit);
        }
        self.guest.send(&ToGuest::Signal(SIGKILL))?;
        let limit = limit.unwrap_or_default();
        match self.until(Some(Instant::now() + KILL_LIMIT))? {
            ControlFlow::Break(_) => Err(Error::TimedOut(limit)),
            ControlFlow::Continue(()) => Err(Error::Died {
                why: format!("a program did not end when it was killed at its time limit of {} s", limit.as_secs_f64()),
                log: self.guest.log.last_lines(20),
            }),
        }
    }

    /// Lets the run go on until the program ends or the deadline passes.
    fn until(&mut self, deadline: Option<Instant>) -> Result<ControlFlow<Exit>> {
        loop {
            let Some(event) = self.guest.next_event(deadline) else {
                return Ok(ControlFlow::Continue(()));
            };
            match event {
                Event::Message(message) => {
                    if let Some(exit) = self.take(message)? {
                        return Ok(ControlFlow::Break(exit));
                    }
                }
                Event::LineDown(why) => return Err(self.guest.ending(why)),
                // The program cannot get it any more, and what it left behind may never end.
                Event::Interrupt(Interrupt::Signal(number)) if self.ended => return Err(Error::Interrupted(number)),
                Event::Interrupt(Interrupt::Signal(number)) => self.guest.send(&ToGuest::Signal(number))?,
                Event::Interrupt(Interrupt::WindowSize(rows, columns)) => {
                    self.guest.send(&ToGuest::WindowSize { rows, columns })?;
                }
                Event::Interrupt(Interrupt::Abandon(number)) => return Err(Error::Interrupted(number)),
                Event::Input(run, bytes) if run == self.guest.runs => {
                    let message = if bytes.is_empty() { ToGuest::StdinEof } else { ToGuest::Stdin(bytes) };
                    self.guest.send(&message)?;
                }
                // Read for an earlier program that had ended by then.
                Event::Input(..) => {}
            }
        }
    }

    fn take(&mut self, message: ToHost) -> Result<Option<Exit>> {
        match message {
            ToHost::Ready { .. } => {}
            ToHost::Received(count) => self.guest.received(count)?,
            ToHost::Output(stream, bytes) => self.pass_on(stream, &bytes)?,
            ToHost::StdinCredit(count) => {
                if let Some(feed) = &self.feed {
                    feed.refund(count as usize);
                }
            }
            ToHost::StdinClosed => {
                if let Some(feed) = &self.feed {
                    feed.stop();
                }
            }
            ToHost::Ended => self.ended = true,
            ToHost::Exited(exit) => return Ok(Some(exit)),
            ToHost::Statistics(files) => self.guest.statistics = Some(Statistics::of(&files)),
            ToHost::StartError(StartError::Errno { doing, errno }) => return Err(Error::Spawn { doing, errno }),
            ToHost::StartError(StartError::NoReclaim) => return Err(Error::NoReclaim),
            ToHost::StartError(StartError::BoundTooSmall { needed_us }) => {
                return Err(Error::BoundTooSmall(Duration::from_micros(needed_us)));
            }
        }
        Ok(None)
    }

    fn pass_on(&mut self, stream: OutputStream, bytes: &[u8]) -> Result<()> {
        let index = match stream {
            OutputStream::Stdout => 0,
            OutputStream::Stderr => 1,
        };
        if self.closed[index] {
            return Ok(());
        }
        if (self.sink)(stream, bytes).is_err() {
            self.closed[index] = true;
            return self.guest.send(&ToGuest::CloseOutput(stream));
        }
        self.owed_bytes[index] += bytes.len();
        if self.owed_bytes[index] >= CREDIT_PORTION_BYTES {
            let count = std::mem::take(&mut self.owed_bytes[index]);
            self.guest.send(&ToGuest::Credit(stream, count as u32))?;
        }
        Ok(())
    }
}

/// Reads a program's input in a thread of its own, as far as the guest has room.
struct Feed {
    state: Arc<(Mutex<FeedState>, Condvar)>,
}

struct FeedState {
    window: Window,
    stopped: bool,
}

impl Feed {
    /// Reads at most `most` bytes for a message.
    fn start(mut reader: Box<dyn Read + Send>, most: usize, run: u64, events: Sender<Event>) -> Self {
        let state = Arc::new((Mutex::new(FeedState { window: Window::full(), stopped: false }), Condvar::new()));
        let feed = Self { state: state.clone() };
        std::thread::spawn(move || {
            let mut bytes = vec![0; most];
            loop {
                let room = {
                    let (lock, changed) = &*state;
                    let state = lock.lock().unwrap_or_else(PoisonError::into_inner);
                    let state = changed
                        .wait_while(state, |state| !state.stopped && state.window.available_bytes() == 0)
                        .unwrap_or_else(PoisonError::into_inner);
                    if state.stopped {
                        return;
                    }
                    state.window.available_bytes().min(most)
                };
                let count = match reader.read(&mut bytes[..room]) {
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    // As for a shell's redirection, what cannot be read ends the input.
                    Err(_) => 0,
                };
                state.0.lock().unwrap_or_else(PoisonError::into_inner).window.spend(count);
                if events.send(Event::Input(run, bytes[..count].to_vec())).is_err() || count == 0 {
                    return;
                }
            }
        });
        feed
    }

    fn refund(&self, count: usize) {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner).window.refund(count);
        self.state.1.notify_one();
    }

    fn stop(&self) {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.state.1.notify_one();
    }
}
