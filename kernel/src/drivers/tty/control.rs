//! ioctl(2) of terminals: see ioctl_tty(2).

use frame::Cx;
use linux_raw_sys::general::{TCIFLUSH, TCIOFF, TCIOFLUSH, TCION, TCOFLUSH, TCOOFF, TCOON, VSTART, VSTOP};
use linux_raw_sys::ioctl;
use refs::TempRc;
use zerocopy::{Immutable, IntoBytes};

use super::job::{self, Use};
use super::termios::{OldTermios, SHORT_SIZE, Termios, WindowSize};
use super::{Line, Tty, serial};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::Errno;
use crate::step::{Step, Stop};
use crate::user_memory::Argument;

/// DTR, RTS, carrier and data set ready: the lines of a port that is connected.
const MODEM_LINES: i32 = 0x002 | 0x004 | 0x040 | 0x100;

/// `struct serial_struct`, as far as it means anything for an emulated port: type and number.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct SerialStruct {
    kind: i32,
    line: i32,
    port: u32,
    irq: i32,
    flags: i32,
    fifo_size: i32,
    rest: [u64; 6],
}

impl SerialStruct {
    fn of(line: u8) -> Self {
        const PORT_16550A: i32 = 4;
        let (port, irq) = [(0x3f8, 4), (0x2f8, 3), (0x3e8, 4), (0x2e8, 3)][usize::from(line) % 4];
        SerialStruct { kind: PORT_16550A, line: line.into(), port, irq, flags: 0, fifo_size: 16, rest: [0; 6] }
    }
}

/// Carries out a request for a terminal, from its own side or from its master's.
pub fn ioctl(
    tty: &TempRc<'_, Tty>,
    by_master: bool,
    request: u32,
    argument: Argument,
    me: &Current,
    cx: &Cx,
) -> Step<usize> {
    let memory = me.memory(cx)?;
    match request {
        ioctl::TCGETS => {
            let termios = tty.termios(cx);
            memory.write_slice(argument.output::<u8>().slice(SHORT_SIZE), termios.as_bytes())?;
        }
        ioctl::TCGETS2 => memory.write(argument.output::<Termios>(), &tty.termios(cx))?,
        ioctl::TCSETS | ioctl::TCSETSW | ioctl::TCSETSF => {
            let mut termios = tty.termios(cx);
            memory.read_into(argument.input::<u8>().slice(SHORT_SIZE), termios.as_mut_bytes())?;
            if request != ioctl::TCSETS {
                drained(tty, cx)?;
            }
            set_termios(tty, termios, request == ioctl::TCSETSF, me, cx)?;
        }
        ioctl::TCSETS2 | ioctl::TCSETSW2 | ioctl::TCSETSF2 => {
            let termios = memory.read(argument.input::<Termios>())?;
            if request != ioctl::TCSETS2 {
                drained(tty, cx)?;
            }
            set_termios(tty, termios, request == ioctl::TCSETSF2, me, cx)?;
        }
        ioctl::TCGETA => memory.write(argument.output::<OldTermios>(), &OldTermios::of(&tty.termios(cx)))?,
        ioctl::TCSETA | ioctl::TCSETAW | ioctl::TCSETAF => {
            let old = memory.read(argument.input::<OldTermios>())?;
            if request != ioctl::TCSETA {
                drained(tty, cx)?;
            }
            let termios = old.applied_to(tty.termios(cx));
            set_termios(tty, termios, request == ioctl::TCSETAF, me, cx)?;
        }
        ioctl::TIOCGWINSZ => {
            let window = tty.state.lock(cx).window;
            memory.write(argument.output::<WindowSize>(), &window)?;
        }
        ioctl::TIOCSWINSZ => set_window(tty, memory.read(argument.input::<WindowSize>())?, cx),
        ioctl::TCSBRK | ioctl::TCSBRKP => {
            job::check(tty, Use::Change, me, cx)?;
            drained(tty, cx)?;
        }
        ioctl::TCFLSH => {
            job::check(tty, Use::Change, me, cx)?;
            flush(tty, argument.value() as u32, cx)?;
        }
        ioctl::TCXONC => {
            job::check(tty, Use::Change, me, cx)?;
            set_flow(tty, argument.value() as u32, cx)?;
        }
        ioctl::FIONREAD => {
            let unread = tty.state.lock(cx).discipline.unread() as i32;
            memory.write(argument.output::<i32>(), &unread)?;
        }
        ioctl::TIOCOUTQ => {
            let unsent = tty.unsent(cx) as i32;
            memory.write(argument.output::<i32>(), &unsent)?;
        }
        ioctl::TIOCGETD => memory.write(argument.output::<i32>(), &0)?,
        ioctl::TIOCSETD => {
            if memory.read(argument.input::<i32>())? != 0 {
                return Err(Errno::EINVAL.into());
            }
        }
        ioctl::TIOCEXCL => tty.state.lock(cx).is_exclusive = true,
        ioctl::TIOCNXCL => tty.state.lock(cx).is_exclusive = false,
        ioctl::TIOCGEXCL => {
            let is_exclusive = i32::from(tty.state.lock(cx).is_exclusive);
            memory.write(argument.output::<i32>(), &is_exclusive)?;
        }
        ioctl::TIOCMGET if matches!(tty.line, Line::Serial(_)) => {
            memory.write(argument.output::<i32>(), &MODEM_LINES)?
        }
        ioctl::TIOCMSET | ioctl::TIOCMBIS | ioctl::TIOCMBIC if matches!(tty.line, Line::Serial(_)) => {}
        ioctl::TIOCGSERIAL => {
            let Line::Serial(port) = tty.line else { return Err(Errno::ENOTTY.into()) };
            memory.write(argument.output::<SerialStruct>(), &SerialStruct::of(port))?;
        }
        ioctl::TIOCGDEV => memory.write(argument.output::<u32>(), &tty.encoded_device())?,
        ioctl::TIOCSTI => {
            if !me.has(Capability::SysAdmin, cx) {
                return Err(Errno::EPERM.into());
            }
            tty.receive(&[memory.read(argument.input::<u8>())?], cx);
        }
        ioctl::TIOCVHANGUP => {
            if !me.has(Capability::SysAdmin, cx) {
                return Err(Errno::EPERM.into());
            }
            job::hang_up(tty, cx);
        }
        ioctl::TIOCSCTTY => job::set_controlling(tty, argument.value(), me, cx)?,
        ioctl::TIOCNOTTY => job::give_up_controlling(tty, me, cx)?,
        ioctl::TIOCGSID => {
            let session = job::session_of(tty, by_master, me, cx)?;
            memory.write(argument.output::<i32>(), &session)?;
        }
        ioctl::TIOCGPGRP => {
            let foreground = job::foreground_of(tty, by_master, me, cx)?;
            memory.write(argument.output::<i32>(), &foreground)?;
        }
        ioctl::TIOCSPGRP => {
            // A group that nobody would bring back has no say here.
            job::check(tty, Use::Change, me, cx)
                .map_err(|error| if error == Errno::EIO { Errno::ENOTTY } else { error })?;
            job::set_foreground(tty, memory.read(argument.input::<i32>())?, me, cx)?;
        }
        _ => return Err(Errno::ENOTTY.into()),
    }
    Ok(0)
}

/// Whether a serial port has sent all that was written to it; else the caller waits. A pseudo-terminal has nothing to send.
fn drained(tty: &Tty, cx: &Cx) -> Step<()> {
    match tty.line {
        Line::Serial(port) if serial::unsent(port, cx) > 0 => Err(Stop::Block),
        _ => Ok(()),
    }
}

fn set_termios(tty: &TempRc<'_, Tty>, termios: Termios, flushes: bool, me: &Current, cx: &Cx) -> Step<()> {
    job::check(tty, Use::Change, me, cx)?;
    let mut state = tty.state.lock(cx);
    if flushes {
        state.discipline.flush_input();
    }
    state.discipline.set_termios(termios);
    drop(state);
    // What is readable, and whether output is stopped, may have changed.
    tty.input.wake_all();
    tty.output.wake_all();
    Ok(())
}

fn set_window(tty: &TempRc<'_, Tty>, window: WindowSize, cx: &Cx) {
    let mut state = tty.state.lock(cx);
    let has_changed = state.window != window;
    state.window = window;
    drop(state);
    if has_changed {
        job::tell_window_changed(tty, cx);
    }
}

fn flush(tty: &TempRc<'_, Tty>, queue: u32, cx: &Cx) -> Step<()> {
    if !matches!(queue, TCIFLUSH | TCOFLUSH | TCIOFLUSH) {
        return Err(Errno::EINVAL.into());
    }
    let mut state = tty.state.lock(cx);
    if queue != TCOFLUSH {
        state.discipline.flush_input();
    }
    if queue != TCIFLUSH {
        state.to_master.clear();
        if let Line::Serial(port) = tty.line {
            serial::forget_unsent(port, cx);
        }
    }
    drop(state);
    tty.output.wake_all();
    tty.master.wake_all();
    Ok(())
}

fn set_flow(tty: &TempRc<'_, Tty>, action: u32, cx: &Cx) -> Step<()> {
    match action {
        TCOOFF => tty.state.lock(cx).discipline.set_stopped(true),
        TCOON => {
            tty.state.lock(cx).discipline.set_stopped(false);
            tty.output.wake_all();
        }
        TCIOFF => tty.send(&[tty.termios(cx).character(VSTOP)], cx),
        TCION => tty.send(&[tty.termios(cx).character(VSTART)], cx),
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_the_size_that_programs_expect() {
        assert_eq!(size_of::<Termios>(), 44);
        assert_eq!(size_of::<WindowSize>(), 8);
    }
}
