//! Switching between tasks where each is a thread (`threads`). It stands in for `x86_64/context.rs` and means the same.

use alloc::boxed::Box;
use core::cell::Cell;

use super::{Baton, Job, Order, take_free};
use crate::rt::layout::{Awe, Runtime};
use crate::rt::stop::end_this_task;
use crate::rt::thread::set_own_runtime;

/// Where a task goes on: the baton of its thread.
#[repr(C)]
pub(crate) struct Context {
    baton: Cell<Option<&'static Baton>>,
    _reserved: [usize; 3],
}

impl Context {
    pub(crate) const fn new() -> Self {
        Context { baton: Cell::new(None), _reserved: [0; 3] }
    }

    /// Not known here.
    pub(crate) fn used_bytes(&self, _top: usize) -> usize {
        0
    }

    fn baton(&self) -> &'static Baton {
        self.baton.get().expect("only a suspended task is resumed")
    }
}

/// See `x86_64/context.rs`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn exchange(save: &Context, to: &Context) {
    save.baton.set(Some(Baton::own()));
    to.baton().send(Order::GoOn);
    wait_to_go_on();
}

/// See `x86_64/context.rs`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn exchange_to_end(save: &Context, to: &Context) {
    save.baton.set(Some(Baton::own()));
    to.baton().send(Order::End);
    wait_to_go_on();
}

fn wait_to_go_on() {
    match Baton::own().receive() {
        Order::GoOn => {}
        Order::End => end_this_task(),
        Order::Returned | Order::Run(_) => unreachable!("a suspended task is resumed or ended"),
    }
}

/// See `x86_64/context.rs`.
pub(crate) enum Called {
    Returned(&'static Awe, &'static Awe, &'static Runtime),
    Resumed,
    Aborted,
}

/// See `x86_64/context.rs`.
pub(crate) trait Entry {
    /// Runs there.
    ///
    /// # Safety
    /// The arguments are what was passed to [`call_on`].
    unsafe extern "C" fn enter(argument: *mut (), runtime: *const Runtime);
}

/// See `x86_64/context.rs`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn call_on<E: Entry>(
    argument: *mut (),
    caller: &'static Awe,
    callee: &'static Awe,
    runtime: &'static Runtime,
) -> Called {
    let own = Baton::own();
    caller.context.baton.set(Some(own));
    let run = Box::new(move || {
        set_own_runtime(runtime);
        // SAFETY: this is what was passed for it.
        unsafe { E::enter(argument, runtime) };
    });
    take_free().send(Order::Run(Job { run, caller: Some(own) }));
    match own.receive() {
        Order::Returned => Called::Returned(caller, callee, runtime),
        Order::GoOn => Called::Resumed,
        Order::End => Called::Aborted,
        Order::Run(_) => unreachable!("this thread is not free"),
    }
}

/// See `x86_64/context.rs`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn leave_for(to: &Context) -> Left {
    super::leave_for(to.baton());
    Left
}

/// The task has left its stack: whoever has this returns to the bottom of it.
pub(crate) struct Left;
