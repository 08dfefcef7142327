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
//! Invariants: a task runs on at most one worker ([`Ready`] exists once); a stack is in exactly one place: in the pool, kept by one
//! suspended task, or current on one worker; exactly one `Cx` is reachable from a stack.
//!
//! ## Several workers
//!
//! A body that keeps nothing on a stack is run by any worker: that is what `Body: Send` promises. One that has suspended in the middle goes on
//! where it was, because what lies on its stack need not be `Send`: [`Ready::worker`] says so to the policy. Each stack so stays with one
//! worker, and goes back to the source that it came from. A policy that wants to move a busy task elsewhere asks it to
//! [give way](Worker::request_yield); when its body next returns [`Next::Again`], any worker may have it.
//!
//! # Panics
//!
//! One rule, for both schedulers: **a panic belongs to the code that unwinds through it, up to the bottom of its task; one that would unwind
//! code that is not concerned ends the program** (after its own message, by one that says where it was).
//!
//! | a panic in | what becomes of it |
//! | --- | --- |
//! | a task of [`rt`](crate::rt), or the body of a block | it unwinds to the block, which waits for its tasks and then raises the first one; or to who [joins](crate::rt::JoinHandle) the task |
//! | what is called before a task suspends (`publish` of [`rt::suspend_then_async`](crate::rt::suspend_then_async)), or a cancel item | it unwinds the task that calls; that one has not suspended |
//! | a destructor that a task runs itself | as any panic of that task; during another panic it ends the program, as in all of Rust |
//! | a destructor of an object that is freed *at* a suspension ([`refs::reclaim`]) | the program ends: it is not the suspending task's object |
//! | an idle hook, a policy, a source of stacks | the program ends: they run between tasks |
//! | a [`Body`] of this scheduler | the program ends: nobody waits for it |
//!
//! So no suspension returns by a panic but for [`rt::abort_async`](crate::rt::abort_async), and a block is never left before its tasks. Where
//! panics do not unwind (the kernel, `panic = "abort"`) each ends the program.
// Under loom there is only `tests/loom.rs`, which has the parts that threads share.
#![cfg(not(ebb_loom))]
#![warn(missing_debug_implementations)]
#![no_std]
extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod arch;
mod atomic;
mod fifo;
#[cfg(ebb_shuttle)]
#[doc(hidden)]
pub mod interleavings;
mod no_unwind;
#[cfg(feature = "rt")]
pub mod rt;
mod stack;
mod static_ref;
mod task;
mod worker;

pub use fifo::{Fifo, HeapStacks};
pub use refs::{Cx, Waker};
pub use stack::{Stack, StackSource};
pub use static_ref::StaticRef;
pub use task::{Body, Next, Policy, Ready, SchedWords, TaskRef, Why, spawn};
pub use worker::{
    Dead, EndOfWait, Hooks, Worker, current, finish_wait, free_all_async, free_everything_async, has_dead, must_yield,
    park_async, pause_async, prepare, quiescent, request_yield, wait_for_all, worker, yield_async,
};
