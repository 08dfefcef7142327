//! Asynchronous C's run-time: cooperative tasks ("atomic work elements", AWEs) with structured `finish`/`async` blocks.
//!
//! ```
//! use tasks::rt;
//!
//! let mut order = Vec::new();
//! let log = core::cell::RefCell::new(&mut order);
//! rt::run(|cx| {
//!     rt::finish_async(cx, |scope, cx| {
//!         scope.spawn_async(cx, |cx| {
//!             log.borrow_mut().push("child, until it blocks");
//!             rt::yield_async(cx);
//!             log.borrow_mut().push("child, resumed");
//!         });
//!         log.borrow_mut().push("parent");
//!     }); // waits for the child
//! });
//! assert_eq!(order, ["child, until it blocks", "parent", "child, resumed"]);
//! ```
//!
//! # How control passes
//!
//! One [`Runtime`] per thread; a task never moves to another thread. There is no dispatch loop and no stack for one: whoever
//! suspends takes the next task out of the thread's run queue and switches to it, and when there is none it waits (see [`Idle`])
//! on its own stack.
//!
//! - **Creation is an optimistic call.** [`Scope::spawn_async`] takes a stack from the pool and *calls* the child on it. A child
//!   that returns without having suspended costs a call: no queue, no counter. While it has not suspended it is *attached*
//!   (`Awe::parent`). When it first suspends it is *detached*: its block counts it, and its parent goes on behind the call as if
//!   the call had returned. So the parent of a child that blocks comes next, before everything in the queue.
//! - [`Scope::spawn_eager_async`] detaches at once: the parent goes to the head of the queue before the child starts.
//! - A **[`Finish`] block** ends when no detached task is left in it. The last one hands over to the waiting owner directly.
//! - A **switch** saves two registers and a resume address and ends in a `jmp`; it is inlined into whoever suspends, because a
//!   `ret` in a frame that was entered on another stack is mispredicted, which costs five times the switch.
//! - **Other threads** only ever push onto `Runtime::remote` (`remote.rs`), a lock-free list which the owner empties, first come first served,
//!   at its next suspension; what they may touch in an [`Awe`] is atomic, everything else belongs to the owner.
//!
//! # Invariants
//!
//! 1. [`Awe`]s and [`Runtime`]s are type-stable: reused, never freed, so a reference that outlives a task is harmless.
//! 2. A task is in exactly one of these states: running (`Runtime::current`); *calling* (its attached child is running or calling);
//!    queued (once in the run queue); parked (`state` says for what); free. Queued and parked tasks are detached.
//! 3. Whether a task is queued is decided by the queue itself: `position` names the entry, and the entry names the task.
//! 4. The queue has room for one more at each moment, so a yield (push, then pop) never checks.
//! 5. Each suspension reports to [`refs::reclaim`] that the thread borrows nothing: `&mut Cx` is the proof.
//! 6. A stack in the pool holds nothing. It is put there by the task that leaves it for good, while it is still on it; nothing
//!    runs in between.

mod awe;
#[cfg(all(feature = "c", not(ebb_threads)))]
pub mod c;
mod cancel;
mod canceler;
mod finish;
mod ids;
mod join;
pub(crate) mod layout;
#[cfg(all(feature = "std", not(ebb_threads)))]
mod overflow;
mod queue;
mod remote;
mod report;
mod runtime;
#[cfg(feature = "std")]
mod stacks;
pub(crate) mod stop;
mod suspend;
pub mod sync;
#[cfg(feature = "std")]
#[cfg_attr(ebb_threads, path = "system_threads.rs")]
mod system;
#[cfg(feature = "std")]
pub(crate) mod thread;
#[cfg(all(feature = "std", not(ebb_shuttle)))]
pub mod time;
mod wait;

pub use refs::{Cx, Gone, Mortal, Waker};

pub use awe::{AweRef, NotSuspended};
pub use cancel::{
    CancelItem, Canceled, check_canceled, is_cancel_requested, on_cancel_async, park_x_async, suspend_then_x_async,
    suspend_x_async, yield_x_async,
};
pub use canceler::Canceler;
pub use finish::{NoStack, Scope, finish_async, finish_shielded_async};
pub use ids::{BadId, Id, IdsExhausted, NotSaved};
pub use join::{JoinError, JoinHandle};
pub use layout::{Awe, Finish, Runtime};
pub use report::{count, dump};
pub(crate) use runtime::is_context;
#[cfg(feature = "std")]
pub use runtime::{Config, run};
pub use runtime::{Idle, Parts, current, set_name};
#[cfg(feature = "std")]
pub use stacks::MappedStacks;
pub use stop::{Aborted, abort_async, should_stop, stop_all};
pub use suspend::{
    Yielded, hand_over_async, suspend_async, suspend_then_async, yield_and_save_async,
    yield_and_save_no_dispatch_async, yield_async, yield_to_async, yield_to_id_and_save_async,
    yield_to_id_and_save_no_dispatch_async, yield_to_id_async, yield_to_id_no_dispatch_async,
};
#[cfg(feature = "std")]
pub use thread::Sleep;
pub use wait::{finish_wait, park_async, prepare, wait_async};
