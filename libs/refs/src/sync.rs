//! Atomics: the processor's, or loom's when a test explores how threads can interleave (`--cfg ebb_loom`).

#[cfg(not(ebb_loom))]
pub(crate) use core::hint::spin_loop;
#[cfg(not(ebb_loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

#[cfg(ebb_loom)]
pub(crate) use loom::hint::spin_loop;
#[cfg(ebb_loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

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

/// A static, which loom makes anew for each interleaving.
macro_rules! global {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        #[cfg(not(ebb_loom))]
        $(#[$meta])*
        static $name: $type = $value;

        #[cfg(ebb_loom)]
        loom::lazy_static! {
            $(#[$meta])*
            static ref $name: $type = $value;
        }
    };
}
pub(crate) use global;
