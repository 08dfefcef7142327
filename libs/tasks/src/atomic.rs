//! Atomics: the processor's, or those of `shuttle`, which tries how threads can interleave (`--cfg ebb_shuttle`, with `--cfg ebb_threads`).

#[cfg(all(feature = "rt", not(ebb_shuttle)))]
pub(crate) use core::sync::atomic::AtomicU32;
#[cfg(not(ebb_shuttle))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

#[cfg(ebb_shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Stands between a write and a read that are sequentially consistent. Loom, which takes those two for release and acquire, knows fences only
/// (`tests/loom.rs` has one here).
#[cfg(feature = "rt")]
#[inline(always)]
pub(crate) fn between_sequentially_consistent() {}

/// A static, which shuttle makes anew for each interleaving.
macro_rules! global {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        #[cfg(not(ebb_shuttle))]
        $(#[$meta])*
        static $name: $type = $value;

        #[cfg(ebb_shuttle)]
        shuttle::lazy_static! {
            $(#[$meta])*
            static ref $name: $type = $value;
        }
    };
}
pub(crate) use global;
