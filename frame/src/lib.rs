//! The framework: all of the kernel's `unsafe`, behind types that safe code cannot misuse.
//!
//! `frame` knows hardware and not Linux. It gives mechanism; policy comes in from safe code through traits ([`Config`]): which
//! task runs next, which frame is handed out, which slab an object goes to. What comes back is checked.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`mm`] | physical frames and their metadata, page tables, user memory as untyped bytes, the kernel's heap |
//! | [`user`] | running user code: registers in, trap out |
//! | [`cpu`] | cores and per-core data |
//! | [`core_set`] | sets of cores |
//! | [`irq`] | interrupt lines and the context of their handlers |
//! | [`pci`] | devices: their registers and interrupts |
//! | [`dma`] | memory that devices reach |
//! | [`time`] | the clock and the one timer behind all timers |
//! | [`serial`] | serial ports |
//! | [`power`] | the end |
//!
//! Invariants 1 to 11 of the design are cited where they are kept.
#![cfg_attr(target_os = "none", no_std)]
extern crate alloc;
// The tests of `mm` run the kernel's policies, which call this crate by its name.
#[cfg(test)]
extern crate self as frame;

#[cfg(any(target_os = "none", test))]
mod acpi;
mod arch;
pub mod boot;
#[cfg(any(target_os = "none", test))]
mod clock_comparison;
pub mod core_set;
pub mod cpu;
pub mod dma;
pub mod entropy;
mod iommu;
#[cfg(target_os = "none")]
pub mod irq;
pub mod mm;
pub mod pci;
#[cfg(target_os = "none")]
pub mod power;
#[cfg(all(target_os = "none", feature = "selftest"))]
pub mod selftest;
#[cfg(target_os = "none")]
pub mod serial;
#[cfg(feature = "check-locks")]
pub use refs::lock_order;
#[cfg(all(target_os = "none", feature = "stretch"))]
pub mod stretch;
#[cfg(target_os = "none")]
pub mod time;
mod trap;
#[cfg(target_os = "none")]
pub mod user;

#[cfg(not(target_os = "none"))]
mod hosted;
#[cfg(not(target_os = "none"))]
pub use hosted::pci as simulated_pci;
#[cfg(not(target_os = "none"))]
pub use hosted::{irq, power, serial, time, user};

#[cfg(target_os = "none")]
use arch::machine::stacks;
#[cfg(target_os = "none")]
pub use arch::machine::stacks::STACK_BYTES as KERNEL_STACK_BYTES;
pub use boot::{BootInfo, Config};
#[cfg(not(target_os = "none"))]
use hosted::stacks;
#[cfg(not(target_os = "none"))]
pub use hosted::{KERNEL_STACK_BYTES, with_context};
pub use refs::{Cx, NoSuspend};

/// How many frames are kept for nothing: those of kernel stacks that nothing runs on, and of large blocks of the heap that were given back. They count as free.
pub fn spare_frames() -> usize {
    stacks::spare_frames() + mm::spent_frames()
}

/// Gives some of these frames back; whether there were any. The caller may hold any lock but the frame policy's.
pub fn give_spare_back() -> bool {
    stacks::give_spare_back() || mm::give_spent_back()
}
