//! One folder for each architecture; the rest of `frame` sees only what is re-exported here.
//!
//! A second architecture is a second folder with the same names: entering user mode and coming back, the per-core block,
//! copies that may fault, the kernel's own page table, timers, serial ports and the ways to stop.

#[cfg(target_arch = "x86_64")]
pub mod x86_64;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64 as machine;
