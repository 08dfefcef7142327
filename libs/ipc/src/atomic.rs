//! The atomics of this crate: those of `core`, or those of the model checker `loom` under `--cfg ebb_loom`.

#[cfg(ebb_loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

#[cfg(not(ebb_loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
