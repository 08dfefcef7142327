//! The cold paths of suspensions and blocks. Names that end in an underscore are for the headers only.
#![cfg_attr(false, ebb_lint::root)]

use core::ffi::c_int;

use super::{context, name_of, own, wait_async};
use crate::rt::AweRef;
use crate::rt::finish;
use crate::rt::layout::{Awe, Finish, block_flags, states};
use crate::rt::suspend::{detach_all, hand_over_async, yield_to_async};

/// Another task to be, with a stack; null if there is no memory for one.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_refill_() -> Option<&'static Awe> {
    // SAFETY: the thread runs tasks.
    unsafe { own() }.refill()
}

/// A task that had names has ended.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_retire_(task: &'static Awe) {
    // SAFETY: the thread runs tasks.
    unsafe { own() }.retire(task);
}

/// Takes in what other threads ask for.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_take_in_() {
    // SAFETY: the thread runs tasks.
    unsafe { own() }.take_in();
}

/// The next task, as soon as there is one.
///
/// # Safety
/// As the module says; the running task suspends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_wait_for_next_() -> &'static Awe {
    // SAFETY: the thread runs tasks.
    let (runtime, mut cx) = unsafe { (own(), context()) };
    runtime.wait_for_next(&mut cx)
}

/// Makes room in the run queue.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_close_ranks_() {
    // SAFETY: the thread runs tasks.
    unsafe { own() }.close_ranks();
}

/// Frees objects that waited for this thread to suspend.
///
/// # Safety
/// As the module says; the running task suspends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_quiescent_() {
    // SAFETY: the thread runs tasks.
    let (runtime, mut cx) = unsafe { (own(), context()) };
    // SAFETY: it is the number under which this thread registered.
    unsafe { refs::reclaim::quiescent(&mut cx, runtime.core.get() as usize, usize::MAX) };
}

/// The running task, which is attached, is about to be queued: those that called it go on by themselves.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_detach_all_() {
    // SAFETY: the thread runs tasks.
    let runtime = unsafe { own() };
    detach_all(runtime, runtime.running(), None);
}

/// Ends the running task, which is detached.
///
/// # Safety
/// As the module says; nothing on the task's stack is needed any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_end_detached_() -> ! {
    // SAFETY: the thread runs tasks.
    let (runtime, mut cx) = unsafe { (own(), context()) };
    match finish::end_detached(&mut cx, runtime) {}
}

/// Suspends until the block is empty.
///
/// # Safety
/// As the module says; the running task is in the block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_wait_for_tasks_(block: &Finish) {
    // SAFETY: the thread runs tasks.
    let mut cx = unsafe { context() };
    wait_async(&mut cx, |cx| {
        if block.count.get() != 0 {
            finish::wait_for_tasks_async(cx, block);
        }
    });
}

/// Takes a block out of its parent's list.
///
/// # Safety
/// As the module says; the block is in that list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_unlink_(block: &Finish) {
    block.unlink();
}

/// The running task leaves its innermost block, in which nothing is left.
pub(super) fn leave(block: &Finish, me: &Awe) {
    me.block.set(block.parent.get());
    if block.flags.get() & block_flags::LINKED != 0 {
        block.unlink();
    }
}

/// Asks another thread to run a task that is suspended there. 0, or -1 if it has ended.
///
/// # Safety
/// The task's memory came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_schedule_remote_(task: *const Awe) -> c_int {
    // SAFETY: by this function's contract.
    result(unsafe { name_of(task) }.schedule())
}

/// All cases of yielding to a task that are not inlined.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_yield_to_(task: *const Awe) -> c_int {
    // SAFETY: the thread runs tasks; the task's memory is of this library.
    let (mut cx, target) = unsafe { (context(), name_of(task)) };
    if !may_be_resumed(target) {
        return -1;
    }
    let mut begun = false;
    wait_async(&mut cx, |cx| {
        // Interrupted by force: it has run again.
        if core::mem::replace(&mut begun, true) { 0 } else { result(yield_to_async(cx, target)) }
    })
}

/// All cases of handing over to a task that are not inlined.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_hand_over_(task: *const Awe) -> c_int {
    // SAFETY: the thread runs tasks; the task's memory is of this library.
    let (mut cx, target) = unsafe { (context(), name_of(task)) };
    if !may_be_resumed(target) {
        return -1;
    }
    let mut begun = false;
    wait_async(&mut cx, |cx| {
        // Interrupted by force: it has run again.
        if core::mem::replace(&mut begun, true) { 0 } else { result(hand_over_async(cx, target)) }
    })
}

/// Whether a task can be switched to or asked for. What a pointer of C names may have ended, and looks like a task that has called others then.
fn may_be_resumed(target: AweRef) -> bool {
    // SAFETY: the callers' contract: the thread runs tasks.
    let runtime = unsafe { own() };
    let awe = target.awe;
    if !core::ptr::eq(awe.runtime, runtime) || awe.state() != states::ACTIVE || runtime.is_queued(awe) {
        return true;
    }
    core::iter::successors(runtime.running().parent.get(), |caller| caller.parent.get())
        .any(|caller| core::ptr::eq(caller, awe))
}

fn result<T, E>(result: Result<T, E>) -> c_int {
    if result.is_ok() { 0 } else { -1 }
}
