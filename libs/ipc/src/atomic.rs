//! The atomics of this crate: those of `core`, or those of `loom` or `shuttle`, which try how threads can interleave
//! (`--cfg ebb_loom`, `--cfg ebb_shuttle`).

#[cfg(ebb_loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

#[cfg(ebb_shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

#[cfg(not(any(ebb_loom, ebb_shuttle)))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
