//! Stacks that are an operating system's threads, where a baton says which one runs (`--cfg ebb_threads`): slow, and for checkers that do
//! not understand a change of the stack pointer (the thread and memory sanitizers, Miri, shuttle).
//!
//! A thread waits at its baton for an order: to go on, to run something, or (in a call) that what it called has returned. What leaves
//! its thread for good says who goes on, and returns; the thread then passes the baton on and waits for the next thing to run.

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

use crate::atomic::global;

#[cfg(feature = "rt")]
pub(crate) mod context;
#[cfg(all(feature = "rt", feature = "std"))]
pub(crate) mod own_runtime;
pub(crate) mod switch;

/// Where a thread waits for its next order.
#[derive(Default)]
pub(crate) struct Baton {
    order: Mutex<Option<Order>>,
    arrived: Condvar,
}

pub(crate) enum Order {
    GoOn,
    End,
    Returned,
    Run(Job),
}

/// Something to be run on a thread that is free.
pub(crate) struct Job {
    pub(crate) run: Box<dyn FnOnce()>,
    /// Who is told that it has returned, if it does so without having left.
    pub(crate) caller: Option<&'static Baton>,
}

// SAFETY: of the threads that stand for one worker's stacks one runs at a time, and what the others did happened before (the baton's lock);
// so it does not matter on which of them it is done.
unsafe impl Send for Job {}

thread_local! {
    static OWN: Cell<Option<&'static Baton>> = const { Cell::new(None) };
    /// Who goes on when what this thread runs, and what has left it, has returned.
    static LEFT_FOR: Cell<Option<&'static Baton>> = const { Cell::new(None) };
}

global! {
    /// Threads that wait for something to run.
    static FREE: Mutex<Vec<&'static Baton>> = Mutex::new(Vec::new());
}

/// Whether threads run one thing after the other. A thread that waits for ever is a deadlock to shuttle.
const ARE_REUSED: bool = !cfg!(ebb_shuttle);

const THREAD_STACK_BYTES: usize = 2 << 20;

impl Baton {
    fn new() -> &'static Baton {
        Box::leak(Box::default())
    }

    /// The calling thread's.
    pub(crate) fn own() -> &'static Baton {
        OWN.with(|own| {
            let baton = own.get().unwrap_or_else(Baton::new);
            own.set(Some(baton));
            baton
        })
    }

    pub(crate) fn send(&self, order: Order) {
        let before = self.order.lock().unwrap_or_else(PoisonError::into_inner).replace(order);
        assert!(before.is_none(), "a thread has one order at a time");
        self.arrived.notify_one();
    }

    pub(crate) fn receive(&self) -> Order {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(order) = order.take() {
                return order;
            }
            order = self.arrived.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Runs what is to be run on this thread.
fn serve() {
    let own = Baton::own();
    loop {
        let Order::Run(job) = own.receive() else { unreachable!("a free thread gets jobs only") };
        (job.run)();
        if ARE_REUSED {
            FREE.lock().unwrap_or_else(PoisonError::into_inner).push(own);
        }
        match (LEFT_FOR.with(Cell::take), job.caller) {
            (Some(next), _) => next.send(Order::GoOn),
            (None, Some(caller)) => caller.send(Order::Returned),
            (None, None) => unreachable!("who was not called leaves for somebody"),
        }
        if !ARE_REUSED {
            return;
        }
    }
}

/// A thread that waits for something to run.
pub(crate) fn take_free() -> &'static Baton {
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

/// When what the calling thread runs has returned, `next` goes on.
pub(crate) fn leave_for(next: &'static Baton) {
    LEFT_FOR.with(|left_for| left_for.set(Some(next)));
}
