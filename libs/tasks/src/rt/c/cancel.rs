//! Cancellation: requests, items, and the `_x` forms of suspensions.
#![cfg_attr(false, ebb_lint::root)]

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;

use refs::{Cx, Waker};

use super::{context, own, wait_async};
use crate::rt::cancel::{
    Act, Duty, Item, Progress, is_cancel_requested, request_async, suspend_then_x_async, yield_x_async,
};
use crate::rt::layout::{Awe, Finish};
use crate::rt::{Canceled, park_async, prepare};

/// A function of C with what it is called with.
pub(super) type Action = unsafe extern "C" fn(*mut c_void);

/// What an operation returns that was canceled.
pub(super) fn canceled<T>(result: Result<T, Canceled>) -> c_int {
    if result.is_ok() { 0 } else { -libc::ECANCELED }
}

/// Asks what is in a block to end early, and runs the cancel items inside it.
///
/// # Safety
/// As the module says; the running task is in the block, at whatever depth.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_cancel(block: &Finish) {
    // SAFETY: the thread runs tasks.
    let mut cx = unsafe { context() };
    wait_async(&mut cx, |cx| request_async(cx, block));
}

/// Whether the innermost block of the running task is asked to end early.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_is_cancel_requested() -> c_int {
    // SAFETY: the thread runs tasks.
    c_int::from(is_cancel_requested(&unsafe { context() }))
}

/// Yields; 0, or `-ECANCELED` if the block was asked to end, before or meanwhile.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_yield_x() -> c_int {
    // SAFETY: the thread runs tasks.
    let mut cx = unsafe { context() };
    wait_async(&mut cx, |cx| canceled(yield_x_async(cx)))
}

/// Suspends as `ac_suspend_then` does; 0, or `-ECANCELED` if the block was asked to end, before (then `publish` is not called) or
/// before anybody else resumed the task.
///
/// # Safety
/// As the module says; `publish(argument)` may be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_suspend_then_x(
    task: &mut Option<&'static Awe>,
    publish: Option<Action>,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the thread runs tasks.
    let mut cx = unsafe { context() };
    let mut published = false;
    canceled(wait_async(&mut cx, |cx| {
        // Interrupted by force after it was published: that counts as resumed.
        if published {
            return Ok(());
        }
        suspend_then_x_async(cx, |name| {
            published = true;
            *task = Some(name.awe);
            if let Some(publish) = publish {
                // SAFETY: by this function's contract.
                unsafe { publish(argument) };
            }
        })
    }))
}

/// What C has memory for: `ac_cancel_item`.
#[repr(C)]
pub struct CancelItem {
    item: Item,
    work: Work,
}

impl core::fmt::Debug for CancelItem {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "CancelItem({self:p})")
    }
}

const _: () = assert!(size_of::<CancelItem>() <= 128 && align_of::<CancelItem>() <= 8);

struct Work {
    action: Action,
    argument: *mut c_void,
    progress: Cell<Progress>,
    /// Whoever waits for the end of the action.
    waiter: Cell<Option<Waker>>,
}

impl Act for Work {
    fn act_async(&self, _cx: &mut Cx) {
        self.progress.set(Progress::Begun);
        // SAFETY: whoever added the item promised that the action may be called; it has the right to suspend in the place of `_cx`.
        unsafe { (self.action)(self.argument) };
        self.progress.set(Progress::Done);
        if let Some(waiter) = self.waiter.take() {
            waiter.wake();
        }
    }
}

/// Enters an item in the running task's block: a request for cancellation runs `action(argument)`, in the task that asks. If the block was
/// asked before, the action runs at once.
///
/// # Safety
/// As the module says. The item stays where it is until it was removed, which comes before the end of the block. `action(argument)` may be
/// called until then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_cancel_item_add(
    item: &'static mut MaybeUninit<CancelItem>,
    action: Action,
    argument: *mut c_void,
) {
    // SAFETY: the thread runs tasks.
    let (runtime, mut cx) = unsafe { (own(), context()) };
    let work = &raw const item
        .write(CancelItem {
            item: Item::new(Duty::Resume(runtime.running().reference())),
            work: Work { action, argument, progress: Cell::new(Progress::NotBegun), waiter: Cell::new(None) },
        })
        .work;
    // SAFETY: written just now. The item gets the address of its own work, and stays where it is.
    let item = unsafe {
        (&raw mut (*item.as_mut_ptr()).item).write(Item::new(Duty::Act(work)));
        item.assume_init_ref()
    };
    if is_cancel_requested(&cx) {
        item.work.act_async(&mut cx);
    } else {
        // SAFETY: the running task is in its block; by this function's contract the item is taken out before that ends.
        unsafe { item.item.link(&*runtime.running().block.get()) };
    }
}

/// Takes an item out of *its* block. 0 if its action was not begun, and is not from here on; 1 if it has run: one that has begun is
/// waited for.
///
/// # Safety
/// As the module says; the item was added.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_cancel_item_remove(item: &CancelItem) -> c_int {
    // SAFETY: the thread runs tasks.
    let mut cx = unsafe { context() };
    item.item.unlink();
    while item.work.progress.get() == Progress::Begun {
        wait_async(&mut cx, |cx| {
            item.work.waiter.set(Some(prepare(cx)));
            park_async(cx)
        });
    }
    c_int::from(item.work.progress.get() == Progress::Done)
}

/// Whether an item's action was begun.
///
/// # Safety
/// As the module says; the item was added.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ac_cancel_item_ran(item: &CancelItem) -> c_int {
    c_int::from(item.work.progress.get() != Progress::NotBegun)
}
