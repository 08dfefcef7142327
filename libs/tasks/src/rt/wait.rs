//! Waiting by [`Waker`]: for [`refs::WaitList`]s, and for the death of objects.

use core::ptr::with_exposed_provenance;

use refs::{Cx, Gone, Mortal, WakeSlot, Waker};

use super::finish::{Caught, catch};
use super::layout::{Awe, Runtime, states};
use super::runtime::{is_own, runtime};
use super::suspend::{successor, suspending, switch_to};

/// Begins a wait of the running task: enter the waker wherever something may happen, then [`park_async`].
#[inline(always)]
pub fn prepare(cx: &Cx) -> Waker {
    runtime(cx).running().wake.prepare()
}

/// Ends a wait that was prepared, without parking. Whether a waker had ended it before.
#[inline(always)]
pub fn finish_wait(cx: &Cx) -> bool {
    runtime(cx).running().wake.finish()
}

/// Suspends until the prepared wait is ended by one of its wakers, from whatever thread; returns at once if it was ended already.
/// False if it was not ended by a waker: the task was [aborted](super::abort_async) where panics do not unwind.
#[inline(always)]
#[cfg_attr(false, ebb_lint::leaf)]
pub fn park_async(cx: &mut Cx) -> bool {
    let (runtime, me) = suspending(cx);
    if me.wake.commit() {
        // A request that was on its way when an earlier wait was cut short ends nothing.
        while me.wake.is_parked() {
            me.set_state(states::WAITING);
            let next = successor(cx, runtime, me);
            // SAFETY: `me` is parked: its waker resumes it. `next` was taken out of the queue, or called `me`.
            unsafe { switch_to(runtime, me, next) };
        }
    }
    me.wake.finish()
}

/// Parks as [`park_async`] does; if the task unwinds from there because it is aborted, says so instead. `what` is for reports.
#[inline(always)]
#[cfg_attr(false, ebb_lint::leaf)]
#[cfg_attr(false, ebb_lint::root)]
pub(crate) fn park_caught_async(cx: &mut Cx, what: &'static &'static str) -> Caught<bool> {
    let me = runtime(cx).running();
    me.waits_for.set(what);
    let woken = catch(|| park_async(cx));
    me.waits_for.set(&"");
    woken
}

/// Waits for something, as long as all of `needs` live.
///
/// `step` is called before each wait, and first of all: it enters the waker wherever the event will be announced, *then* looks
/// whether it has happened already. Each wake-up, for whatever reason, is followed by another `step`.
///
/// # Errors
/// [`Gone`] as soon as one of `needs` is destroyed, also if the event has happened too.
pub fn wait_async<R>(
    cx: &mut Cx,
    mut step: impl FnMut(&Cx, Waker) -> Option<R>,
    needs: &[&dyn Mortal],
) -> Result<R, Gone> {
    loop {
        let waker = prepare(cx);
        for need in needs {
            need.watch_end(waker, cx);
        }
        let result = step(cx, waker);
        if needs.iter().any(|need| need.is_gone()) {
            finish_wait(cx);
            return Err(Gone);
        }
        if let Some(result) = result {
            finish_wait(cx);
            return Ok(result);
        }
        park_async(cx);
    }
}

/// Called by a waker: the parked task, whose slot this is, may run.
pub(crate) fn make_ready(slot: &'static WakeSlot) {
    // SAFETY: every slot with this function is in an Awe whose exposed address is the token, and which is never freed.
    let awe: &'static Awe = unsafe { &*with_exposed_provenance(slot.token()) };
    if is_own(awe.runtime) {
        // A late request of another thread may have put it into the queue already: there it finds out that its wait has ended.
        if awe.state() == states::WAITING {
            awe.runtime.make_ready(awe);
        }
    } else {
        Runtime::request(awe, |old| old | 1);
    }
}
