//! An open terminal.

use alloc::boxed::Box;
use core::ops::ControlFlow;

use frame::Cx;
use frame::irq::IrqCx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::general::{TOSTOP, VMIN, VTIME};
use refs::{StrongRc, Waker, WeakRc};

use super::job::{self, Use};
use super::turn::Presence;
use super::{Available, Slaves, TerminalState, Tty, control};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::fasync::Registration;
use crate::fs::{Events, File, FileEnd, OpenFlags, VfsCaller};
use crate::reclaim::Held;
use crate::step::{Step, Stop};
use crate::time::{Setting, Timeline, Timer, TimerClock};
use crate::user_memory::Argument;

/// How much a program writes in one step: it may become eight times as much on its way out (tabs).
const CHUNK: usize = 256;

/// An open terminal: a serial one, or the slave of a pseudo-terminal.
pub struct TtyFile {
    tty: WeakRc<Tty>,
    /// How often the terminal had been hung up when it was opened.
    hangups: u32,
    /// Tells the master of a pseudo-terminal that its slave is open.
    _slaves: Option<StrongRc<Slaves>>,
    /// What is written by it in pieces is over with it.
    presence: StrongRc<Presence>,
}

/// Opens the controlling terminal of the caller: `/dev/tty`.
///
/// # Errors
/// ENXIO: it has none.
pub fn open_controlling(_flags: OpenFlags, me: &Current, cx: &Cx) -> Result<Box<dyn File>> {
    let tty = job::controlling(me, cx).ok_or(Errno::ENXIO)?;
    let hangups = tty.upgrade(cx).map_err(|_| Errno::ENXIO)?.state.lock(cx).hangups;
    let slaves = super::pty::slaves_of(tty, cx);
    Ok(Box::new(TtyFile { tty, hangups, _slaves: slaves, presence: StrongRc::new(Presence) }))
}

impl TtyFile {
    pub(super) fn open(
        tty: WeakRc<Tty>,
        slaves: Option<StrongRc<Slaves>>,
        flags: OpenFlags,
        me: &Current,
        cx: &Cx,
    ) -> Result<TtyFile> {
        let object = tty.upgrade(cx).map_err(|_| Errno::EIO)?;
        let state = object.state.lock(cx);
        if state.is_exclusive && !me.has(Capability::SysAdmin, cx) {
            return Err(Errno::EBUSY);
        }
        let hangups = state.hangups;
        drop(state);
        if !flags.contains(OpenFlags::NO_CONTROLLING_TTY) {
            job::adopt(&object, me, cx);
        }
        Ok(TtyFile { tty, hangups, _slaves: slaves, presence: StrongRc::new(Presence) })
    }

    /// The terminal.
    pub fn tty(&self) -> WeakRc<Tty> {
        self.tty
    }

    fn is_hung_up(&self, state: &TerminalState) -> bool {
        state.hangups != self.hangups
    }
}

/// How long a read in raw mode waits, by VMIN and VTIME: see termios(3).
enum Waits {
    /// Not at all: what is there is enough.
    Enough,
    /// Until this time at most, if there is a limit.
    Until(Option<u64>),
}

impl TerminalState {
    /// What a read of at most `wanted` bytes is to do in raw mode.
    fn raw_wait(&mut self, wanted: usize) -> Waits {
        const TENTH_NANOS: u64 = 100_000_000;
        let termios = self.discipline.termios();
        let (least, limit) = (usize::from(termios.character(VMIN)), u64::from(termios.character(VTIME)) * TENTH_NANOS);
        let there = self.discipline.unread();
        if there >= least.clamp(1, wanted.max(1)) || (least == 0 && limit == 0) {
            return Waits::Enough;
        }
        if limit == 0 {
            return Waits::Until(None);
        }
        let now = frame::time::now();
        let until = if least > 0 {
            // The clock between bytes starts with the first one.
            if there == 0 {
                return Waits::Until(None);
            }
            self.last_input + limit
        } else {
            // A read that was given up leaves its start behind; one that is that old cannot be this one.
            if self.waiting_since == 0 || now > self.waiting_since + 2 * limit {
                self.waiting_since = now;
            }
            self.waiting_since + limit
        };
        if now >= until { Waits::Enough } else { Waits::Until(Some(until)) }
    }
}

impl File for TtyFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::Terminal
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        // A terminal that was hung up is at its end.
        let Ok(tty) = self.tty.upgrade(cx) else { return Ok(0) };
        job::check(&tty, Use::Read, Current::of(me)?, cx)?;
        let mut state = tty.state.lock(cx);
        if self.is_hung_up(&state) || to.remaining() == 0 {
            return Ok(0);
        }
        if !state.discipline.is_canonical()
            && let Waits::Until(_) = state.raw_wait(to.remaining())
        {
            return Err(Stop::Block);
        }
        let count = match state.discipline.available() {
            Available::Nothing if state.discipline.is_canonical() => return Err(Stop::Block),
            Available::Nothing | Available::End => 0,
            Available::Bytes(count) => {
                let (first, second) = state.discipline.peek(count.min(to.remaining()));
                to.write(first)? + to.write(second)?
            }
        };
        state.discipline.take(count);
        state.waiting_since = 0;
        drop(state);
        if matches!(tty.line, super::Line::Master(_)) {
            tty.master.wake_all();
        }
        Ok(count)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let tty = self.tty.upgrade(cx).map_err(|_| Errno::EIO)?;
        if tty.termios(cx).has_local(TOSTOP) {
            job::check(&tty, Use::Change, Current::of(me)?, cx)?;
        }
        let mut chunk = [0; CHUNK];
        let count = from.read(&mut chunk)?;
        let mut state = tty.state.lock(cx);
        if self.is_hung_up(&state) {
            return Err(Errno::EIO.into());
        }
        if count == 0 {
            return Ok(0);
        }
        state.writing.check(Current::of(me)?.thread)?;
        if !tty.takes_output(&state, cx) || !state.has_memory_for_output(count) {
            return Err(Stop::Block);
        }
        let mut out = core::mem::take(&mut state.scratch);
        out.clear();
        state.discipline.transmit(&chunk[..count], &mut out);
        tty.put(&mut state, &out, cx);
        state.scratch = out;
        drop(state);
        tty.wake_other_end(cx);
        Ok(count)
    }

    fn writes_in_turn(&self) -> bool {
        true
    }

    fn begin_turn(&self, me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        let tty = self.tty.upgrade(cx).map_err(|_| Errno::EIO)?;
        tty.state.lock(cx).writing.begin(Current::of(me)?.thread, Some(self.presence.downgrade()))
    }

    fn end_turn(&self, me: &dyn VfsCaller, cx: &Cx) {
        if let (Ok(tty), Ok(me)) = (self.tty.upgrade(cx), Current::of(me))
            && tty.state.lock(cx).writing.end(me.thread)
        {
            tty.output.wake_all();
        }
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        const GONE: Events = Events::IN
            .union(Events::OUT)
            .union(Events::READ_NORMAL)
            .union(Events::WRITE_NORMAL)
            .union(Events::ERROR)
            .union(Events::HANG_UP);
        let Ok(tty) = self.tty.upgrade(cx) else { return GONE };
        if let Some(waker) = waker {
            self.tty.watch(waker, cx);
            // Hang-ups wake these as well.
            tty.input.register(waker, cx);
            if interest.contains(Events::OUT) {
                tty.output.register(waker, cx);
                let writer = tty.state.lock(cx).writing.opened();
                if let Some(writer) = writer.filter(|writer| !writer.is_gone()) {
                    writer.watch(waker, cx);
                }
            }
        }
        let mut state = tty.state.lock(cx);
        if self.is_hung_up(&state) {
            return GONE;
        }
        let mut events = Events::empty();
        if state.discipline.available() != Available::Nothing {
            events |= Events::IN | Events::READ_NORMAL;
        }
        if tty.takes_output(&state, cx) {
            events |= Events::OUT | Events::WRITE_NORMAL;
        }
        if waker.is_some()
            && interest.contains(Events::IN)
            && !state.discipline.is_canonical()
            && let Waits::Until(Some(until)) = state.raw_wait(usize::MAX)
        {
            let timer = state.read_limit.get_or_insert_with(|| {
                let name = self.tty;
                let wake = move |_, cx: &IrqCx| {
                    if let Ok(tty) = name.upgrade(cx) {
                        tty.input.wake_all();
                    }
                    ControlFlow::Continue(())
                };
                Timer::new(TimerClock::Clock(Timeline::Boot), Box::new(wake))
            });
            timer.get(cx).set(Setting { next: Some(until), interval: 0 }, cx);
        }
        events & (interest | Events::ERROR | Events::HANG_UP)
    }

    fn fasync(&self, registration: &Registration<'_>, cx: &Cx) -> bool {
        let Ok(tty) = self.tty.upgrade(cx) else { return false };
        job::own_by_default(&tty, registration, cx);
        registration.apply(&tty.fasync, Events::IN, cx);
        true
    }

    fn ioctl(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let tty = self.tty.upgrade(cx).map_err(|_| Errno::EIO)?;
        if self.is_hung_up(&tty.state.lock(cx)) {
            return Err(Errno::EIO.into());
        }
        control::ioctl(&tty, false, request, argument, Current::of(me)?, cx)
    }
}
