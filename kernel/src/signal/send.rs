//! Sending: who gets a signal, and what it does at once (wakes, continues, ends).

use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::NoSuspend;

use super::{Action, DefaultAction, Info, Signal, SignalSet, Work};
use crate::arch::{self, Cause, Exception};
use crate::current::Current;
use crate::error::Result;
use crate::memory::BadAccess;
use crate::process::{self, Continuation, INIT, Process, Thread};

/// Sends a signal to a process: some thread that does not block it takes it.
///
/// # Errors
/// EAGAIN if the queue of real-time signals is full.
pub fn send_to_process(process: &Process, info: Info, cx: &impl NoSuspend) -> Result<()> {
    send(process, None, info, cx)
}

/// As [`send_to_process`], by who has locked the children of the process: what is returned is to be finished once they are unlocked.
///
/// # Errors
/// EAGAIN if the queue of real-time signals is full.
pub fn send_to_parent(process: &Process, info: Info, cx: &impl NoSuspend) -> Result<Option<Continuation>> {
    if is_job_signal(info.signal) {
        return send_job_signal(process, None, info, cx);
    }
    send_other(process, None, info, cx).map(|()| None)
}

/// Sends a signal to one thread.
///
/// # Errors
/// EAGAIN if the queue of real-time signals is full.
pub fn send_to_thread(process: &Process, thread: &Thread, info: Info, cx: &impl NoSuspend) -> Result<()> {
    send(process, Some(thread), info, cx)
}

#[inline(always)]
fn send(process: &Process, thread: Option<&Thread>, info: Info, cx: &impl NoSuspend) -> Result<()> {
    if !is_job_signal(info.signal) {
        return send_other(process, thread, info, cx);
    }
    if let Some(continuation) = send_job_signal(process, thread, info, cx)? {
        continuation.finish(process, cx);
    }
    Ok(())
}

/// Whether it stops or continues.
#[inline(always)]
fn is_job_signal(signal: Signal) -> bool {
    SignalSet::STOPS.union(Signal::CONT.set()).contains(signal)
}

/// Sends a signal that neither stops nor continues.
fn send_other(process: &Process, thread: Option<&Thread>, info: Info, cx: &impl NoSuspend) -> Result<()> {
    let signal = info.signal;
    if process.is_exiting() {
        if signal == Signal::KILL {
            // A core file may take long: it can be broken off.
            end_process(process, signal.number(), cx);
        }
        return Ok(());
    }
    if signal == Signal::KILL && process.pid != INIT {
        // The end begins at once: nobody takes it, and nothing is known of it but that it came.
        thread.map_or(&process.pending, |thread| &thread.signals.pending).show_kill();
        end_process(process, signal.number(), cx);
        return Ok(());
    }
    let action = process.action(signal, cx);
    if !is_ignored(process, thread, signal, &action, cx) {
        enter(process, thread, info, cx)?;
        tell(process, thread, signal, &action, cx);
    }
    Ok(())
}

/// Sends a signal that stops or continues: it becomes pending unless it is ignored, and takes away those of the other kind, whether it is ignored or not. Both is one thing: of two
/// that are sent at once one is the last, and none of the other kind is pending beside it.
#[cold]
fn send_job_signal(
    process: &Process,
    thread: Option<&Thread>,
    info: Info,
    cx: &impl NoSuspend,
) -> Result<Option<Continuation>> {
    if process.is_exiting() {
        return Ok(None);
    }
    let signal = info.signal;
    let is_continue = signal == Signal::CONT;
    let action = process.action(signal, cx);
    let is_ignored = is_ignored(process, thread, signal, &action, cx);
    let change = || {
        discard(process, if is_continue { SignalSet::STOPS } else { Signal::CONT.set() }, cx);
        if is_ignored { Ok(()) } else { enter(process, thread, info, cx) }
    };
    let continuation = if is_continue {
        // Whoever goes on finds the signal.
        process::continue_with(process, change, cx)?
    } else {
        process::in_order_of_stops(process, |_| change(), cx)?;
        None
    };
    if !is_ignored {
        tell(process, thread, signal, &action, cx);
    }
    Ok(continuation)
}

/// A signal is pending: who waits for it, or is to take it, is told. `action` is what was set when it was sent.
#[inline(always)]
fn tell(process: &Process, thread: Option<&Thread>, signal: Signal, action: &Action, cx: &impl NoSuspend) {
    process.signal_arrived.wake_all();
    match thread {
        Some(thread) if wants(process, thread, signal, cx) => notify(process, thread, signal, action, cx),
        Some(_) => {}
        None => offer(process, signal, action, cx),
    }
}

/// Makes a signal pending.
#[inline(always)]
fn enter(process: &Process, thread: Option<&Thread>, info: Info, cx: &impl NoSuspend) -> Result<()> {
    let limit = process.limits.lock(cx).soft(abi::RLIMIT_SIGPENDING);
    match thread {
        Some(thread) => thread.signals.pending.push(info, limit, cx),
        None => process.pending.push(info, limit, cx),
    }
}

/// Has a thread take a signal that is pending for the process, if one wants it.
fn offer(process: &Process, signal: Signal, action: &Action, cx: &impl NoSuspend) {
    // Usually the first thread takes it.
    if let Some(first) = process.first_thread(cx)
        && wants(process, &first, signal, cx)
    {
        return notify(process, &first, signal, action, cx);
    }
    let mut threads = process.threads(cx).filter_map(|thread| thread.upgrade(cx).ok());
    let taker = threads.find(|thread| wants(process, thread, signal, cx));
    if let Some(taker) = taker {
        notify(process, &taker, signal, action, cx);
    }
}

/// The thread that was to take these signals, which are pending for the process, does not want them any more: others are asked.
#[cold]
pub fn offer_all(process: &Process, mut signals: SignalSet, cx: &impl NoSuspend) {
    while let Some(signal) = signals.first() {
        offer(process, signal, &process.action(signal, cx), cx);
        signals = signals.without(signal.set());
    }
}

/// Whether the signal has no effect: it is ignored, or for process 1, which only its own handlers can touch. A blocked one is kept: there may
/// be a handler when it is unblocked.
#[inline(always)]
fn is_ignored(
    process: &Process,
    thread: Option<&Thread>,
    signal: Signal,
    action: &Action,
    cx: &impl NoSuspend,
) -> bool {
    let untouchable = process.pid == INIT && action.is_default();
    if !untouchable && !action.ignores(signal) {
        return false;
    }
    let is_blocked = match thread {
        Some(thread) => thread.signals.blocked().contains(signal),
        None => process.first_thread(cx).is_some_and(|first| first.signals.blocked().contains(signal)),
    };
    // A tracer sees those that are ignored, too.
    !is_blocked && !process.tracing.is_traced()
}

fn wants(process: &Process, thread: &Thread, signal: Signal, cx: &impl NoSuspend) -> bool {
    // One that is traced may go on while its process is stopped.
    thread.signals.wants(signal) && (signal == Signal::KILL || !process.is_stopped(cx) || thread.tracing.is_traced())
}

/// A thread is to take the signal: the end of the process begins at once, unless a core file comes first; everything else when the thread comes by.
fn notify(process: &Process, thread: &Thread, signal: Signal, action: &Action, cx: &impl NoSuspend) {
    let blocked = thread.signals.blocked().contains(signal);
    let fatal = signal.default_action() == DefaultAction::Terminate;
    if fatal && !blocked && action.is_default() && !thread.tracing.is_traced() {
        end_process(process, signal.number(), cx);
        return;
    }
    if !blocked {
        thread.signals.add_work(Work::SIGNAL);
    }
    thread.wake(cx);
}

/// Begins the end of a process with a status as wait(2) tells it, unless it has begun: all of its threads exit. A core file that is being written is
/// broken off.
pub fn end_process(process: &Process, status: u32, cx: &impl NoSuspend) {
    if !process.begin_exit(status) && !process.is_dumping() {
        if status == Signal::KILL.number() && process.tracing.is_traced() {
            process::end_stops_at_exit(process, cx);
        }
        return;
    }
    process.begin_to_end_threads(cx);
}

/// Takes all pending signals of a set out of a process and its threads, unseen.
pub fn discard(process: &Process, set: SignalSet, cx: &impl NoSuspend) {
    process.pending.discard(set, cx);
    process.each_thread(cx, |thread| thread.signals.pending.discard(set, cx));
}

/// Sends the calling thread a signal for what its own call did: SIGPIPE, SIGXFSZ.
pub fn raise(me: &Current, signal: Signal, cx: &Cx) {
    if let (Ok(thread), Ok(process)) = (me.thread(cx), me.process(cx)) {
        // A standard signal that is pending already is not queued again.
        let _ = send_to_thread(&process, &thread, Info::kernel(signal), cx);
    }
}

/// Sends the calling thread a signal that it cannot escape: where it is blocked or ignored the default applies.
pub fn force(me: &Current, info: Info, cx: &Cx) {
    let (Ok(thread), Ok(process)) = (me.thread(cx), me.process(cx)) else { return };
    let signal = info.signal;
    let mut action = process.action(signal, cx);
    if thread.signals.blocked().contains(signal) || action.ignores(signal) {
        action.handler = 0;
        process.set_action(signal, action, cx);
        thread.signals.set_blocked(thread.signals.blocked().without(signal.set()));
    }
    if !action.is_handler() && !thread.tracing.is_traced() {
        log_fault(me, &thread, &process, info, cx);
    }
    // There is room for a standard signal always.
    let _ = thread.signals.pending.push(info, u64::MAX, cx);
    thread.signals.add_work(Work::SIGNAL);
}

/// So many faults are logged in each [`LOG_WINDOW`].
const LOG_BURST: u64 = 20;
/// In nanoseconds.
const LOG_WINDOW: u64 = 5_000_000_000;

/// Whether one more fault is to be logged: a program that faults again and again must not fill the log.
fn may_log() -> bool {
    static WINDOW: AtomicU64 = AtomicU64::new(0);
    static LOGGED: AtomicU64 = AtomicU64::new(0);
    let window = frame::time::now() / LOG_WINDOW;
    if WINDOW.swap(window, Ordering::Relaxed) != window {
        LOGGED.store(0, Ordering::Relaxed);
    }
    LOGGED.fetch_add(1, Ordering::Relaxed) < LOG_BURST
}

#[cold]
fn log_fault(me: &Current, thread: &Thread, process: &Process, info: Info, cx: &Cx) {
    if !may_log() {
        return;
    }
    let what = match info.signal {
        Signal::SEGV => "segfault",
        Signal::BUS => "bus error",
        Signal::ILL => "illegal instruction",
        Signal::FPE => "arithmetic error",
        Signal::TRAP => "trap",
        _ => "fault",
    };
    let registers = &me.context.registers;
    crate::log!(
        "{}[{}]: {what} at {:#x} ip {:#x} sp {:#x}",
        thread.name(cx),
        process.pid,
        info.fields[0],
        arch::instruction_pointer(registers),
        arch::stack_pointer(registers)
    );
}

/// Sends the thread the signal for a bad access of its own.
pub fn raise_fault(me: &mut Current, bad: BadAccess, address: usize, cx: &Cx) {
    let info = match bad {
        BadAccess::NotMapped => Info::fault(Signal::SEGV, abi::SEGV_MAPERR, address),
        BadAccess::NotAllowed => Info::fault(Signal::SEGV, abi::SEGV_ACCERR, address),
        BadAccess::BeyondFile => Info::fault(Signal::BUS, abi::BUS_ADRERR, address),
        // The access is tried again.
        BadAccess::Absent(_) => return,
        BadAccess::NoMemory => {
            if let (Ok(thread), Ok(process)) = (me.thread(cx), me.process(cx)) {
                crate::log!("{}[{}]: out of memory: killed", thread.name(cx), process.pid);
                end_process(&process, Signal::KILL.number(), cx);
            }
            return;
        }
    };
    me.fault = arch::page_fault(address, bad != BadAccess::NotMapped);
    force(me, info, cx);
}

/// Sends the thread the signal for a processor exception of its own.
pub fn raise_exception(me: &mut Current, vector: u8, code: usize, cx: &Cx) {
    let Exception { cause, at, fault } = arch::classify(&me.context.registers, vector, code);
    let info = match cause {
        Cause::Division => Info::fault(Signal::FPE, abi::FPE_INTDIV, at),
        Cause::SingleStep => Info::fault(Signal::TRAP, abi::TRAP_TRACE, at),
        Cause::Breakpoint => Info::kernel(Signal::TRAP),
        Cause::IllegalInstruction => Info::fault(Signal::ILL, abi::ILL_ILLOPN, at),
        Cause::FloatingPoint => Info::fault(Signal::FPE, abi::FPE_FLTINV, at),
        Cause::Alignment => Info::fault(Signal::BUS, abi::BUS_ADRALN, 0),
        Cause::Segment => Info::kernel(Signal::BUS),
        Cause::Protection => Info::kernel(Signal::SEGV),
    };
    me.fault = fault;
    force(me, info, cx);
}
