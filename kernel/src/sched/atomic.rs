//! Atomics: the processor's, or those of `shuttle`, which tries how cores can interleave (`--cfg ebb_shuttle`).

#[cfg(not(ebb_shuttle))]
pub(super) use core::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(ebb_shuttle)]
pub(super) use shuttle::sync::atomic::{AtomicU64, Ordering, fence};
