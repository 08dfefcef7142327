//! Ways to suspend. Each is inlined into its caller up to and including the switch (module comment of [`rt`](super)).

use refs::{Cx, reclaim};

use super::awe::{AweRef, NotSuspended};
use super::ids::{Id, NotSaved};
use super::layout::{Awe, Runtime, states};
use super::runtime::runtime;
use crate::arch::context::exchange;
use crate::atomic::Ordering;

/// Switches from the running task, which is queued or parked, to `next`, which is neither any more.
///
/// # Safety
/// As said; `cx` is the running task's.
#[inline(always)]
pub(crate) unsafe fn switch_to(runtime: &'static Runtime, me: &'static Awe, next: &'static Awe) {
    runtime.current.set(Some(next));
    // SAFETY: `next` was suspended by `exchange` or by `call_on`, and is resumed once, because it was taken out of the
    // queue or out of its parked state.
    unsafe { exchange(&me.context, &next.context) };
}

/// The task of `cx`, which is about to suspend.
#[inline(always)]
#[cfg_attr(false, ebb_lint::never_suspends)]
pub(crate) fn suspending(cx: &mut Cx) -> (&'static Runtime, &'static Awe) {
    let runtime = runtime(cx);
    // SAFETY: it is the number under which this thread registered.
    unsafe { reclaim::quiescent(cx, runtime.core.get() as usize, usize::MAX) };
    (runtime, runtime.running())
}

/// Says to the compiler that the block it is called in is the less likely one: a task suspends for the first time only once.
#[cold]
fn seldom() {}

/// If `me` is attached: detaches it, and says who called it.
#[inline(always)]
pub(crate) fn detach(me: &'static Awe) -> Option<&'static Awe> {
    let parent = me.parent.get()?;
    seldom();
    me.parent.set(None);
    // SAFETY: a task that is attached is in a block of a task that has not ended, so the block exists.
    let block = unsafe { &*me.home.get() };
    block.count.set(block.count.get() + 1);
    Some(parent)
}

/// Detaches `me` and all that called it, and queues them: those further out are further in front. Leaves `except` out.
#[cold]
#[inline(never)]
pub(crate) fn detach_all(runtime: &'static Runtime, me: &'static Awe, except: Option<&'static Awe>) {
    let mut task = me;
    while let Some(parent) = detach(task) {
        if !except.is_some_and(|except| core::ptr::eq(except, parent)) {
            runtime.push_front(parent);
            runtime.make_room();
        }
        task = parent;
    }
}

/// Who runs after `me`, which is queued or parked already.
#[inline(always)]
#[cfg_attr(false, ebb_lint::never_suspends)]
pub(crate) fn successor(cx: &mut Cx, runtime: &'static Runtime, me: &'static Awe) -> &'static Awe {
    detach(me).unwrap_or_else(|| runtime.next(cx))
}

/// Lets all that is queued run first.
///
/// A child that was called by its parent and suspends for the first time lets its parent go on before everything else.
#[inline(always)]
#[cfg_attr(false, ebb_lint::leaf)]
pub fn yield_async(cx: &mut Cx) {
    let (runtime, me) = suspending(cx);
    runtime.look_at_remote();
    let next = match detach(me) {
        Some(parent) => {
            runtime.push_back(me);
            runtime.make_room();
            parent
        }
        None => runtime.rotate(me).unwrap_or_else(|| runtime.wait_for_next(cx)),
    };
    // SAFETY: `me` is queued and `next` was taken out of the queue, or called `me`.
    unsafe { switch_to(runtime, me, next) };
}

/// Suspends until somebody [schedules](AweRef::schedule) this task or yields to it.
#[inline(always)]
pub fn suspend_async(cx: &mut Cx) {
    suspend_then_async(cx, |_| ());
}

/// Suspends as [`suspend_async`] does, and calls `publish` with the task's name after it became suspended and before another one
/// runs: so nobody can be too early, on this thread or another. (The place to let a lock go.)
#[inline(always)]
#[cfg_attr(false, ebb_lint::leaf)]
pub fn suspend_then_async(cx: &mut Cx, publish: impl FnOnce(AweRef)) {
    let (runtime, me) = suspending(cx);
    me.set_state(states::PARKED);
    let name = me.reference();
    let undo = Unpark { runtime, me };
    publish(name);
    core::mem::forget(undo);
    let next = successor(cx, runtime, me);
    // SAFETY: `me` is parked, or queued by `publish`; `next` was taken out of the queue, or called `me`.
    unsafe { switch_to(runtime, me, next) };
}

/// The task did not suspend after all: what was to be done first has panicked.
struct Unpark {
    runtime: &'static Runtime,
    me: &'static Awe,
}

impl Drop for Unpark {
    fn drop(&mut self) {
        self.me.set_state(states::ACTIVE);
        if self.runtime.is_queued(self.me) {
            self.runtime.remove(self.me);
        }
    }
}

/// Where the target of a switch was.
enum Target {
    /// It was queued or parked and is neither any more.
    Taken,
    /// It has called, directly or not, the running task.
    Calls,
}

/// Takes a task of this thread out of the queue or out of its parked state.
#[inline(always)]
fn take(runtime: &'static Runtime, me: &'static Awe, target: AweRef) -> Result<Target, NotSuspended> {
    let awe = target.awe;
    if !target.unpark() {
        if awe.life.load(Ordering::Relaxed) != target.life + states::ACTIVE || core::ptr::eq(awe, me) {
            return Err(NotSuspended);
        }
        if !runtime.is_queued(awe) {
            return Ok(Target::Calls);
        }
        runtime.remove(awe);
    }
    Ok(Target::Taken)
}

/// What happened to a task that the running one wanted to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yielded {
    /// It ran, and this task runs again now.
    Switched,
    /// It belongs to another thread, which was asked to run it; this task did not suspend.
    Requested,
}

/// Switches to `target`, whether it is queued or suspended itself; the running task goes to the end of the queue. A target of
/// another thread is only [scheduled](AweRef::schedule).
///
/// # Errors
/// [`NotSuspended`] if the target has ended, is the running task, or waits for something else; then nothing has happened.
#[inline(always)]
#[cfg_attr(false, ebb_lint::leaf)]
pub fn yield_to_async(cx: &mut Cx, target: AweRef) -> Result<Yielded, NotSuspended> {
    let (runtime, me) = suspending(cx);
    if !core::ptr::eq(target.awe.runtime, runtime) {
        return target.schedule().map(|()| Yielded::Requested);
    }
    let took = take(runtime, me, target)?;
    runtime.push_back(me);
    runtime.make_room();
    go_to(runtime, me, target, took);
    Ok(Yielded::Switched)
}

/// Switches to `target` and suspends the running task: it is *not* queued, and somebody must name it to resume it. The
/// cheapest way from one task to another; dispatches nothing and takes in nothing from other threads.
///
/// # Errors
/// [`NotSuspended`] as for [`yield_to_async`], and for a target of another thread.
#[inline(always)]
#[cfg_attr(false, ebb_lint::leaf)]
pub fn hand_over_async(cx: &mut Cx, target: AweRef) -> Result<(), NotSuspended> {
    let (runtime, me) = suspending(cx);
    if !core::ptr::eq(target.awe.runtime, runtime) {
        return Err(NotSuspended);
    }
    let took = take(runtime, me, target)?;
    me.park();
    go_to(runtime, me, target, took);
    Ok(())
}

#[inline(always)]
fn go_to(runtime: &'static Runtime, me: &'static Awe, target: AweRef, took: Target) {
    match took {
        Target::Taken if me.parent.get().is_none() => {}
        Target::Taken => detach_all(runtime, me, None),
        Target::Calls => detach_all(runtime, me, Some(target.awe)),
    }
    // SAFETY: `me` is queued or parked; the target was taken out of the queue, out of its parked state, or out of its call.
    unsafe { switch_to(runtime, me, target.awe) };
}

/// Yields as [`yield_async`] does; meanwhile the task can be found under `id`.
///
/// # Errors
/// [`NotSaved`] if there is no such id, or another task is saved under it; then nothing has happened.
#[inline(always)]
pub fn yield_and_save_async(cx: &mut Cx, id: Id) -> Result<(), NotSaved> {
    let runtime = runtime(cx);
    let me = runtime.running();
    runtime.vacant(id)?.save(id, me);
    yield_async(cx);
    back(runtime, me);
    Ok(())
}

/// Suspends as [`suspend_async`] does; the task can be found, and resumed, under `id`.
///
/// # Errors
/// As for [`yield_and_save_async`].
#[inline(always)]
pub fn yield_and_save_no_dispatch_async(cx: &mut Cx, id: Id) -> Result<(), NotSaved> {
    let runtime = runtime(cx);
    let me = runtime.running();
    runtime.vacant(id)?.save(id, me);
    suspend_async(cx);
    back(runtime, me);
    Ok(())
}

/// A task that has saved itself under an id goes on, or unwinds because it is aborted (the one way in which a suspension does not return):
/// nobody finds it there any more.
#[inline(always)]
pub(crate) fn back(runtime: &'static Runtime, me: &'static Awe) {
    // Who resumes it by its id has taken it out there.
    if me.saved_under.get() != 0 {
        runtime.unsave(me);
    }
}

/// Yields to the task that is saved under `id`, as [`yield_to_async`] does.
///
/// # Errors
/// [`NotSaved`] if there is no such id, or no suspended task is saved under it; then nothing has happened.
#[inline(always)]
pub fn yield_to_id_async(cx: &mut Cx, id: Id) -> Result<(), NotSaved> {
    go_to_id_async::<true>(cx, id, None)
}

/// Hands over to the task that is saved under `id`, as [`hand_over_async`] does.
///
/// # Errors
/// As for [`yield_to_id_async`].
#[inline(always)]
pub fn yield_to_id_no_dispatch_async(cx: &mut Cx, id: Id) -> Result<(), NotSaved> {
    go_to_id_async::<false>(cx, id, None)
}

/// Yields to the task that is saved under `to`; meanwhile the running one, which is queued, can be found under `from`.
///
/// # Errors
/// [`NotSaved`] as for [`yield_to_id_async`] and [`yield_and_save_async`]; then nothing has happened.
#[inline(always)]
pub fn yield_to_id_and_save_async(cx: &mut Cx, to: Id, from: Id) -> Result<(), NotSaved> {
    go_to_id_async::<true>(cx, to, Some(from))
}

/// Hands over to the task that is saved under `to`; the running one is suspended and can be found under `from`.
///
/// # Errors
/// As for [`yield_to_id_and_save_async`].
#[inline(always)]
pub fn yield_to_id_and_save_no_dispatch_async(cx: &mut Cx, to: Id, from: Id) -> Result<(), NotSaved> {
    go_to_id_async::<false>(cx, to, Some(from))
}

/// Switches to the task under `to`, which is of this thread as all in the table are. The running one is queued or suspended, and
/// saved under `from`.
#[inline(always)]
#[cfg_attr(false, ebb_lint::leaf)]
fn go_to_id_async<const QUEUED: bool>(cx: &mut Cx, to: Id, from: Option<Id>) -> Result<(), NotSaved> {
    let (runtime, me) = suspending(cx);
    let (entry, target) = runtime.occupied(to)?;
    let place = match from {
        Some(from) => Some((runtime.vacant(from)?, from)),
        None => None,
    };
    let took = take(runtime, me, target)?;
    entry.resumed(to, target.awe);
    if let Some((place, from)) = place {
        place.save(from, me);
    }
    if QUEUED {
        runtime.push_back(me);
        runtime.make_room();
    } else {
        me.park();
    }
    go_to(runtime, me, target, took);
    if from.is_some() {
        back(runtime, me);
    }
    Ok(())
}
