#![doc = include_str!("../README.md")]
//! # The scheduler of the crate's root
//!
//! A task is a [`Body`] that is run again and again, each time on whatever stack the worker (a core of the kernel, a thread
//! of a program) happens to be on. A body that suspends in the middle *keeps* that stack, and the worker goes on with a fresh one
//! from a pool; a body that returns [`Next::Again`] keeps nothing. So the number of stacks in use is the number of tasks that are
//! suspended in the middle of something, however many tasks there are.
//!
//! How control passes:
//!
//! ```text
//!   dispatch loop (bottom of every stack)
//!      | Policy::next() -> Ready
//!      |-- the task keeps no stack: run its body here, with a new `Cx`
//!      |       body --> park_async(cx) --> next task keeps a stack: switch to it, directly
//!      |                              `--> it keeps none: take a fresh stack, run the dispatch loop there
//!      `-- the task keeps a stack: this stack goes back to the pool, switch to that one
//! ```
//!
//! Who may do what is carried by values: [`Ready`] is a task that may be run, exists once per task that is ready, and passes from
//! [`Waker::wake`](refs::Waker::wake) through the [`Policy`] to the worker. `&mut Cx` is the right to suspend. A task's struct is
//! type-stable: a [`TaskRef`] or a waker that outlives its task does nothing.
//!
//! Invariants: a task runs on at most one worker (checked: `running`); a stack is in exactly one place: in the pool, kept by one
//! suspended task, or current on one worker; exactly one `Cx` is reachable from a stack.
// Under loom there is only `tests/loom.rs`, which has the parts that threads share.
#![cfg(not(ebb_loom))]
#![no_std]
extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod fifo;
#[cfg(ebb_shuttle)]
#[doc(hidden)]
pub mod interleavings;
pub mod rt;
mod stack;
mod switch;
mod task;
mod worker;

pub use fifo::{Fifo, HeapStacks};
pub use refs::{Cx, Waker};
pub use stack::{Stack, StackSource};
pub use task::{Body, Next, Policy, Ready, SchedWords, TaskRef, Why, spawn};
pub use worker::{
    Hooks, Idle, Worker, current, finish_wait, must_yield, park_async, prepare, quiescent, request_yield, worker,
    yield_async,
};
