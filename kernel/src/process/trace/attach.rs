//! How tracing begins: by the tracer, by the tracee, or because a tracee has made a thread.

use alloc::boxed::Box;

use frame::Cx;
use linux_raw_sys::general::{CLONE_PTRACE, CLONE_UNTRACED, CLONE_VFORK, SI_USER};
use refs::TempRc;

use super::relation::{Relation, Traced, relation};
use super::stop::event_async;
use super::{Event, Options};
use crate::credentials::{Capability, TraceAs};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::{CloneArgs, Process, THREADS, Thread};
use crate::reclaim::Held;
use crate::signal::{self, Info, Signal, Work};
use crate::{arch, memory};

/// How a tracer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// PTRACE_ATTACH: the tracee stops by SIGSTOP.
    Stop,
    /// PTRACE_SEIZE: it goes on.
    Seize(Options),
}

/// The caller traces a thread of another process from now on.
///
/// # Errors
/// ESRCH if there is none; EPERM if it may not, or somebody does already; ENOMEM, EAGAIN if its group may not have more.
pub fn attach(me: &Current, tid: u32, how: Attach, cx: &Cx) -> Result<()> {
    let thread = THREADS.get(tid, cx).ok_or(Errno::ESRCH)?;
    if thread.process == me.process || !me.may_trace(&thread, TraceAs::Real, cx)? {
        return Err(Errno::EPERM);
    }
    if thread.signals.work().contains(Work::EXIT) {
        return Err(Errno::EPERM);
    }
    me.thread(cx)?.tracing.is_tracer.store(true, core::sync::atomic::Ordering::SeqCst);
    let (is_seized, options) = match how {
        Attach::Stop => (false, Options::empty()),
        Attach::Seize(options) => (true, options),
    };
    let process = me.process(cx)?;
    let may_gain = me.has(Capability::SysPtrace, cx);
    let relation = Relation { tracer: Some(me.thread), process: me.process, is_seized, may_gain, options };
    begin(&process, &thread, relation, cx)?;
    // It may have ended meanwhile, and have looked before that whether somebody traces it; or have executed a program with more rights.
    let is_there = THREADS.weak(thread.tid(), cx) == Some(thread.downgrade());
    if !is_there || !me.may_trace(&thread, TraceAs::Real, cx)? {
        process.part(&thread, Some(me.thread), None, cx);
        return Err(if is_there { Errno::EPERM } else { Errno::ESRCH });
    }
    match how {
        Attach::Stop => {
            // A standard signal always has room.
            let _ = signal::send::send_to_thread(&*thread.process(cx)?, &thread, Info::kernel(Signal::STOP), cx);
        }
        Attach::Seize(_) => {}
    }
    // Job control may have stopped it already: it stands for its tracer then.
    thread.wake(cx);
    Ok(())
}

/// The caller's parent traces it from now on.
///
/// # Errors
/// EPERM if somebody does already, or the parent may not have that right.
pub fn trace_me(me: &Current, cx: &Cx) -> Result<()> {
    let (thread, process) = (me.thread(cx)?, me.process(cx)?);
    let parent = process.parent(cx).ok_or(Errno::EPERM)?;
    let own = thread.credentials.lock(cx).capabilities().permitted;
    let (may, may_gain) = parent.first_thread(cx).map_or((false, false), |first| {
        let credentials = first.credentials.lock(cx);
        let may_gain = credentials.has(Capability::SysPtrace);
        (may_gain || own.is_subset(credentials.capabilities().permitted), may_gain)
    });
    if !may {
        return Err(Errno::EPERM);
    }
    let (tracer, process) = (None, parent.downgrade());
    let relation = Relation { tracer, process, is_seized: false, may_gain, options: Options::empty() };
    match begin(&parent, &thread, relation, cx) {
        // As on Linux, who has no parent any more is traced by nobody, and does not learn of it.
        Err(Errno::ESRCH) => Ok(()),
        outcome => outcome,
    }
}

fn begin(process: &Process, thread: &TempRc<'_, Thread>, relation: Relation, cx: &Cx) -> Result<()> {
    memory::admit()?;
    process.hold(Held::Timer, 1, cx)?;
    let begun = process.begin_tracing(thread, relation, None, cx);
    if begun.is_err() {
        process.let_go(Held::Timer, 1, cx);
    }
    begun
}

/// What a thread will be to its maker's tracer that is not made yet.
pub(super) struct Embryo {
    event: Option<Event>,
    relation: Relation,
    traced: Box<Traced>,
}

/// Sees to what the caller's tracer needs to trace what the caller makes with these arguments, if it is to.
///
/// # Errors
/// ENOMEM, EAGAIN: the tracer's group may not have more.
#[cold]
#[inline(never)]
pub fn prepare_child(me: &Current, args: &CloneArgs, cx: &Cx) -> Result<()> {
    let thread = me.thread(cx)?;
    let Some(relation) = relation(&thread, cx) else { return Ok(()) };
    let has = |flag: u32| args.flags & u64::from(flag) != 0;
    let event = match () {
        () if has(CLONE_VFORK) => Event::VFork,
        () if args.exit_signal == Signal::CHLD.number() => Event::Fork,
        () => Event::Clone,
    };
    let event = (relation.options.contains(event.option()) && !has(CLONE_UNTRACED)).then_some(event);
    if event.is_none() && !has(CLONE_PTRACE) {
        give_up_child(&thread, cx);
        return Ok(());
    }
    let Ok(process) = relation.process.upgrade(cx) else { return Ok(()) };
    process.hold(Held::Timer, 1, cx)?;
    let embryo = Box::new(Embryo { event, relation, traced: Traced::new(relation) });
    // A call that failed may have left one.
    give_up_child(&thread, cx);
    let unused = match &mut *thread.tracing.traced.lock(cx) {
        Some(traced) => traced.embryo.replace(embryo),
        None => Some(embryo),
    };
    if unused.is_some() {
        process.let_go(Held::Timer, 1, cx);
    }
    Ok(())
}

/// What was prepared for a child is not needed.
fn give_up_child(thread: &Thread, cx: &Cx) {
    let embryo = thread.tracing.traced.lock(cx).as_mut().and_then(|traced| traced.embryo.take());
    if let Some(embryo) = embryo
        && let Ok(process) = embryo.relation.process.upgrade(cx)
    {
        process.let_go(Held::Timer, 1, cx);
    }
}

/// The caller has made a thread that has not run yet: if it is to be traced it begins by standing for the caller's tracer.
#[cold]
#[inline(never)]
pub fn begin_child(me: &Current, child: &mut Current, cx: &Cx) {
    let Ok(thread) = me.thread(cx) else { return };
    let embryo = {
        let mut traced = thread.tracing.traced.lock(cx);
        let Some(traced) = traced.as_mut() else { return };
        if traced.is_stepping {
            // The step is the caller's.
            arch::set_single_step(&mut child.context.registers, false);
        }
        let Some(embryo) = traced.embryo.take() else { return };
        traced.announces = embryo.event;
        embryo
    };
    let Embryo { relation, mut traced, .. } = *embryo;
    let (Ok(process), Ok(child)) = (relation.process.upgrade(cx), child.thread(cx)) else { return };
    traced.traps = relation.is_seized;
    if process.begin_tracing(&child, relation, Some(traced), cx).is_err() {
        process.let_go(Held::Timer, 1, cx);
    } else if relation.is_seized {
        child.signals.add_work(Work::TRAP);
    } else {
        // A standard signal always has room.
        let stop = Info::from_process(Signal::STOP, SI_USER as i32, 0, 0);
        let _ = child.signals.pending.push(stop, u64::MAX, cx);
        child.signals.add_work(Work::SIGNAL);
    }
}

/// Tells the caller's tracer, if it wants to know, of a thread that the caller has made.
#[cold]
#[inline(never)]
pub fn tell_of_child_async(cx: &mut Cx, me: &mut Current, tid: u32) {
    let announced = me.thread(cx).ok().and_then(|thread| thread.tracing.traced.lock(cx).as_mut()?.announces.take());
    if let Some(event) = announced {
        event_async(cx, me, event, tid.into());
    }
}
