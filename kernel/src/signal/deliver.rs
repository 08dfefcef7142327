//! Delivery: what a thread does about its signals on the way back to user mode.

use frame::Cx;
use linux_raw_sys::general as abi;

use super::send::{self, end_process};
use super::{Action, DefaultAction, Info, Signal, SignalSet, Work};
use crate::arch;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::{self, Process, Thread, trace};
use crate::sched;
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
pub fn is_pending(me: &Current, cx: &Cx) -> bool {
    match me.thread(cx) {
        Ok(thread) => !thread.signals.work().is_empty(),
        Err(_) => true,
    }
}

/// The error with which a wait ends now because of a signal, if it must.
pub fn interrupted(me: &Current, interruption: Interruption, cx: &Cx) -> Option<Errno> {
    let Ok(thread) = me.thread(cx) else { return Some(Errno::EINTR) };
    interrupted_thread(&thread, me, interruption, cx)
}

/// As [`interrupted`], by who has looked the calling thread up.
#[inline(always)]
pub fn interrupted_thread(thread: &Thread, me: &Current, interruption: Interruption, cx: &Cx) -> Option<Errno> {
    let work = thread.signals.work();
    match interruption {
        Interruption::Never => None,
        Interruption::EndOfMemory => (work.contains(Work::EXIT) && is_end_of_memory(me, cx)).then_some(Errno::EINTR),
        Interruption::KillOnly => work.contains(Work::EXIT).then_some(Errno::EINTR),
        Interruption::Signals => work
            .intersects(Work::EXIT | Work::STOP | Work::SIGNAL | Work::FREEZE | Work::TRAP)
            .then_some(Errno::RESTART_SYS),
    }
}

/// Whether the process ends, and its memory with it.
fn is_end_of_memory(me: &Current, cx: &Cx) -> bool {
    me.process(cx).is_ok_and(|process| process.is_exiting())
        && me.space(cx).is_ok_and(|space| !space.is_lent() || space.owners() == 1)
}

/// Blocks `mask` instead of what is blocked, until this call has ended: then what was blocked before is blocked again, after the
/// delivery of the signal that ended the call, if one did. For sigsuspend(2), ppoll(2) and their like.
pub fn set_temporary_mask(me: &Current, mask: SignalSet, cx: &Cx) {
    if let (Ok(thread), Ok(process)) = (me.thread(cx), me.process(cx)) {
        thread.signals.save_mask();
        change_mask(&process, &thread, mask, cx);
    }
}

/// Blocks `mask` and nothing else from now on.
pub fn set_mask(me: &Current, mask: SignalSet, cx: &Cx) {
    if let (Ok(thread), Ok(process)) = (me.thread(cx), me.process(cx)) {
        change_mask(&process, &thread, mask, cx);
    }
}

/// The calling thread blocks `mask` and nothing else. What it was to take and blocks now others may take.
#[inline(always)]
pub fn change_mask(process: &Process, thread: &Thread, mask: SignalSet, cx: &Cx) {
    let newly_blocked = thread.signals.set_blocked(mask);
    thread.signals.look_again(&process.pending);
    let left = process.pending.set().intersection(newly_blocked);
    if !left.is_empty() {
        send::offer_all(process, left, cx);
    }
}

/// The calling thread has waited for these, and has taken one or none: the others are for others.
pub fn end_waiting_for(me: &Current, set: SignalSet, cx: &Cx) -> Result<()> {
    let (thread, process) = (me.thread(cx)?, me.process(cx)?);
    thread.signals.set_waited(SignalSet::EMPTY);
    send::offer_all(&process, process.pending.set().intersection(set), cx);
    Ok(())
}

/// A system call ended with a restart error: remembers what to do once it is known whether a handler runs.
#[cold]
pub fn prepare_restart(me: &mut Current, error: Errno, number: usize, cx: &Cx) {
    me.interrupted_call = Some((error, number));
    if let Ok(thread) = me.thread(cx) {
        thread.signals.add_work(Work::RESTART);
    }
}

/// Delivers what is pending: handler frames, stops (waits inside), default actions; and restarts an interrupted call.
#[cold]
pub fn deliver_async(cx: &mut Cx, me: &mut Current) -> Outcome {
    loop {
        let Ok(work) = me.thread(cx).map(|thread| thread.signals.work()) else { return Outcome::Ended };
        if work.contains(Work::EXIT) {
            process::exit_thread_async(cx, me);
            return Outcome::Ended;
        }
        if work.contains(Work::BORN) {
            process::write_own_tid_async(cx, me);
            continue;
        }
        if work.contains(Work::RESTARTABLE) {
            if let Ok(thread) = me.thread(cx) {
                thread.signals.remove_work(Work::RESTARTABLE);
            }
            process::abort_sequence_async(cx, me);
            continue;
        }
        if work.contains(Work::MOVE) {
            if let Ok(thread) = me.thread(cx) {
                thread.signals.remove_work(Work::MOVE);
            }
            sched::leave_core(cx);
            continue;
        }
        if work.contains(Work::RESTORE_MASK) && me.interrupted_call.is_none() {
            restore_mask(me, cx);
            continue;
        }
        if work.contains(Work::TRAP) {
            trace::trap_async(cx, me);
            continue;
        }
        if work.contains(Work::STOP) {
            match is_traced(me, cx) {
                true => trace::stop_async(cx, me),
                false => process::wait_while_stopped_async(cx, me),
            }
            continue;
        }
        if work.contains(Work::FREEZE) {
            process::wait_while_frozen_async(cx, me);
            continue;
        }
        if work.contains(Work::SIGNAL) {
            if let (Ok(thread), Ok(process)) = (me.thread(cx), me.process(cx))
                && process.is_executing()
            {
                // Another thread executes a program, and this one is about to be told to exit. Others have exited already, and left what they shared with it unlocked, as the
                // kernel does for them (CLONE_CHILD_CLEARTID): a fault over that is not the new program's.
                thread.signals.add_work(Work::EXIT);
                continue;
            }
            if let Some((mut info, continued)) = take(me, cx) {
                if is_traced(me, cx) {
                    match trace::signal_async(cx, me, info) {
                        Some(left) => info = left,
                        None => continue,
                    }
                }
                deliver_one_async(cx, me, info, continued);
            }
            continue;
        }
        if work.contains(Work::PAY) {
            process::pay_async(cx, me);
            continue;
        }
        if work.contains(Work::THROTTLE) {
            process::wait_while_throttled_async(cx, me);
            continue;
        }
        break;
    }
    finish_restart(me, None);
    let temporary = match me.thread(cx) {
        Ok(thread) => thread.signals.remove_work(Work::RESTART).contains(Work::RESTORE_MASK),
        Err(_) => false,
    };
    if temporary {
        // What was blocked before the call may have been pending all the time, and what was not may be blocked now.
        restore_mask(me, cx);
        return deliver_async(cx, me);
    }
    Outcome::Goes
}

fn is_traced(me: &Current, cx: &Cx) -> bool {
    me.thread(cx).is_ok_and(|thread| thread.tracing.is_traced())
}

fn restore_mask(me: &Current, cx: &Cx) {
    if let (Ok(thread), Ok(process)) = (me.thread(cx), me.process(cx)) {
        let saved = thread.signals.take_saved_mask();
        change_mask(&process, &thread, saved, cx);
    }
}

/// Takes the next signal that is not blocked; if it is one that stops, also how often the process had been continued before.
fn take(me: &Current, cx: &Cx) -> Option<(Info, u64)> {
    let (thread, process) = (me.thread(cx).ok()?, me.process(cx).ok()?);
    let wanted = SignalSet(!0).without(thread.signals.blocked());
    let take = |wanted| thread.signals.pending.take(wanted, cx).or_else(|| process.pending.take(wanted, cx));
    let (info, continued) = if thread.signals.deliverable(&process.pending).intersection(SignalSet::STOPS).is_empty() {
        // One that stops and comes only now is left for the next look.
        (take(wanted.without(SignalSet::STOPS)), 0)
    } else {
        process::in_order_of_stops(&process, |continued| (take(wanted), continued), cx)
    };
    thread.signals.look_again(&process.pending);
    info.map(|info| (info, continued))
}

fn deliver_one_async(cx: &mut Cx, me: &mut Current, info: Info, continued: u64) {
    let signal = info.signal;
    let Ok(action) = me.process(cx).map(|process| process.action(signal, cx)) else { return };
    if action.is_handler() {
        if action.has(abi::SA_RESETHAND)
            && let Ok(process) = me.process(cx)
        {
            process.set_action(signal, Action { handler: 0, ..action }, cx);
        }
        finish_restart(me, Some(action));
        process::abort_sequence_async(cx, me);
        let was_stepping = is_traced(me, cx) && trace::leave_step(me, cx);
        let is_entered = super::handler::enter_handler_async(cx, me, action, info).is_ok();
        if is_entered && was_stepping {
            trace::handler_entered_async(cx, me);
        }
        if !is_entered {
            // No room for the frame: as if the program had touched that memory itself.
            if let (Ok(process), true) = (me.process(cx), signal == Signal::SEGV) {
                process.set_action(Signal::SEGV, Action::default(), cx);
            }
            send::force(me, Info::kernel(Signal::SEGV), cx);
        }
        return;
    }
    if action.ignores(signal) {
        return;
    }
    let Ok(process) = me.process(cx) else { return };
    match signal.default_action() {
        DefaultAction::Ignore | DefaultAction::Continue => {}
        DefaultAction::Stop => {
            // A group that nobody could continue does not stop by the terminal's signals.
            if signal == Signal::STOP || !process::is_orphaned(process.group(), cx) {
                process::begin_stop(&process, signal, continued, cx);
                if let Ok(thread) = me.thread(cx) {
                    process::notice_stop(&process, &thread, cx);
                    if thread.tracing.is_traced() {
                        process::stop_with_others(&process, &thread, cx);
                    }
                }
            }
        }
        DefaultAction::Terminate => {
            if process.pid != process::INIT {
                end_process(&process, signal.number(), cx);
            }
        }
        DefaultAction::Core => {
            // Process 1 ends by its own faults only.
            let is_own_fault = SignalSet::FAULTS.contains(signal) && info.code > 0;
            if process.pid != process::INIT || is_own_fault {
                drop(process);
                process::core_dump::end_process_async(cx, me, info);
            }
        }
    }
}

/// The interrupted call, if there is one, is restarted or fails with EINTR, now that it is known which handler runs.
fn finish_restart(me: &mut Current, handler: Option<Action>) {
    let Some((error, number)) = me.interrupted_call.take() else { return };
    let restarts = match handler {
        None => error != Errno::RESTART_NEVER,
        Some(action) => error == Errno::RESTART_ALWAYS || (error == Errno::RESTART_SYS && action.has(abi::SA_RESTART)),
    };
    let registers = &mut me.context.registers;
    if restarts {
        let again = if error == Errno::RESTART_BLOCK { abi::__NR_restart_syscall as usize } else { number };
        arch::restart_call(registers, again);
    } else {
        arch::set_call_result(registers, Errno::EINTR.as_result());
        me.restart = None;
    }
}
