//! Synchronisation of tasks, on one thread or several: semaphore, lock, condition variable, event count, sequencer, queue.
//!
//! Each blocks the task only, never the thread. Those who wait are served first come first served, and what they wait for is
//! handed to them: nobody who comes later can take it on the way, and a wake-up without cause does not happen. What gives (`v`,
//! `signal`, `advance`, a guard's drop) never suspends and needs no context, so any thread may do it, also one that runs no tasks.
//!
//! Operations with an `x` end with [`Canceled`](super::Canceled) when their block is [asked to end](super::Scope::cancel_async), and then
//! have had no effect.
//!
//! # How it works
//!
//! A primitive is a small state and a list of [`Waker`](refs::Waker)s under a spin lock, which is held for a few instructions. To give, one takes
//! the first waker out of the list and ends its wait outside of the lock. Ending a wait succeeds once: either it is handed what
//! it waits for, or it was canceled (or its task aborted) before, and the next one is tried. So a wait that was given up needs no
//! removal, and nothing in a list points at a task's stack.
//!
//! The other way round, a task that unwinds from its wait although it was handed something passes that on.
//!
//! # Primitives that are destroyed
//!
//! Rust keeps a primitive as long as somebody borrows it. One that is part of an object which may be destroyed at any time
//! ([`refs::StrongRc`]) is waited at through the object's [`WeakRc`](refs::WeakRc), by a [`Part`]: while the task waits it borrows nothing. The
//! destruction wakes all, who find the object gone.

/// A function that is `const`, except where loom explores how threads can interleave (`tests/loom.rs`), whose locks are made at run time.
macro_rules! const_fn {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident($($arguments:tt)*) -> $result:ty $body:block) => {
        #[cfg(not(ebb_loom))]
        $(#[$meta])*
        $visibility const fn $name($($arguments)*) -> $result $body

        #[cfg(ebb_loom)]
        $(#[$meta])*
        $visibility fn $name($($arguments)*) -> $result $body
    };
}

mod condvar;
mod event_count;
mod lock;
mod part;
mod queue;
mod semaphore;
mod sequencer;
mod waiters;

pub use condvar::Condvar;
pub use event_count::EventCount;
pub use lock::{Lock, LockGuard, RawLock};
pub use part::{NotDone, Part};
pub use queue::{Queue, Turn};
pub use semaphore::Semaphore;
pub use sequencer::Sequencer;
