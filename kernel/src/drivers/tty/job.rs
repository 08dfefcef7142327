//! Job control: which session a terminal controls, which process group may use it, and the signals that follow. See setpgid(2), tty_ioctl(4),
//! credentials(7).
//!
//! The truth about who controls what is in the session ([`Session::terminal`] and [`Session::foreground`]). The terminal only remembers to
//! which session it was given; whether it still is, the session says.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use super::{Attention, Tty, pty, serial};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::fasync::Registration;
use crate::process::{self, FileOwner, Process, Recipient, Session};
use crate::signal::{self, Info, Signal};

/// Sessions whose terminal has gone where nobody could send signals, and the terminal's device number.
static GONE: SpinLock<Vec<(u32, u32)>> = SpinLock::new(Vec::new());

/// Held by who gives a terminal to a session or takes it away, from the look whose it is on: a terminal has one session, and a session one terminal.
static CONTROL: SpinLock<()> = SpinLock::new(());

/// What a program does with a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It reads: SIGTTIN in the background.
    Read,
    /// It changes settings, or writes where that is restricted: SIGTTOU in the background.
    Change,
}

impl Tty {
    /// The session that it controls.
    fn owner<'cx>(&self, cx: &'cx Cx) -> Option<TempRc<'cx, Session>> {
        let id = self.state.lock(cx).session;
        let session = process::session(id, cx)?;
        (session.terminal.load(Ordering::Relaxed) == self.encoded_device()).then_some(session)
    }

    fn foreground(&self, cx: &Cx) -> u32 {
        self.owner(cx).map_or(0, |session| session.foreground.load(Ordering::Relaxed))
    }

    /// Makes it the controlling terminal of a session, with that foreground group.
    fn control(&self, session: &Session, foreground: u32, cx: &Cx) {
        self.state.lock(cx).session = session.id;
        session.terminal.store(self.encoded_device(), Ordering::Relaxed);
        session.foreground.store(foreground, Ordering::Relaxed);
    }
}

/// The session of the caller, and its process.
fn caller<'cx>(me: &Current, cx: &'cx Cx) -> Result<(TempRc<'cx, Process>, TempRc<'cx, Session>)> {
    let process = me.process(cx)?;
    let session = process::session(process.session(), cx).ok_or(Errno::ENOTTY)?;
    Ok((process, session))
}

/// The controlling terminal of the caller.
pub fn controlling(me: &Current, cx: &Cx) -> Option<WeakRc<Tty>> {
    let (_, session) = caller(me, cx).ok()?;
    let device = session.terminal.load(Ordering::Relaxed);
    let minor = device & 0xff | device >> 12 & 0xf_ff00;
    match device >> 8 & 0xfff {
        4 => serial::tty((minor as usize).checked_sub(64)?, cx),
        136 => pty::tty(minor, cx),
        _ => None,
    }
}

fn is_controlling(tty: &Tty, session: &Session) -> bool {
    session.terminal.load(Ordering::Relaxed) == tty.encoded_device()
}

/// Makes it the caller's controlling terminal if the caller leads a session that has none, and it is no other's.
pub fn adopt(tty: &TempRc<'_, Tty>, me: &Current, cx: &Cx) {
    let Ok((process, session)) = caller(me, cx) else { return };
    let _control = CONTROL.lock(cx);
    if session.id == process.pid && session.terminal.load(Ordering::Relaxed) == 0 && tty.owner(cx).is_none() {
        tty.control(&session, process.group(), cx);
    }
}

/// Whether the caller may use the terminal now.
///
/// # Errors
/// RESTART_SYS: it is in the background, and its group was told by a signal. EIO: nobody would ever bring it back.
#[inline]
pub fn check(tty: &TempRc<'_, Tty>, what: Use, me: &Current, cx: &Cx) -> Result<()> {
    let (process, session) = caller(me, cx)?;
    let foreground = session.foreground.load(Ordering::Relaxed);
    let group = process.group();
    if group == foreground || foreground == 0 || !is_controlling(tty, &session) {
        return Ok(());
    }
    let signal = match what {
        Use::Read => Signal::TTIN,
        Use::Change => Signal::TTOU,
    };
    let is_deaf = me.thread(cx)?.signals.blocked().contains(signal) || process.action(signal, cx).ignores(signal);
    match what {
        Use::Change if is_deaf => Ok(()),
        Use::Read if is_deaf => Err(Errno::EIO),
        _ if process::is_orphaned(group, cx) => Err(Errno::EIO),
        _ => {
            signal::broadcast::send_to_group(group, Info::kernel(signal), cx);
            Err(Errno::RESTART_SYS)
        }
    }
}

/// Sends the foreground group the signal of a special character.
pub fn signal_foreground(tty: &Tty, attention: Attention, cx: &Cx) {
    let signal = match attention {
        Attention::Interrupt => Signal::INT,
        Attention::Quit => Signal::QUIT,
        Attention::Suspend => Signal::TSTP,
    };
    send(tty.foreground(cx), signal, cx);
}

/// Tells the foreground group that the window's size has changed.
pub fn tell_window_changed(tty: &Tty, cx: &Cx) {
    send(tty.foreground(cx), Signal::WINCH, cx);
}

fn send(group: u32, signal: Signal, cx: &Cx) {
    if group != 0 {
        signal::broadcast::send_to_group(group, Info::kernel(signal), cx);
    }
}

/// TIOCSCTTY.
///
/// # Errors
/// EPERM.
pub fn set_controlling(tty: &TempRc<'_, Tty>, steal: usize, me: &Current, cx: &Cx) -> Result<()> {
    let (process, session) = caller(me, cx)?;
    let leads = session.id == process.pid;
    if leads && is_controlling(tty, &session) {
        return Ok(());
    }
    let may_steal = steal == 1 && me.has(Capability::SysAdmin, cx);
    let _control = CONTROL.lock(cx);
    if !leads || session.terminal.load(Ordering::Relaxed) != 0 {
        return Err(Errno::EPERM);
    }
    if let Some(owner) = tty.owner(cx) {
        if !may_steal {
            return Err(Errno::EPERM);
        }
        owner.terminal.store(0, Ordering::Relaxed);
        owner.foreground.store(0, Ordering::Relaxed);
    }
    tty.control(&session, process.group(), cx);
    Ok(())
}

/// TIOCNOTTY. Only a session as a whole has a terminal here: for any but its leader nothing changes.
///
/// # Errors
/// ENOTTY: it is not the caller's.
pub fn give_up_controlling(tty: &TempRc<'_, Tty>, me: &Current, cx: &Cx) -> Result<()> {
    let (process, session) = caller(me, cx)?;
    if !is_controlling(tty, &session) {
        return Err(Errno::ENOTTY);
    }
    if session.id == process.pid {
        let control = CONTROL.lock(cx);
        session.terminal.store(0, Ordering::Relaxed);
        let foreground = session.foreground.swap(0, Ordering::Relaxed);
        drop(control);
        send(foreground, Signal::HUP, cx);
        send(foreground, Signal::CONT, cx);
    }
    Ok(())
}

/// TIOCGSID.
///
/// # Errors
/// ENOTTY: it is not the caller's, and the caller does not have its master.
pub fn session_of(tty: &TempRc<'_, Tty>, by_master: bool, me: &Current, cx: &Cx) -> Result<i32> {
    let (_, session) = caller(me, cx)?;
    if !by_master && !is_controlling(tty, &session) {
        return Err(Errno::ENOTTY);
    }
    tty.owner(cx).map(|owner| owner.id as i32).ok_or(Errno::ENOTTY)
}

/// TIOCGPGRP.
///
/// # Errors
/// ENOTTY: it is not the caller's, and the caller does not have its master.
pub fn foreground_of(tty: &TempRc<'_, Tty>, by_master: bool, me: &Current, cx: &Cx) -> Result<i32> {
    let (_, session) = caller(me, cx)?;
    if !by_master && !is_controlling(tty, &session) {
        return Err(Errno::ENOTTY);
    }
    Ok(tty.foreground(cx) as i32)
}

/// TIOCSPGRP.
///
/// # Errors
/// ENOTTY: it is not the caller's. EINVAL, ESRCH: no such group. EPERM: it is of another session.
pub fn set_foreground(tty: &TempRc<'_, Tty>, group: i32, me: &Current, cx: &Cx) -> Result<()> {
    let (_, session) = caller(me, cx)?;
    if !is_controlling(tty, &session) {
        return Err(Errno::ENOTTY);
    }
    let group = u32::try_from(group).map_err(|_| Errno::EINVAL)?;
    if process::group_session(group, cx).ok_or(Errno::ESRCH)? != session.id {
        return Err(Errno::EPERM);
    }
    session.foreground.store(group, Ordering::Relaxed);
    Ok(())
}

/// Who sets O_ASYNC on a terminal and named nobody gets its signals: the foreground group, or itself where there is none.
pub fn own_by_default(tty: &Tty, registration: &Registration<'_>, cx: &Cx) {
    let Some((open, me)) = registration.begins(cx).filter(|(open, _)| open.owner(cx).is_none()) else { return };
    let Ok(me) = Current::of(me) else { return };
    let (Ok(thread), Ok(process)) = (me.thread(cx), me.process(cx)) else { return };
    let recipient = match tty.foreground(cx) {
        0 => Recipient::Process(process.downgrade()),
        group => Recipient::Group(group),
    };
    let owner = FileOwner::new(recipient, &thread.credentials.lock(cx));
    open.set_owner(Some(StrongRc::new(owner).unsize(|owner| owner)), cx);
}

/// Hangs the terminal up: what has it open finds it dead, and its session is told.
pub fn hang_up(tty: &Tty, cx: &Cx) {
    let mut state = tty.state.lock(cx);
    state.hangups += 1;
    state.discipline.flush_input();
    drop(state);
    if let Some(owner) = tty.owner(cx) {
        end_session_of(&owner, cx);
    }
    tty.input.wake_all();
    tty.output.wake_all();
}

/// The terminal of a session is hung up: its leader is told, and the foreground group when the leader ends.
fn end_session_of(session: &Session, cx: &Cx) {
    {
        let _control = CONTROL.lock(cx);
        session.terminal.store(0, Ordering::Relaxed);
        session.hung_up.store(session.foreground.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
    if let Some(leader) = process::PROCESSES.get(session.id, cx) {
        for signal in [Signal::HUP, Signal::CONT] {
            // There is always room for standard signals.
            let _ = signal::send::send_to_process(&leader, Info::kernel(signal), cx);
        }
    }
}

/// vhangup(2).
///
/// # Errors
/// EPERM.
pub fn vhangup(me: &Current, cx: &Cx) -> Result<()> {
    me.require(Capability::SysTtyConfig, cx)?;
    if let Some(tty) = controlling(me, cx).and_then(|tty| tty.upgrade(cx).ok()) {
        hang_up(&tty, cx);
    }
    Ok(())
}

/// The terminal of a session has gone: the signals are sent by the terminals' task.
pub fn hang_up_later(session: u32, device: u32) {
    GONE.with(|gone| gone.push((session, device)));
    serial::wake_task();
}

/// Sends what [`hang_up_later`] left; whether there was anything.
pub fn hang_up_now(cx: &Cx) -> bool {
    let gone = core::mem::take(&mut *GONE.lock(cx));
    for &(session, device) in &gone {
        if let Some(session) = process::session(session, cx)
            && session.terminal.load(Ordering::Relaxed) == device
        {
            end_session_of(&session, cx);
        }
    }
    !gone.is_empty()
}
