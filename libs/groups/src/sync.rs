//! Atomics: the processor's, or loom's in a test that explores how threads can interleave (`--cfg ebb_loom`).

#[cfg(not(ebb_loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering};

#[cfg(ebb_loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
