//! Signals.

use frame::Cx;

use crate::current::Current;
use crate::error::Errno;
use crate::memory::BadAccess;
use crate::step::Interruption;

/// What became of the thread when its signals were delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on in user mode.
    Goes,
    /// It has exited; nothing of it is left but its task.
    Ended,
}

/// Whether something is to be done before the thread goes on in user mode: a signal to deliver, a stop, the end.
#[inline(always)]
pub fn is_pending(_me: &Current, _cx: &Cx) -> bool {
    false
}

/// Delivers what is pending: handler frames, stops (waits inside), default actions; and restarts an interrupted call.
pub fn deliver_async(_cx: &mut Cx, _me: &mut Current) -> Outcome {
    Outcome::Goes
}

/// The error with which a wait ends now because of a signal, if it must.
pub fn interrupted(_me: &Current, _interruption: Interruption, _cx: &Cx) -> Option<Errno> {
    None
}

/// A system call ended with a restart error: remembers what to do once it is known whether a handler runs.
pub fn prepare_restart(_me: &mut Current, _error: Errno, _number: usize) {}

/// Sends the thread the signal for a bad access of its own.
pub fn raise_fault(_me: &mut Current, _bad: BadAccess, _address: usize, _cx: &Cx) {}

/// Sends the thread the signal for a processor exception of its own.
pub fn raise_exception(_me: &mut Current, _vector: u8, _code: usize, _cx: &Cx) {}

/// Sends the calling thread a signal of its own doing, such as SIGPIPE.
pub fn raise(_me: &Current, _signal: u32, _cx: &Cx) {}
