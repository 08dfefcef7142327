//! x86-64.

#[cfg(feature = "rt")]
pub(crate) mod context;
#[cfg(all(feature = "rt", feature = "std"))]
pub(crate) mod own_runtime;
pub(crate) mod switch;
