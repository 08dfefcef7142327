//! Signals: from who sends them to what they do.
//!
//! ```text
//!   send: kill(2), a fault, a timer, a terminal, a child's end
//!      | ignored? coalesced?
//!      v
//!   Pending of the process or of one thread  -->  a thread that does not block it gets Work::SIGNAL and is woken
//!                                                    | on its way back to user mode
//!                                                    v
//!                          deliver_async: a handler's frame | stop and wait | the end of the process
//! ```
//!
//! What is to be done before a thread goes on in user mode is one word of flags, [`Work`], in the thread: the fast path looks at nothing else.
//!
//! What stands here is data; [`send`], [`deliver`] and [`handler`] act on processes and threads, and belong to the room above.
//!
//! All that sends takes any `&impl NoSuspend`, so an interrupt handler can send too. Locks are taken one at a time, never nested.

mod action;
pub mod broadcast;
pub mod deliver;
pub mod handler;
mod info;
mod pending;
pub mod send;
mod set;
mod thread;

pub use action::{Action, Actions};
pub use info::{Info, SigInfo};
pub use pending::Pending;
pub use set::{DefaultAction, Signal, SignalSet};
pub use thread::{AltStack, ThreadSignals, Work};
