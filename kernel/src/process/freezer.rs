//! Frozen control groups: their threads stand still before they go on in user mode.
//!
//! Whether a thread has to is known by its group and those above it. Who freezes a group, or thaws it, says so there first and then tells the threads one after the other: each gets
//! `Work::FREEZE` and is woken, and looks for itself. Who comes into a group looks when it has come: so nobody is missed, and one that is told for nothing goes on.
//!
//! A thread that stands still counts as frozen in its group, wherever it stands: here, stopped by job control, or waiting for a child that has its memory (vfork(2)).

use core::sync::atomic::Ordering;

use frame::Cx;
use refs::NoSuspend;

use super::{Process, Thread};
use crate::current::Current;
use crate::signal::Work;

/// Tells a thread that its group freezes or thaws.
pub fn tell(thread: &Thread, freezes: bool, cx: &impl NoSuspend) {
    if freezes {
        thread.signals.add_work(Work::FREEZE);
    }
    if thread.signals.work().contains(Work::FREEZE) {
        thread.wake(cx);
    }
}

/// A thread has come into a process: it freezes if the group does.
pub(super) fn one_joins(process: &Process, thread: &Thread, cx: &impl NoSuspend) {
    if process.is_to_freeze(cx) {
        thread.signals.add_work(Work::FREEZE);
    }
}

/// Whether a process that has come into another group has to freeze or thaw.
pub(super) fn may_concern(process: &Process, cx: &impl NoSuspend) -> bool {
    process.is_to_freeze(cx) || process.membership.lock(cx).frozen > 0
}

/// The calling thread is about to wait where it does nothing until it is woken: counts it as frozen, or not any more, as it has to be now.
pub(super) fn note_standing(process: &Process, thread: &Thread, cx: &impl NoSuspend) {
    if thread.signals.work().contains(Work::FREEZE) {
        process.change_frozen(thread, process.is_to_freeze(cx), cx);
    }
}

/// The calling thread does not wait any more: it is counted no longer, unless it is about to stand still again.
pub(super) fn note_going(process: &Process, thread: &Thread, cx: &impl NoSuspend) {
    if thread.is_frozen.load(Ordering::Relaxed)
        && (thread.signals.work().contains(Work::EXIT) || !process.is_to_freeze(cx))
    {
        process.change_frozen(thread, false, cx);
    }
}

/// The calling thread ends.
#[inline(always)]
pub(super) fn note_end(process: &Process, thread: &Thread, cx: &impl NoSuspend) {
    if thread.is_frozen.load(Ordering::Relaxed) {
        process.change_frozen(thread, false, cx);
    }
}

/// The calling thread stands still until its group thaws, or it ends or stops.
pub fn wait_while_frozen_async(cx: &mut Cx, me: &Current) {
    loop {
        // All threads of the group come by here one after the other.
        frame::irq::poll(cx);
        let _ = tasks::prepare(cx);
        if !stays(me, cx) {
            tasks::finish_wait(cx);
            return;
        }
        me.note_wait_outside(cx);
        tasks::park_async(cx);
    }
}

/// Whether it has to stand still; if not, it is counted so no longer, and has nothing to do about it.
fn stays(me: &Current, cx: &Cx) -> bool {
    let (Ok(process), Ok(thread)) = (me.process(cx), me.thread(cx)) else { return false };
    let signals = &thread.signals;
    if signals.work().intersects(Work::EXIT | Work::STOP) {
        note_going(&process, &thread, cx);
        return false;
    }
    if !process.is_to_freeze(cx) {
        signals.remove_work(Work::FREEZE);
        // Who was told in between has to.
        if !process.is_to_freeze(cx) {
            note_going(&process, &thread, cx);
            return false;
        }
        signals.add_work(Work::FREEZE);
    }
    note_standing(&process, &thread, cx);
    true
}
