//! Serial ports as terminals.
//!
//! The interrupt handler only puts bytes aside; one kernel task passes them through the line disciplines, because that may send
//! signals, which needs a task's context. The other way, bytes go to the port at once; what it does not take at once waits in a queue, from which
//! the task goes on when the port says that it can.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
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
/// From so many bytes on that wait to be sent programs wait as well.
const UNSENT: usize = 4096;
/// And so many can there be, with echoes and what a step of a program adds. Beyond, echoes are lost.
const MOST_UNSENT: usize = 4 * UNSENT;

static TTYS: SpinLock<[Option<StrongRc<Tty>>; PORTS]> = SpinLock::new([const { None }; PORTS]);
static RECEIVED: [SpinLock<Vec<u8>>; PORTS] = [const { SpinLock::new(Vec::new()) }; PORTS];
static TO_SEND: [SpinLock<VecDeque<u8>>; PORTS] = [const { SpinLock::new(VecDeque::new()) }; PORTS];
/// Where the task waits: for input, and for hang-ups to be carried out.
static WORK: WaitList = WaitList::new();

/// Finds the ports and starts the task. Called once, before the first process.
pub fn start() {
    const HANDLERS: [fn(&IrqCx, &[u8]); PORTS] = [received::<0>, received::<1>, received::<2>, received::<3>];
    for (number, handler) in HANDLERS.into_iter().enumerate() {
        if let Some(port) = frame::serial::port(number) {
            TTYS.with(|ttys| ttys[number] = Some(Tty::new(Line::Serial(number as u8))));
            TO_SEND[number].with(|queue| queue.reserve_exact(MOST_UNSENT));
            port.on_ready(|_irq| wake_task());
            port.on_input(handler);
        }
    }
    tasks::spawn(&crate::sched::SCHEDULER, Box::new(Input), |_, _| ());
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
                return Next::Again;
            }
            tasks::park_async(cx);
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
    for port in 0..PORTS {
        if go_on_sending(port, cx)
            && let Some(tty) = tty(port, cx).and_then(|tty| tty.upgrade(cx).ok())
        {
            tty.output.wake_all();
            was_busy = true;
        }
    }
    was_busy
}

/// Sends what waits, as far as it goes; whether anything went.
fn go_on_sending(port: usize, cx: &Cx) -> bool {
    let mut queue = TO_SEND[port].lock(cx);
    if queue.is_empty() {
        return false;
    }
    let Some(device) = frame::serial::port(port) else { return false };
    let (first, second) = queue.as_slices();
    let mut sent = device.try_write(first);
    if sent == first.len() && !second.is_empty() {
        sent += device.try_write(second);
    }
    queue.drain(..sent);
    sent > 0
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

/// Sends bytes, now or behind those that wait. What is more than the queue takes is lost: only echoes come here without
/// [asking](has_room) first.
pub(super) fn send(port: u8, bytes: &[u8], cx: &Cx) {
    let port = usize::from(port);
    let (Some(device), Some(queue)) = (frame::serial::port(port), TO_SEND.get(port)) else { return };
    let mut queue = queue.lock(cx);
    let sent = if queue.is_empty() { device.try_write(bytes) } else { 0 };
    let room = MOST_UNSENT.saturating_sub(queue.len());
    queue.extend(bytes[sent..].iter().take(room));
}

/// Whether a program's output would be taken now.
pub(super) fn has_room(port: u8, cx: &Cx) -> bool {
    unsent(port, cx) < UNSENT
}

/// How many bytes wait to be sent.
pub(super) fn unsent(port: u8, cx: &Cx) -> usize {
    TO_SEND.get(usize::from(port)).map_or(0, |queue| queue.lock(cx).len())
}

/// Sends all that waits: the machine is about to stop.
pub fn send_the_rest(cx: &Cx) {
    for (number, queue) in TO_SEND.iter().enumerate() {
        let rest = core::mem::take(&mut *queue.lock(cx));
        if let (Some(device), false) = (frame::serial::port(number), rest.is_empty()) {
            let (first, second) = rest.as_slices();
            device.write(first);
            device.write(second);
        }
    }
}

/// Forgets what waits to be sent.
pub(super) fn forget_unsent(port: u8, cx: &Cx) {
    if let Some(queue) = TO_SEND.get(usize::from(port)) {
        queue.lock(cx).clear();
    }
}
