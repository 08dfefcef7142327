//! Serial ports as terminals.
//!
//! The interrupt handler only puts bytes aside; one kernel task passes them through the line disciplines, because that may send
//! signals, which needs a task's context.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use frame::irq::IrqCx;
use refs::{SpinLock, StrongRc, WaitList, WeakRc};
use tasks::{Body, Next};

use super::{Line, Tty, TtyFile, job};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::{File, OpenFlags};

/// How many ports are looked for.
const PORTS: usize = 4;
/// What is put aside at most until the task comes to it.
const BACKLOG: usize = 4 << 20;

static TTYS: SpinLock<[Option<StrongRc<Tty>>; PORTS]> = SpinLock::new([const { None }; PORTS]);
static RECEIVED: [SpinLock<Vec<u8>>; PORTS] = [const { SpinLock::new(Vec::new()) }; PORTS];
/// Where the task waits: for input, and for hang-ups to be carried out.
static WORK: WaitList = WaitList::new();

/// Finds the ports and starts the task. Called once, before the first process.
pub fn start() {
    const HANDLERS: [fn(&IrqCx, &[u8]); PORTS] = [received::<0>, received::<1>, received::<2>, received::<3>];
    for (number, handler) in HANDLERS.into_iter().enumerate() {
        if let Some(port) = frame::serial::port(number) {
            TTYS.with(|ttys| ttys[number] = Some(Tty::new(Line::Serial(number as u8))));
            port.on_input(handler);
        }
    }
    tasks::spawn(&crate::sched::SCHEDULER, Box::new(Input), |_| ());
}

fn received<const PORT: usize>(_irq: &IrqCx, bytes: &[u8]) {
    RECEIVED[PORT].with(|waiting| {
        let room = BACKLOG.saturating_sub(waiting.len());
        waiting.extend_from_slice(&bytes[..bytes.len().min(room)]);
    });
    WORK.wake_all();
}

/// Has the task look for work.
pub(super) fn wake_task() {
    WORK.wake_all();
}

/// The task.
struct Input;

impl Body for Input {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        loop {
            let waker = tasks::prepare(cx);
            WORK.register(waker, cx);
            if work(cx) {
                tasks::finish_wait(cx);
                if tasks::must_yield(cx) {
                    return Next::Again;
                }
            } else {
                tasks::park_async(cx);
            }
        }
    }
}

/// Does what there is to do; whether there was anything.
fn work(cx: &Cx) -> bool {
    let mut was_busy = job::hang_up_now(cx);
    for (port, received) in RECEIVED.iter().enumerate() {
        let bytes = core::mem::take(&mut *received.lock(cx));
        if bytes.is_empty() {
            continue;
        }
        was_busy = true;
        if let Some(tty) = tty(port, cx).and_then(|tty| tty.upgrade(cx).ok()) {
            tty.receive(&bytes, cx);
        }
    }
    was_busy
}

/// The terminal of a serial port.
pub fn tty(port: usize, cx: &Cx) -> Option<WeakRc<Tty>> {
    TTYS.lock(cx).get(port)?.as_ref().map(StrongRc::downgrade)
}

/// Opens the terminal of a serial port.
///
/// # Errors
/// ENXIO: the machine does not have it. EBUSY: somebody wants it alone.
pub fn open_serial(port: usize, flags: OpenFlags, me: &Current, cx: &Cx) -> Result<Box<dyn File>> {
    let tty = tty(port, cx).ok_or(Errno::ENXIO)?;
    Ok(Box::new(TtyFile::open(tty, None, flags, me, cx)?))
}

/// Sends bytes.
pub(super) fn write(port: u8, bytes: &[u8]) {
    if let Some(port) = frame::serial::port(usize::from(port)) {
        port.write(bytes);
    }
}
