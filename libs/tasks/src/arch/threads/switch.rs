//! Switching stacks where each is a thread (`threads`). It stands in for `x86_64/switch.rs` and means the same: where a stack goes on is the
//! address of its thread's baton.

use alloc::boxed::Box;
use core::ptr::{from_ref, with_exposed_provenance};

use super::{Baton, Job, Order, take_free};
use crate::rt::thread::{own_runtime, set_own_runtime};

/// Stores where the calling thread goes on.
///
/// # Safety
/// `save` is writable.
unsafe fn save_own(save: *mut usize) {
    // SAFETY: by this function's contract.
    unsafe { save.write(from_ref(Baton::own()).expose_provenance()) };
}

/// # Safety
/// `to` was stored by `save_own`.
unsafe fn baton_at(to: usize) -> &'static Baton {
    // SAFETY: by this function's contract; batons are never freed.
    unsafe { &*with_exposed_provenance(to) }
}

fn wait_to_go_on() {
    let Order::GoOn = Baton::own().receive() else { unreachable!("a suspended stack goes on") };
}

/// See `x86_64/switch.rs`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn switch(save: *mut usize, to: usize) {
    // SAFETY: by this function's contract.
    unsafe {
        save_own(save);
        baton_at(to).send(Order::GoOn);
    }
    wait_to_go_on();
}

/// See `x86_64/switch.rs`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn switch_to_new(
    save: *mut usize,
    _top: usize,
    entry: extern "C" fn(*const ()),
    argument: *const (),
) {
    // SAFETY: by this function's contract.
    unsafe { save_own(save) };
    // The new thread counts as the worker's.
    let runtime = own_runtime();
    let run = Box::new(move || {
        set_own_runtime(runtime);
        entry(argument);
    });
    take_free().send(Order::Run(Job { run, caller: None }));
    wait_to_go_on();
}

/// See `x86_64/switch.rs`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn leave_for(to: usize) {
    // SAFETY: by this function's contract.
    super::leave_for(unsafe { baton_at(to) });
}
