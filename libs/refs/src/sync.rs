//! Atomics: the processor's, or those of a test that explores how threads can interleave: loom's (`--cfg ebb_loom`, everything that
//! the memory model allows) or shuttle's (`--cfg ebb_shuttle`, larger programs at random).

#[cfg(not(any(ebb_loom, ebb_shuttle)))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

#[cfg(ebb_loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

#[cfg(ebb_shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// A function that is `const`, except under loom, whose atomics are made at run time.
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
pub(crate) use const_fn;

/// A static, which loom and shuttle make anew for each interleaving.
macro_rules! global {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        #[cfg(not(any(ebb_loom, ebb_shuttle)))]
        $(#[$meta])*
        static $name: $type = $value;

        #[cfg(ebb_loom)]
        loom::lazy_static! {
            $(#[$meta])*
            static ref $name: $type = $value;
        }

        #[cfg(ebb_shuttle)]
        shuttle::lazy_static! {
            $(#[$meta])*
            static ref $name: $type = $value;
        }
    };
}
pub(crate) use global;
