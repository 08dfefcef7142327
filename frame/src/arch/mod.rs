//! One folder for each architecture; the rest of `frame` sees only what is re-exported here.
//!
//! A second architecture is a second folder with the same names; `docs/src/machine.md` lists what each must provide.

#[cfg(target_arch = "x86_64")]
pub mod x86_64;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64 as machine;
