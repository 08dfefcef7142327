//! Job control's half of processes: stopping and continuing all threads, and what wait(2) is told of it.

use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::{NoSuspend, SpinGuard};

use super::exit::tell_parent;
use super::{Cursor, Process, Thread, freezer, session};
use crate::current::Current;
use crate::signal::{Signal, Work, broadcast};

/// Whether job control has stopped a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobState {
    /// It has not.
    #[default]
    Running,
    /// Some of its threads have not noticed yet.
    Stopping {
        /// By which signal.
        signal: Signal,
        /// How many.
        left: usize,
    },
    /// It has, by this signal.
    Stopped(Signal),
}

/// What job control knows of a process.
///
/// Threads come and leave on several cores while a stop begins. Who is counted is decided under this one lock: a stop counts those that have joined and not left, and each
/// of them says once that it stops or leaves. A thread's flag `Work::STOP` is set and taken away with it locked, too: nobody stops for a stop that is over.
/// Signals that stop or continue become pending, and those that stop are taken, with it locked: so they have an order, and each undoes the last one of the other kind.
#[derive(Default)]
pub(super) struct Job {
    pub state: JobState,
    /// How many threads have joined and not left.
    threads: usize,
    /// How often a stop has begun.
    stops: u64,
    /// How often it was told to go on, stopped or not.
    pub continues: u64,
    /// It has stopped and no wait(2) has told so yet.
    pub stop_to_report: bool,
    /// It was continued and no wait(2) has told so yet.
    pub continue_to_report: bool,
}

/// Has all threads of the process stop. They may be very many, so they are told one after the other ([`stop_next`]): the first now, the others by a task, or
/// when their time slice is over. Nothing if the process was told to go on since it had been `continued` times: the signal that stops was sent before that, and taken from
/// where it would have been discarded.
pub fn begin_stop(process: &Process, signal: Signal, continued: u64, cx: &impl NoSuspend) {
    let stop = {
        let mut job = process.job.lock(cx);
        if job.state != JobState::Running || job.continues != continued || process.is_exiting() {
            return;
        }
        job.state = JobState::Stopping { signal, left: job.threads };
        job.stops += 1;
        job.continue_to_report = false;
        job.stops
    };
    broadcast::stop_threads(process, stop, cx);
}

/// The process, which ends, is killed: those of its threads that stand for their tracers at their ends go on.
#[cold]
#[inline(never)]
pub fn end_stops_at_exit(process: &Process, cx: &impl NoSuspend) {
    process.tracing.note_kill();
    let stop = process.job.lock(cx).stops;
    broadcast::continue_threads(process, stop, cx);
}

/// Tells the next of a walk through the process' threads of its stop number `stop`; false if there is no more, or the stop is over.
pub fn stop_next(process: &Process, stop: u64, last: &mut Cursor, cx: &impl NoSuspend) -> bool {
    let Some(thread) = process.next_thread(last, cx) else { return false };
    let Ok(thread) = thread.upgrade(cx) else { return true };
    {
        let job = process.job.lock(cx);
        if job.stops != stop || !matches!(job.state, JobState::Stopping { .. }) {
            return false;
        }
        thread.signals.add_work(Work::STOP);
    }
    thread.wake(cx);
    true
}

/// If the process is about to stop, the thread does, whether it was told or not.
pub fn notice_stop(process: &Process, thread: &Thread, cx: &impl NoSuspend) {
    let job = process.job.lock(cx);
    if matches!(job.state, JobState::Stopping { .. }) {
        thread.signals.add_work(Work::STOP);
    }
}

/// If the process is stopped or about to, the thread stops as well, which is traced, or was: it may have gone on meanwhile.
pub fn stop_with_others(process: &Process, thread: &Thread, cx: &impl NoSuspend) {
    let job = process.job.lock(cx);
    if job.state != JobState::Running {
        thread.signals.add_work(Work::STOP);
    }
}

/// A thread joins. If the process is about to stop, it has to stop, too: it was made by one that was not told yet.
pub(super) fn one_joins(process: &Process, thread: &Thread, cx: &impl NoSuspend) {
    let mut job = process.job.lock(cx);
    job.threads += 1;
    if let JobState::Stopping { left, .. } = &mut job.state {
        *left += 1;
        thread.signals.add_work(Work::STOP);
    }
}

/// A thread leaves, and does not have to stop any more.
pub(super) fn one_leaves(process: &Process, thread: &Thread, cx: &impl NoSuspend) {
    let mut job = process.job.lock(cx);
    job.threads -= 1;
    if let JobState::Stopping { .. } = job.state {
        one_fewer_has_to_stop(process, job, thread, cx);
    }
}

/// A thread has stopped. Nothing if it has said so already.
pub(super) fn one_has_stopped(process: &Process, thread: &Thread, cx: &impl NoSuspend) {
    one_fewer_has_to_stop(process, process.job.lock(cx), thread, cx);
}

fn one_fewer_has_to_stop(process: &Process, mut job: SpinGuard<'_, Job>, thread: &Thread, cx: &impl NoSuspend) {
    let JobState::Stopping { signal, left } = job.state else { return };
    if thread.stop_said.swap(job.stops, Ordering::Relaxed) == job.stops {
        return;
    }
    if left > 1 {
        job.state = JobState::Stopping { signal, left: left - 1 };
        return;
    }
    job.state = JobState::Stopped(signal);
    drop(job);
    session::count_if_stopped(process, cx);
    let is_stopped = || {
        let mut job = process.job.lock(cx);
        job.stop_to_report = matches!(job.state, JobState::Stopped(_));
        job.stop_to_report
    };
    tell_parent(process, abi::CLD_STOPPED, signal.number(), is_stopped, cx);
}

/// A process that has ended is stopped no more.
pub(super) fn forget(process: &Process, cx: &impl NoSuspend) {
    process.job.lock(cx).state = JobState::Running;
    session::count_if_stopped(process, cx);
}

/// Runs `f`, before or after whatever else is done about stops: it is told how often the process was told to go on until then.
pub fn in_order_of_stops<R>(process: &Process, f: impl FnOnce(u64) -> R, cx: &impl NoSuspend) -> R {
    let job = process.job.lock(cx);
    f(job.continues)
}

/// Has the process go on if it is stopped (or about to) and runs `change`, which is one thing. What is returned is to be finished.
///
/// # Errors
/// That of `change`.
pub fn continue_with<E>(
    process: &Process,
    change: impl FnOnce() -> Result<(), E>,
    cx: &impl NoSuspend,
) -> Result<Option<Continuation>, E> {
    let mut job = process.job.lock(cx);
    change()?;
    job.continues += 1;
    let was = core::mem::take(&mut job.state);
    if was == JobState::Running {
        return Ok(None);
    }
    job.stop_to_report = false;
    job.continue_to_report = true;
    Ok(Some(Continuation { was, stop: job.stops }))
}

/// A process is not stopped any more, but neither its threads nor its parent know.
#[must_use = "the threads stay where they are until it is finished"]
pub struct Continuation {
    was: JobState,
    stop: u64,
}

impl Continuation {
    /// Tells the threads, as they are of a stop, and the parent. No lock is held: that of the parent's children is taken.
    pub fn finish(self, process: &Process, cx: &impl NoSuspend) {
        session::count_if_stopped(process, cx);
        process.with_parent(cx, |_, children| children.has_changed(process));
        broadcast::continue_threads(process, self.stop, cx);
        if matches!(self.was, JobState::Stopped(_)) {
            tell_parent(process, abi::CLD_CONTINUED, Signal::CONT.number(), || true, cx);
        }
    }
}

/// Has the next of a walk through the process' threads go on after stop number `stop`; false if there is no more, or another stop has begun: those that
/// have not gone on then stay where they are.
pub fn continue_next(process: &Process, stop: u64, last: &mut Cursor, cx: &impl NoSuspend) -> bool {
    let Some(thread) = process.next_thread(last, cx) else { return false };
    let Ok(thread) = thread.upgrade(cx) else { return true };
    {
        let job = process.job.lock(cx);
        if job.stops != stop {
            return false;
        }
        thread.signals.remove_work(Work::STOP);
    }
    thread.signals.look_again(&process.pending);
    thread.wake(cx);
    true
}

/// The calling thread stops until its process is continued or ends.
pub fn wait_while_stopped_async(cx: &mut Cx, me: &Current) {
    loop {
        // All threads of the process come by here one after the other.
        frame::irq::poll(cx);
        let _ = tasks::prepare(cx);
        // A new stop may begin before it has gone on after the last one. It is told of one that begins behind this by the end of the wait.
        if let (Ok(process), Ok(thread)) = (me.process(cx), me.thread(cx)) {
            one_has_stopped(&process, &thread, cx);
            freezer::note_standing(&process, &thread, cx);
        }
        let stays = me.thread(cx).is_ok_and(|thread| {
            (thread.signals.work() & (Work::STOP | Work::EXIT)) == Work::STOP && !thread.tracing.is_traced()
        });
        if !stays {
            tasks::finish_wait(cx);
            if let (Ok(process), Ok(thread)) = (me.process(cx), me.thread(cx)) {
                freezer::note_going(&process, &thread, cx);
            }
            return;
        }
        me.note_wait_outside(cx);
        tasks::park_async(cx);
    }
}
