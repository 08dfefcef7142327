//! Where a tracee stops: the tracee's side.

use frame::Cx;
use linux_raw_sys::general;
use linux_raw_sys::ptrace as abi;
use refs::{NoSuspend, WeakRc};

use super::relation::{At, Mode, Stand, relation};
use super::{Event, Options};
use crate::arch;
use crate::current::Current;
use crate::error::Errno;
use crate::process::{JobState, Process, Thread, freezer, stop};
use crate::signal::{self, Info, Signal, Work};

/// What a stop at a system call adds to SIGTRAP where that is asked for.
const CALL_MARK: u32 = 0x80;
/// Above the signal in what wait(2) tells: a stop of one that was seized.
const EVENT_STOP: u32 = abi::PTRACE_EVENT_STOP << 8;

/// How a tracee goes on after it stood.
struct Resumed {
    signal: Option<Signal>,
    /// What it was about to take, as its tracer has left it.
    info: Option<Info>,
    /// The number of the call that it is in, as its tracer has left it.
    call: u64,
    is_traced: bool,
    listened: bool,
}

/// What a tracee says of the stop that it is about to make.
struct Report {
    at: At,
    code: u32,
    info: Option<Info>,
    call: u64,
    message: Option<u64>,
}

/// The calling thread stands until it is resumed, let go or killed. `None` if it did not: nobody traces it any more, or it is to end.
#[cold]
#[inline(never)]
fn stand_async(cx: &mut Cx, me: &mut Current, report: Report) -> Option<Resumed> {
    me.note_wait_outside(cx);
    let at = report.at;
    let tracer = begin(me, report, cx)?;
    tell(me, tracer, cx);
    loop {
        // A group of tracees may come by here one after the other.
        frame::irq::poll(cx);
        let _ = tasks::prepare(cx);
        if let (Ok(process), Ok(thread)) = (me.process(cx), me.thread(cx)) {
            freezer::note_standing(&process, &thread, cx);
        }
        if !stays(me, at, cx) {
            tasks::finish_wait(cx);
            break;
        }
        tasks::park_async(cx);
    }
    if let (Ok(process), Ok(thread)) = (me.process(cx), me.thread(cx)) {
        freezer::note_going(&process, &thread, cx);
    }
    end(me, tracer, cx)
}

/// The context goes where the tracer finds it. Gives the tracer's process.
fn begin(me: &mut Current, report: Report, cx: &Cx) -> Option<WeakRc<Process>> {
    let thread = me.thread(cx).ok()?;
    if thread.signals.work().contains(Work::EXIT) && report.at != At::Exit {
        return None;
    }
    me.context.take_out(cx);
    let rseq = me.restartable;
    let mut traced = thread.tracing.traced.lock(cx);
    let traced = traced.as_mut()?;
    let relation = traced.relation?;
    core::mem::swap(&mut me.context, &mut traced.context);
    if core::mem::take(&mut traced.is_stepping) {
        arch::set_single_step(&mut traced.context.registers, false);
    }
    if let Some(message) = report.message {
        traced.message = message;
    }
    traced.mode = Mode::Run;
    let Report { at, code, info, call, .. } = report;
    traced.stand = Some(Stand { at, code, is_news: true, info, call, rseq, listens: false, resumed: None });
    thread.tracing.is_standing.store(true, core::sync::atomic::Ordering::Relaxed);
    Some(relation.process)
}

/// Whether the calling thread has to stand on.
fn stays(me: &Current, at: At, cx: &Cx) -> bool {
    let Ok(thread) = me.thread(cx) else { return false };
    let work = thread.signals.work();
    let is_killed = match at {
        At::Exit => me.process(cx).is_ok_and(|process| process.tracing.is_killed()),
        _ => work.contains(Work::EXIT),
    };
    if is_killed {
        return false;
    }
    let traced = thread.tracing.traced.lock(cx);
    let stand = traced.as_ref().and_then(|traced| traced.stand.as_ref());
    stand.is_some_and(|stand| {
        let hears = stand.listens && (work.contains(Work::TRAP) || at == At::Stopped && !work.contains(Work::STOP));
        stand.resumed.is_none() && !hears
    })
}

/// The calling thread has its context back.
fn end(me: &mut Current, tracer: WeakRc<Process>, cx: &Cx) -> Option<Resumed> {
    let thread = me.thread(cx).ok()?;
    let mut left = None;
    let (stand, mode, is_traced) = {
        let mut place = thread.tracing.traced.lock(cx);
        let traced = place.as_mut()?;
        core::mem::swap(&mut me.context, &mut traced.context);
        let stand = traced.stand.take();
        let (mode, is_traced) = (traced.mode, traced.relation.is_some());
        if mode == Mode::Step && is_traced {
            traced.is_stepping = true;
            arch::set_single_step(&mut me.context.registers, true);
        }
        if !is_traced {
            left = place.take();
        }
        (stand?, mode, is_traced)
    };
    drop(left);
    thread.tracing.is_standing.store(false, core::sync::atomic::Ordering::Relaxed);
    if stand.is_news
        && let Ok(tracer) = tracer.upgrade(cx)
    {
        tracer.tracee_is_told(&thread, cx);
    }
    if is_traced && mode != Mode::Run {
        // The next call comes by where its tracer is told of it.
        me.until_sample = 0;
    }
    let listened = stand.listens && stand.resumed.is_none();
    Some(Resumed { signal: stand.resumed.flatten(), info: stand.info, call: stand.call, is_traced, listened })
}

/// Tells the tracer that the calling thread stands.
fn tell(me: &Current, tracer: WeakRc<Process>, cx: &Cx) {
    let (Ok(thread), Ok(tracer)) = (me.thread(cx), tracer.upgrade(cx)) else { return };
    let code = {
        let traced = thread.tracing.traced.lock(cx);
        let Some(stand) = traced.as_ref().and_then(|traced| traced.stand.as_ref()) else { return };
        stand.code
    };
    tracer.tracee_stands(&thread, cx);
    let uid = thread.credentials.lock(cx).users().real.number();
    let usage = thread.usage(cx);
    let info = Info::child(
        Signal::CHLD,
        general::CLD_TRAPPED,
        thread.tid(),
        uid,
        code & 0x7f,
        usage.user / NANOSECONDS_PER_TICK,
        usage.system / NANOSECONDS_PER_TICK,
    );
    tell_process(&tracer, info, cx);
}

/// USER_HZ is 100.
pub(super) const NANOSECONDS_PER_TICK: u64 = 10_000_000;

/// Tells a tracer of a tracee: by SIGCHLD, and by waking who waits.
pub(super) fn tell_process(tracer: &Process, info: Info, cx: &impl NoSuspend) {
    let action = tracer.action(Signal::CHLD, cx);
    let is_stop = info.code == general::CLD_TRAPPED as i32;
    if !is_stop || !(action.has(general::SA_NOCLDSTOP) || action.ignores(Signal::CHLD) && !action.is_default()) {
        // SIGCHLD coalesces.
        let _ = signal::send::send_to_process(tracer, info, cx);
    }
    tracer.child_changed.wake_all();
}

/// What GETSIGINFO says of a stop that is for no signal.
fn trap_info(thread: &Thread, process: &Process, code: u32, cx: &Cx) -> Info {
    let uid = thread.credentials.lock(cx).users().real.number();
    let mut info = Info::from_process(Signal::TRAP, code as i32, process.pid, uid);
    info.fields[0] = u64::from(thread.tid()) | u64::from(uid) << 32;
    info
}

fn own_trap_info(me: &Current, code: u32, cx: &Cx) -> Option<Info> {
    Some(trap_info(&*me.thread(cx).ok()?, &*me.process(cx).ok()?, code, cx))
}

/// The calling thread is about to take a signal: what it takes, after its tracer has seen it.
pub fn signal_async(cx: &mut Cx, me: &mut Current, info: Info) -> Option<Info> {
    let interrupted = me.interrupted_call;
    let call = interrupted.map_or(arch::NO_CALL, |(_, number)| number as u64);
    if let Some((error, _)) = interrupted {
        me.context.set_call_result(error.as_result());
    }
    let report = Report { at: At::Signal, code: info.signal.number(), info: Some(info), call, message: None };
    let Some(resumed) = stand_async(cx, me, report) else {
        let is_ending = me.thread(cx).map_or(true, |thread| thread.signals.work().contains(Work::EXIT));
        return if is_ending { None } else { Some(info) };
    };
    note_interrupted_call(me, resumed.call);
    let signal = resumed.signal?;
    let info = match resumed.info {
        Some(left) if left.signal == signal => left,
        _ => {
            let thread = me.thread(cx).ok()?;
            let tracer = relation(&thread, cx).and_then(|relation| relation.tracer);
            let tracer = tracer.and_then(|tracer| tracer.upgrade(cx).ok());
            let (pid, uid) = tracer.map_or((0, 0), |tracer| {
                let uid = tracer.credentials.lock(cx).users().real.number();
                (tracer.process(cx).map_or(0, |process| process.pid), uid)
            });
            Info::from_process(signal, general::SI_USER as i32, pid, uid)
        }
    };
    let (thread, process) = (me.thread(cx).ok()?, me.process(cx).ok()?);
    if thread.signals.blocked().contains(signal) {
        let _ = thread.signals.pending.push(info, u64::MAX, cx);
        thread.signals.look_again(&process.pending);
        return None;
    }
    Some(info)
}

/// Whether the call that was interrupted is made again is what the registers say, which the tracer may have changed.
fn note_interrupted_call(me: &mut Current, call: u64) {
    let result = me.context.registers.rax;
    let restarts = [
        Errno::RESTART_SYS,
        Errno::RESTART_ALWAYS,
        Errno::RESTART_NO_HANDLER,
        Errno::RESTART_BLOCK,
        Errno::RESTART_NEVER,
    ];
    let error = restarts.into_iter().find(|error| error.as_result() == result);
    me.interrupted_call = match error {
        Some(error) if call as i64 >= 0 => Some((error, call as usize)),
        _ => None,
    };
}

/// The code of a stop at a system call.
fn call_code(me: &Current, cx: &Cx) -> u32 {
    let options = me.thread(cx).ok().and_then(|thread| relation(&thread, cx)).map(|relation| relation.options);
    let mark = if options.is_some_and(|options| options.contains(Options::CALLS_MARKED)) { CALL_MARK } else { 0 };
    Signal::TRAP.number() | mark
}

/// A signal with which a tracer resumes its tracee where that takes none is sent to it.
fn take_later(me: &Current, signal: Option<Signal>, cx: &Cx) {
    if let (Some(signal), Ok(thread), Ok(process)) = (signal, me.thread(cx), me.process(cx)) {
        let _ = signal::send::send_to_thread(&process, &thread, Info::kernel(signal), cx);
    }
}

/// How a tracee was resumed last; `None` if it is none.
fn mode(me: &Current, cx: &Cx) -> Option<Mode> {
    let thread = me.thread(cx).ok()?;
    if !thread.tracing.is_traced() {
        return None;
    }
    thread.tracing.traced.lock(cx).as_ref().filter(|traced| traced.relation.is_some()).map(|traced| traced.mode)
}

/// A system call of a tracee whose tracer is told of it, or of one that does a single step.
pub struct TracedCall {
    number: u64,
    is_made: bool,
}

impl TracedCall {
    /// Whether it is to be made: its tracer may leave it out, and then its result is what that has made of it.
    pub fn is_made(&self) -> bool {
        self.is_made
    }
}

/// The calling thread is about to make a system call: `None` if that is nothing to its tracer.
#[cold]
#[inline(never)]
pub fn begin_call_async(cx: &mut Cx, me: &mut Current) -> Option<TracedCall> {
    let mut number = arch::call_number(&me.context.registers) as u64;
    match mode(me, cx)? {
        Mode::Run => return None,
        Mode::Step => return Some(TracedCall { number, is_made: true }),
        Mode::Calls => {}
    }
    me.context.set_call_result(Errno::ENOSYS.as_result());
    let code = call_code(me, cx);
    let info = own_trap_info(me, code, cx);
    let entry = Some(abi::PTRACE_EVENTMSG_SYSCALL_ENTRY.into());
    let resumed = stand_async(cx, me, Report { at: At::CallEntry, code, info, call: number, message: entry });
    if let Some(resumed) = &resumed {
        number = resumed.call;
        take_later(me, resumed.signal, cx);
    }
    let is_ending = me.thread(cx).map_or(true, |thread| thread.signals.work().contains(Work::EXIT));
    let is_made = !is_ending && number as i32 >= 0;
    if is_made {
        me.context.set_call_result(number as i32 as usize);
    }
    Some(TracedCall { number, is_made })
}

/// The system call was made, or left out.
#[cold]
#[inline(never)]
pub fn end_call_async(cx: &mut Cx, me: &mut Current, call: TracedCall) {
    if let Ok(thread) = me.thread(cx)
        && let Some(traced) = &mut *thread.tracing.traced.lock(cx)
    {
        traced.call_to_end = None;
    }
    match mode(me, cx) {
        Some(Mode::Calls) => call_ends_async(cx, me, call.number),
        Some(Mode::Step) => {
            // The processor would trap behind the next instruction only.
            let at = arch::instruction_pointer(&me.context.registers);
            signal::send::force(me, Info::fault(Signal::TRAP, general::TRAP_BRKPT, at), cx);
        }
        Some(Mode::Run) | None => {}
    }
}

fn call_ends_async(cx: &mut Cx, me: &mut Current, number: u64) {
    if let Some((error, _)) = me.interrupted_call {
        me.context.set_call_result(error.as_result());
    }
    let code = call_code(me, cx);
    let info = own_trap_info(me, code, cx);
    let exit = Some(abi::PTRACE_EVENTMSG_SYSCALL_EXIT.into());
    if let Some(resumed) = stand_async(cx, me, Report { at: At::CallExit, code, info, call: number, message: exit }) {
        if me.interrupted_call.is_some() {
            note_interrupted_call(me, resumed.call);
        }
        take_later(me, resumed.signal, cx);
    }
}

/// Tells the tracer, if it wants to know, what the calling thread has done. A system call that has to go on is as it was behind that.
#[cold]
#[inline(never)]
pub fn event_async(cx: &mut Cx, me: &mut Current, event: Event, message: u64) {
    let Some(relation) = me.thread(cx).ok().and_then(|thread| relation(&thread, cx)) else { return };
    if !relation.options.contains(event.option()) {
        return;
    }
    let code = Signal::TRAP.number() | (event as u32) << 8;
    let info = own_trap_info(me, code, cx);
    let number = arch::call_number(&me.context.registers);
    let at = if event == Event::Exit { At::Exit } else { At::InCall };
    let call = match event {
        Event::Exec => general::__NR_execve.into(),
        Event::Exit => arch::NO_CALL,
        _ => number as u64,
    };
    if at == At::InCall {
        me.context.set_call_result(Errno::ENOSYS.as_result());
    }
    stand_async(cx, me, Report { at, code, info, call, message: Some(message) });
    if at == At::InCall {
        me.context.set_call_result(number);
        note_call_to_end(me, call, cx);
    }
}

/// If it is to go on until the end of a call, that of the one in whose middle it is counts, whether it was told of at its start or not.
fn note_call_to_end(me: &Current, call: u64, cx: &Cx) {
    let Ok(thread) = me.thread(cx) else { return };
    let mut traced = thread.tracing.traced.lock(cx);
    if let Some(traced) = traced.as_mut()
        && traced.mode == Mode::Calls
    {
        traced.call_to_end = Some(call);
        thread.signals.add_work(Work::TRAP);
    }
}

/// The calling thread has executed a program; before that its id was `old`.
#[cold]
#[inline(never)]
pub fn executed_async(cx: &mut Cx, me: &mut Current, old: u32) {
    let Some(relation) = me.thread(cx).ok().and_then(|thread| relation(&thread, cx)) else { return };
    if relation.options.contains(Options::EXEC) {
        event_async(cx, me, Event::Exec, old.into());
    } else if !relation.is_seized
        && let (Ok(thread), Ok(process)) = (me.thread(cx), me.process(cx))
    {
        let uid = thread.credentials.lock(cx).users().real.number();
        let info = Info::from_process(Signal::TRAP, general::SI_USER as i32, process.pid, uid);
        let _ = signal::send::send_to_thread(&process, &thread, info, cx);
    }
}

/// The calling thread was told to stop.
#[cold]
#[inline(never)]
pub fn trap_async(cx: &mut Cx, me: &mut Current) {
    let told = me.thread(cx).ok().and_then(|thread| {
        thread.signals.remove_work(Work::TRAP);
        let mut traced = thread.tracing.traced.lock(cx);
        let traced = traced.as_mut()?;
        Some((core::mem::take(&mut traced.traps), traced.call_to_end.take()))
    });
    if let Some((_, Some(call))) = told {
        call_ends_async(cx, me, call);
    }
    if !told.is_some_and(|(traps, _)| traps) {
        return;
    }
    // Of one whose process is stopped that is told.
    let stopped = me.thread(cx).is_ok_and(|thread| thread.signals.work().contains(Work::STOP));
    if stopped {
        return;
    }
    let code = Signal::TRAP.number() | EVENT_STOP;
    stop_at_async(cx, me, At::Trap, code);
}

/// The process is stopped by job control, and the calling thread is traced: it stands for its tracer, who may have it go on all the same.
#[cold]
#[inline(never)]
pub fn stop_async(cx: &mut Cx, me: &mut Current) {
    let signal = match (me.process(cx), me.thread(cx)) {
        (Ok(process), Ok(thread)) => {
            stop::one_has_stopped(&process, &thread, cx);
            match process.job_state(cx) {
                JobState::Running => None,
                JobState::Stopping { signal, .. } | JobState::Stopped(signal) => Some(signal),
            }
        }
        _ => None,
    };
    let Some(relation) = me.thread(cx).ok().and_then(|thread| relation(&thread, cx)) else { return };
    if let Some(signal) = signal {
        let mark = if relation.is_seized { EVENT_STOP } else { 0 };
        stop_at_async(cx, me, At::Stopped, signal.number() | mark);
    } else if let Ok(thread) = me.thread(cx) {
        // It has gone on meanwhile.
        thread.signals.remove_work(Work::STOP);
    }
}

fn stop_at_async(cx: &mut Cx, me: &mut Current, at: At, code: u32) {
    let interrupted = me.interrupted_call;
    let call = interrupted.map_or(arch::NO_CALL, |(_, number)| number as u64);
    if let Some((error, _)) = interrupted {
        me.context.set_call_result(error.as_result());
    }
    let is_group_stop = at == At::Stopped && code >> 8 == 0;
    let info = if is_group_stop { None } else { own_trap_info(me, code, cx) };
    let Some(resumed) = stand_async(cx, me, Report { at, code, info, call, message: None }) else { return };
    note_interrupted_call(me, resumed.call);
    let Ok(thread) = me.thread(cx) else { return };
    if resumed.listened && resumed.is_traced {
        // It has heard something: it says so.
        let mut traced = thread.tracing.traced.lock(cx);
        if let Some(traced) = traced.as_mut() {
            traced.traps = true;
            thread.signals.add_work(Work::TRAP);
        }
    } else if at == At::Stopped && resumed.is_traced {
        thread.signals.remove_work(Work::STOP);
    }
}

/// The calling thread is about to enter a handler, with or without steps: it does not trap there by itself. Whether it did.
#[cold]
#[inline(never)]
pub fn leave_step(me: &mut Current, cx: &Cx) -> bool {
    let Ok(thread) = me.thread(cx) else { return false };
    let mut traced = thread.tracing.traced.lock(cx);
    let Some(traced) = traced.as_mut() else { return false };
    let was_stepping = core::mem::take(&mut traced.is_stepping);
    if was_stepping {
        arch::set_single_step(&mut me.context.registers, false);
    }
    was_stepping
}

/// The calling thread has entered a handler in the place of the step that it was to do.
#[cold]
#[inline(never)]
pub fn handler_entered_async(cx: &mut Cx, me: &mut Current) {
    let code = Signal::TRAP.number();
    let info = own_trap_info(me, code, cx);
    let call = arch::NO_CALL;
    if let Some(resumed) = stand_async(cx, me, Report { at: At::Trap, code, info, call, message: None }) {
        take_later(me, resumed.signal, cx);
    }
}
