//! Switching between tasks where each task is an operating system's thread and a baton says which one runs: slow, and for checkers that
//! do not understand a change of the stack pointer (the thread and memory sanitizers, Miri). Chosen by `--cfg ebb_threads`; it stands in
//! for `context.rs` and means the same.
//!
//! A thread waits at its baton for an order: to go on, to run a task, or (in a call) that the task has returned. A task that leaves
//! its thread for good says who goes on, and returns; the thread then passes the baton on and waits for its next task.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
#[cfg(not(ebb_shuttle))]
use std::{
    sync::{Condvar, Mutex, PoisonError},
    thread, thread_local,
};

#[cfg(ebb_shuttle)]
use shuttle::{
    sync::{Condvar, Mutex, PoisonError},
    thread, thread_local,
};

use super::atomic::global;
use super::layout::{Awe, Runtime};
use super::stop::end_this_task;
use super::thread::set_own_runtime;

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

/// Where a thread waits for its next order.
#[derive(Default)]
struct Baton {
    order: Mutex<Option<Order>>,
    arrived: Condvar,
}

enum Order {
    GoOn,
    End,
    Returned,
    Run(Job),
}

/// A task to be called.
struct Job {
    enter: unsafe extern "C" fn(*mut (), *const Runtime),
    argument: *mut (),
    runtime: &'static Runtime,
    caller: &'static Baton,
}

// SAFETY: one thread of a run-time runs at a time, and what the others did happened before (the baton's lock); so it does not
// matter on which of them it is done.
unsafe impl Send for Job {}

thread_local! {
    static OWN: Cell<Option<&'static Baton>> = const { Cell::new(None) };
    /// Who goes on when this thread's task, which was detached, has returned.
    static LEFT_FOR: Cell<Option<&'static Baton>> = const { Cell::new(None) };
}

global! {
    /// Threads that wait for a task to run.
    static FREE: Mutex<Vec<&'static Baton>> = Mutex::new(Vec::new());
}

/// Whether threads run one task after the other. A thread that waits for ever is a deadlock to shuttle.
const ARE_REUSED: bool = !cfg!(ebb_shuttle);

const THREAD_STACK_BYTES: usize = 2 << 20;

impl Baton {
    fn new() -> &'static Baton {
        Box::leak(Box::default())
    }

    fn own() -> &'static Baton {
        OWN.with(|own| {
            let baton = own.get().unwrap_or_else(Baton::new);
            own.set(Some(baton));
            baton
        })
    }

    fn send(&self, order: Order) {
        let before = self.order.lock().unwrap_or_else(PoisonError::into_inner).replace(order);
        assert!(before.is_none(), "a thread has one order at a time");
        self.arrived.notify_one();
    }

    fn receive(&self) -> Order {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(order) = order.take() {
                return order;
            }
            order = self.arrived.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Runs tasks that are called on this thread.
fn serve() {
    let own = Baton::own();
    loop {
        let Order::Run(job) = own.receive() else { unreachable!("a free thread gets tasks only") };
        set_own_runtime(job.runtime);
        // SAFETY: `call_on` passed what it was given for this.
        unsafe { (job.enter)(job.argument, job.runtime) };
        if ARE_REUSED {
            FREE.lock().unwrap_or_else(PoisonError::into_inner).push(own);
        }
        match LEFT_FOR.with(Cell::take) {
            Some(next) => next.send(Order::GoOn),
            None => job.caller.send(Order::Returned),
        }
        if !ARE_REUSED {
            return;
        }
    }
}

fn take_free() -> &'static Baton {
    if let Some(baton) = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop() {
        return baton;
    }
    let baton = Baton::new();
    let started = thread::Builder::new().stack_size(THREAD_STACK_BYTES).spawn(move || {
        OWN.with(|own| own.set(Some(baton)));
        serve();
    });
    started.expect("a thread for a task");
    baton
}

/// See `context.rs`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn exchange(save: &Context, to: &Context) {
    save.baton.set(Some(Baton::own()));
    to.baton().send(Order::GoOn);
    wait_to_go_on();
}

/// See `context.rs`.
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

/// See `context.rs`.
pub(crate) enum Called {
    Returned(&'static Awe, &'static Awe, &'static Runtime),
    Resumed,
    Aborted,
}

/// See `context.rs`.
pub(crate) trait Entry {
    /// Runs there.
    ///
    /// # Safety
    /// The arguments are what was passed to [`call_on`].
    unsafe extern "C" fn enter(argument: *mut (), runtime: *const Runtime);
}

/// See `context.rs`.
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
    take_free().send(Order::Run(Job { enter: E::enter, argument, runtime, caller: own }));
    match own.receive() {
        Order::Returned => Called::Returned(caller, callee, runtime),
        Order::GoOn => Called::Resumed,
        Order::End => Called::Aborted,
        Order::Run(_) => unreachable!("this thread is not free"),
    }
}

/// See `context.rs`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn leave_for(to: &Context) -> Left {
    LEFT_FOR.with(|left_for| left_for.set(Some(to.baton())));
    Left
}

/// The task has left its stack: whoever has this returns to the bottom of it.
pub(crate) struct Left;
