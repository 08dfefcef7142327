//! Signals: from who sends them to what they do.
//!
//! ```text
//!   send: kill(2), a fault, a timer, a terminal, a child's end
//!      | ignored? coalesced?
//!      v
//!   Pending of the process or of one thread  -->  a thread that does not block it gets Work::SIGNAL and is woken
//!                                                    | on its way back to user mode
//!                                                    v
//!                          deliver_async: a handler's frame | stop and wait | the end of the process
//! ```
//!
//! What is to be done before a thread goes on in user mode is one word of flags, [`Work`], in the thread: the fast path looks at nothing else.
//!
//! All that sends takes any `&impl NoSuspend`, so an interrupt handler can send too. Locks are taken one at a time, never nested.

mod action;
mod deliver;
mod info;
mod pending;
mod send;
mod set;
mod thread;

pub use crate::arch::signal_frame::{StackT, return_from_handler_async};
pub use action::{Action, Actions};
pub use deliver::{Outcome, deliver_async, prepare_restart};
pub use info::{Info, SigInfo};
pub use pending::Pending;
pub use send::{
    discard, end_process, force, raise, raise_exception, raise_fault, send_to_group, send_to_process, send_to_thread,
};
pub use set::{DefaultAction, Signal, SignalSet};
pub use thread::{AltStack, ThreadSignals, Work};

use ::frame::Cx;

use crate::current::Current;
use crate::error::Errno;
use crate::step::Interruption;

/// Whether something is to be done before the thread goes on in user mode: a signal to deliver, a stop, the end.
#[inline(always)]
pub fn is_pending(me: &Current, cx: &Cx) -> bool {
    match me.thread(cx) {
        Ok(thread) => !thread.signals.work().is_empty(),
        Err(_) => true,
    }
}

/// The error with which a wait ends now because of a signal, if it must.
pub fn interrupted(me: &Current, interruption: Interruption, cx: &Cx) -> Option<Errno> {
    let Ok(thread) = me.thread(cx) else { return Some(Errno::EINTR) };
    let work = thread.signals.work();
    match interruption {
        Interruption::Never => None,
        Interruption::KillOnly => work.contains(Work::EXIT).then_some(Errno::EINTR),
        Interruption::Signals => work.intersects(Work::EXIT | Work::STOP | Work::SIGNAL).then_some(Errno::RESTART_SYS),
    }
}

/// Blocks `mask` instead of what is blocked, until this call has ended: then what was blocked before is blocked again, after the
/// delivery of the signal that ended the call, if one did. For sigsuspend(2), ppoll(2) and their like.
pub fn set_temporary_mask(me: &Current, mask: SignalSet, cx: &Cx) {
    if let (Ok(thread), Ok(process)) = (me.thread(cx), me.process(cx)) {
        thread.signals.set_temporary_mask(mask);
        thread.signals.look_again(&process.pending);
    }
}

/// Blocks `mask` and nothing else from now on.
pub fn set_mask(me: &Current, mask: SignalSet, cx: &Cx) {
    if let (Ok(thread), Ok(process)) = (me.thread(cx), me.process(cx)) {
        thread.signals.set_blocked(mask);
        thread.signals.look_again(&process.pending);
    }
}
