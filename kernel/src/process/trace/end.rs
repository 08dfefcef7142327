//! How tracing ends: with the tracee, and with the tracer.

use core::sync::atomic::Ordering;

use frame::Cx;
use refs::{NoSuspend, WeakRc};

use super::stop::{NANOSECONDS_PER_TICK, event_async, tell_process};
use super::tracees::Ended;
use super::{Event, Options};
use crate::current::Current;
use crate::process::{Cursor, Process, Status, Thread, Usage};
use crate::sched;
use crate::signal::{Info, Signal, send};
use crate::step::TimeSlice;

/// A traced thread of a process has let go of all that it had, and nobody finds it any more: its tracer learns of that, unless it learns of it as the parent of the process.
#[cold]
#[inline(never)]
pub fn end_of_tracee(thread: &Thread, cx: &impl NoSuspend) {
    let Some(relation) = super::relation::relation(thread, cx) else { return };
    let (Ok(process), Ok(tracer)) = (thread.process(cx), relation.process.upgrade(cx)) else { return };
    if tracer.part(thread, None, None, cx).is_none() {
        return;
    }
    if thread.tid() == process.pid {
        // Where another thread executes a program that one goes on under this number.
        if !process.is_executing() && process.parent_pid() != tracer.pid {
            process.tracing.set_watcher(relation.process, cx);
        }
        return;
    }
    let status = if process.is_exiting() { process.exit_status() } else { thread.own_exit_status() };
    let uid = thread.credentials.lock(cx).users().real.number();
    tell_end(&tracer, &process, thread.tid(), uid, status, thread.usage(cx), cx);
}

/// A process has ended whose first thread was traced by another than its parent.
#[cold]
#[inline(never)]
pub fn end_of_process(process: &Process, cx: &Cx) {
    let watcher = process.tracing.watcher(cx);
    let Some(Ok(tracer)) = watcher.map(|watcher| watcher.upgrade(cx)) else { return };
    tell_end(&tracer, process, process.pid, process.uid(cx), process.exit_status(), process.usage(cx), cx);
}

fn tell_end(tracer: &Process, process: &Process, id: u32, uid: u32, status: Status, usage: Usage, cx: &impl NoSuspend) {
    if !tracer.action(Signal::CHLD, cx).abandons_children() {
        tracer.tracee_has_ended(Ended { id, group: process.group(), uid, status: status.0, usage }, cx);
    }
    let (code, value) = status.si_code_and_status();
    let ticks = |nanos: u64| nanos / NANOSECONDS_PER_TICK;
    let info = Info::child(Signal::CHLD, code, id, uid, value, ticks(usage.user), ticks(usage.system));
    tell_process(tracer, info, cx);
}

/// The calling thread, which is traced or has traced others, is about to end.
#[cold]
#[inline(never)]
pub fn thread_ends_async(cx: &mut Cx, me: &mut Current) {
    if me.thread(cx).is_ok_and(|thread| thread.tracing.is_tracer()) {
        release_own_async(cx, me);
    }
    let status = match (me.thread(cx), me.process(cx)) {
        (Ok(_), Ok(process)) if process.is_exiting() => process.exit_status(),
        (Ok(thread), _) => thread.own_exit_status(),
        _ => return,
    };
    if status.signal() != Some(Signal::KILL.number()) {
        event_async(cx, me, Event::Exit, status.0.into());
    }
}

/// The calling thread, which has traced others, ends: it lets go of all of its tracees.
#[cold]
#[inline(never)]
fn release_own_async(cx: &mut Cx, me: &mut Current) {
    if let Ok(thread) = me.thread(cx) {
        thread.tracing.is_closed.store(true, Ordering::SeqCst);
    }
    release_async(cx, me, Some(me.thread));
}

/// The calling thread was the last one of a process that has tracees: it lets go of them.
#[cold]
#[inline(never)]
pub fn release_all_async(cx: &mut Cx, me: &mut Current) {
    release_async(cx, me, None);
}

fn release_async(cx: &mut Cx, me: &mut Current, tracer: Option<WeakRc<Thread>>) {
    let mut last = Cursor::default();
    let mut time_slice = TimeSlice::of_end();
    while let Some(next) = me.process(cx).ok().and_then(|process| process.next_tracee(&mut last, cx)) {
        if let (Ok(process), Ok(thread)) = (me.process(cx), next.upgrade(cx))
            && let Some(relation) = process.part(&thread, tracer, None, cx)
            && relation.options.contains(Options::EXIT_KILL)
            && let Ok(tracee) = thread.process(cx)
        {
            send::end_process(&tracee, Signal::KILL.number(), cx);
        }
        if time_slice.is_over() {
            sched::pause_in_end_async(cx);
            time_slice = TimeSlice::of_end();
        }
    }
}
