//! Ending early: asking all tasks to stop, and ending one task by force.

use refs::Cx;

use super::awe::{AweRef, NotSuspended};
use super::layout::{awe_flags, states};
use super::runtime::runtime;
use super::suspend::{detach_all, suspending};
use crate::arch::context::exchange_to_end;

/// What a task unwinds with that is ended by [`abort_async`]. Its block does not count it as a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted;

/// Asks all tasks of this thread to stop: from here on [`should_stop`] says so. Nothing is forced.
pub fn stop_all(cx: &Cx) {
    runtime(cx).stopping.set(true);
}

/// Whether the running task ought to end: [`stop_all`] was called, or this task was [aborted](abort_async) where nothing can unwind.
#[inline(always)]
pub fn should_stop(cx: &Cx) -> bool {
    let runtime = runtime(cx);
    runtime.stopping.get() || runtime.running().flags.get() & awe_flags::ABORTED != 0
}

/// Ends another task of this thread by force: it is resumed at once and unwinds from where it is suspended, running its
/// destructors; its blocks still wait for their tasks. A task that waits for a block's tasks unwinds when they have ended. The
/// running task goes to the end of the queue; a task that aborts itself unwinds from here. The first task's abort ends in a panic of
/// the thread with [`Aborted`].
///
/// Where panics do not unwind (without `std`, or with `panic = "abort"`) the task is only asked: it is resumed, and
/// [`should_stop`] says true to it.
///
/// # Errors
/// [`NotSuspended`] if the task has ended or belongs to another thread.
#[cfg_attr(false, ebb_lint::leaf)]
pub fn abort_async(cx: &mut Cx, target: AweRef) -> Result<(), NotSuspended> {
    let (runtime, me) = suspending(cx);
    let awe = target.awe;
    if !target.is_alive() || !core::ptr::eq(awe.runtime, runtime) {
        return Err(NotSuspended);
    }
    awe.flags.set(awe.flags.get() | awe_flags::ABORTED);
    if core::ptr::eq(awe, me) {
        end_this_task();
        return Ok(());
    }
    match awe.state() {
        // It looks at its flag when its tasks have ended.
        states::FINISHING => return Ok(()),
        // If it was woken just now, by another thread, it keeps what it was woken for, to pass it on.
        states::WAITING => _ = awe.wake.withdraw(),
        states::PARKED => {}
        _ if runtime.is_queued(awe) => runtime.remove(awe),
        // It has called this task, directly or not.
        _ => {
            detach_all(runtime, me, None);
            runtime.remove(awe);
        }
    }
    awe.set_state(states::ACTIVE);
    detach_all(runtime, me, None);
    runtime.push_back(me);
    runtime.make_room();
    runtime.current.set(Some(awe));
    // SAFETY: `me` is queued; the target was taken out of the queue or out of its wait.
    unsafe { exchange_to_end(&me.context, &awe.context) };
    Ok(())
}

/// The running task was resumed to end.
#[cold]
#[inline(never)]
pub(crate) fn end_this_task() {
    #[cfg(all(feature = "std", panic = "unwind"))]
    {
        // A destructor that suspends must not be unwound from.
        if !std::thread::panicking() {
            // SAFETY: a task runs, so the thread has a run-time.
            let runtime = unsafe { &*super::thread::own_runtime() };
            super::suspend::back(runtime, runtime.running());
            std::panic::resume_unwind(alloc::boxed::Box::new(Aborted));
        }
    }
}
