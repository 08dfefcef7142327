//! Terminals.
//!
//! ```text
//!   serial port --interrupt--> serial::RECEIVED --input task--> Discipline --> TtyFile::read
//!   serial port <--- serial::UNSENT <-- echo, TtyFile::write ---- Discipline
//!   pty master  --MasterFile::write-------------------------> Discipline --> TtyFile::read (the slave)
//!   pty master  <--MasterFile::read-- to_master <-- echo, TtyFile::write
//! ```
//!
//! A [`Tty`] is what programs see: settings, window size, session and foreground group. The serial ones live for ever in [`serial`]'s table; that of
//! a pseudo-terminal belongs to its master's description, and its slaves find out by its name that it is gone.
//!
//! A write of many bytes goes through in pieces; nobody else's comes between, since the writer has the [`Turn`] as long as its call lasts.
//!
//! Locks: a terminal's state is locked alone, or around its port's queue: what goes through a discipline leaves it in that order. Wakers are woken and signals sent
//! after it is unlocked.

mod control;
mod discipline;
mod file;
mod job;
pub mod pty;
mod serial;
mod termios;
mod turn;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use frame::Cx;
use refs::{SpinLock, StrongRc, WaitList, WeakRc};

use discipline::Attention;
pub use file::{TtyFile, open_controlling};
pub use job::vhangup;
pub use pty::{MasterFile, numbers, open_master, open_slave, owner};
pub use serial::{open_serial, send_the_rest, start};
pub use termios::WindowSize;

use crate::fs::Events;
use crate::fs::fasync::{Band, FasyncList};
use crate::time::Timer;
use discipline::{Available, Discipline};
use termios::Termios;
use turn::Turn;

/// What a terminal is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The serial port of that number.
    Serial(u8),
    /// The master of the pseudo-terminal of that number.
    Master(u32),
}

/// A terminal.
pub struct Tty {
    /// What it is connected to.
    pub line: Line,
    state: SpinLock<TerminalState>,
    /// Who waits for input, or for the end of it.
    input: WaitList,
    /// Who waits for room for output.
    output: WaitList,
    /// Who waits at the master for output of the slave.
    master: WaitList,
    /// Which of its descriptions ask for signals.
    fasync: FasyncList,
    /// And which of the master's.
    master_fasync: FasyncList,
}

/// Lives as long as the slave of a pseudo-terminal is open.
pub struct Slaves;

struct TerminalState {
    discipline: Discipline,
    window: WindowSize,
    /// The session that it was given to last; 0: none.
    session: u32,
    /// How often it was hung up: descriptions from before the last time are dead.
    hangups: u32,
    /// No more opens (TIOCEXCL).
    is_exclusive: bool,
    /// The slave of a pseudo-terminal cannot be opened yet (TIOCSPTLCK).
    is_locked: bool,
    /// When the read that waits with a time limit (VTIME) began; 0: none does.
    waiting_since: u64,
    /// Wakes who waits for input when that time is over; none before somebody has waited so.
    read_limit: Option<StrongRc<Timer>>,
    /// When the last byte came.
    last_input: u64,
    /// What the master of a pseudo-terminal has not read yet.
    to_master: VecDeque<u8>,
    slaves: Option<WeakRc<Slaves>>,
    /// Who writes to the terminal.
    writing: Turn,
    /// Who writes to the master of a pseudo-terminal.
    typing: Turn,
    /// Kept to save allocations.
    scratch: Vec<u8>,
}

/// What the master of a pseudo-terminal may leave unread before the slave's writers wait.
const MASTER_BACKLOG: usize = 1 << 16;

impl Tty {
    fn new(line: Line) -> StrongRc<Tty> {
        StrongRc::new(Tty {
            line,
            state: SpinLock::new(TerminalState {
                discipline: Discipline::default(),
                window: WindowSize::default(),
                session: 0,
                hangups: 0,
                is_exclusive: false,
                is_locked: matches!(line, Line::Master(_)),
                waiting_since: 0,
                read_limit: None,
                last_input: 0,
                to_master: VecDeque::new(),
                slaves: None,
                writing: Turn::default(),
                typing: Turn::default(),
                scratch: Vec::new(),
            }),
            input: WaitList::new(),
            output: WaitList::new(),
            master: WaitList::new(),
            fasync: FasyncList::default(),
            master_fasync: FasyncList::default(),
        })
    }

    /// Its device number: major and minor.
    pub fn device(&self) -> (u32, u32) {
        match self.line {
            Line::Serial(port) => (4, 64 + u32::from(port)),
            Line::Master(number) => (136, number),
        }
    }

    /// Its device number as `/proc/PID/stat` shows it.
    pub fn encoded_device(&self) -> u32 {
        let (major, minor) = self.device();
        (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
    }

    /// Takes in what came from the other end of the line.
    fn receive(&self, bytes: &[u8], cx: &Cx) {
        let mut state = self.state.lock(cx);
        let mut echo = core::mem::take(&mut state.scratch);
        echo.clear();
        let mut attention = None;
        let was_stopped = state.discipline.is_stopped();
        state.discipline.receive(bytes, &mut echo, |signal| attention = Some(signal));
        state.last_input = frame::time::now();
        let is_readable = state.discipline.available() != Available::Nothing;
        let goes_on = was_stopped && !state.discipline.is_stopped();
        self.put(&mut state, &echo, cx);
        let has_echoed = !echo.is_empty();
        state.scratch = echo;
        drop(state);
        if has_echoed {
            self.wake_other_end(cx);
        }
        if let Some(signal) = attention {
            job::signal_foreground(self, signal, cx);
        }
        if is_readable {
            self.input.wake();
            self.fasync.signal(Events::IN, Band::In, cx);
        }
        if goes_on {
            self.output.wake_all();
        }
    }

    /// Sends bytes to the other end of the line as they are.
    fn send(&self, bytes: &[u8], cx: &Cx) {
        self.put(&mut self.state.lock(cx), bytes, cx);
        self.wake_other_end(cx);
    }

    /// Gives bytes to the line. [`wake_other_end`](Self::wake_other_end) must follow.
    fn put(&self, state: &mut TerminalState, bytes: &[u8], cx: &Cx) {
        match self.line {
            Line::Serial(_) if bytes.is_empty() => {}
            Line::Serial(port) => serial::send(port, bytes, cx),
            Line::Master(_) => {
                // Only echoes come here when there is much already: they are lost then, as they are on Linux.
                let mut room = (MASTER_BACKLOG * 2).saturating_sub(state.to_master.len());
                // As is what there is no memory for.
                if state.to_master.try_reserve(bytes.len().min(room)).is_err() {
                    room = state.to_master.capacity() - state.to_master.len();
                }
                state.to_master.extend(&bytes[..bytes.len().min(room)]);
            }
        }
    }

    /// There is something for the master of a pseudo-terminal.
    fn wake_other_end(&self, cx: &Cx) {
        if let Line::Master(_) = self.line {
            self.master.wake();
            self.master_fasync.signal(Events::IN, Band::In, cx);
        }
    }

    /// Whether a program's output would be taken now.
    fn takes_output(&self, state: &TerminalState, cx: &Cx) -> bool {
        !state.discipline.is_stopped()
            && match self.line {
                Line::Serial(port) => serial::has_room(port, cx),
                Line::Master(_) => state.to_master.len() < MASTER_BACKLOG,
            }
    }

    /// How much was written that the other end has not taken yet.
    fn unsent(&self, cx: &Cx) -> usize {
        match self.line {
            Line::Serial(port) => serial::unsent(port, cx),
            Line::Master(_) => self.state.lock(cx).to_master.len(),
        }
    }

    /// The settings, for what wants to know how to behave.
    fn termios(&self, cx: &Cx) -> Termios {
        *self.state.lock(cx).discipline.termios()
    }
}

impl Drop for Tty {
    /// The master of a pseudo-terminal was closed: its session loses its terminal.
    fn drop(&mut self) {
        if let Line::Master(number) = self.line {
            pty::forget(number);
        }
        let session = self.state.get_mut().session;
        if session != 0 {
            job::hang_up_later(session, self.encoded_device());
        }
    }
}
