//! What the processor's architecture decides: how stacks are switched, and where a thread keeps a pointer. The rest of the crate sees what is
//! re-exported here.
//!
//! A second architecture is a second folder with the same names:
//!
//! | file | provides |
//! | --- | --- |
//! | `switch` | `switch`, `switch_to_new`, `leave_for`: stacks of the scheduler's tasks |
//! | `context` | `Context` (four words), `exchange`, `exchange_to_end`, `call_on`, `leave_for`: tasks of [`rt`](crate::rt) |
//! | `own_runtime` | `own_runtime`, `set_own_runtime`: a thread's pointer to its run-time, which C code reads as well |
//!
//! `ac.h` has the same switches for C. `threads` is no architecture: each stack is a thread, for checkers that understand no assembly (`--cfg ebb_threads`).

#[cfg(ebb_threads)]
pub(crate) mod threads;
#[cfg(not(ebb_threads))]
mod x86_64;

#[cfg(ebb_threads)]
pub(crate) use threads::*;
#[cfg(not(ebb_threads))]
pub(crate) use x86_64::*;
