//! x86-64.
//!
//! How control passes: [`entry`] is the loader's first instruction; [`start`] sets the machine up in order; [`user_mode`] goes to
//! user code and back; [`traps`] is where exceptions and interrupts arrive. Kernel code runs with interrupts off; they
//! are let in while user code runs, in the idle loop and in `irq::poll`.

#[cfg(target_os = "none")]
pub mod apic;
#[cfg(target_os = "none")]
pub mod copy;
#[cfg(target_os = "none")]
pub mod core_block;
#[cfg(target_os = "none")]
pub mod cores;
#[cfg(target_os = "none")]
pub mod descriptors;
#[cfg(target_os = "none")]
pub mod entry;
#[cfg(target_os = "none")]
pub mod features;
#[cfg(target_os = "none")]
pub mod fpu;
#[cfg(target_os = "none")]
pub mod instructions;
#[cfg(target_os = "none")]
pub mod interrupts;
#[cfg(target_os = "none")]
pub mod ioapic;
#[cfg(target_os = "none")]
pub mod kernel_map;
#[cfg(target_os = "none")]
pub mod link_pages;
#[cfg(target_os = "none")]
pub mod memory_map;
#[cfg(target_os = "none")]
pub mod messages;
pub mod paging;
#[cfg(target_os = "none")]
pub mod pci;
#[cfg(target_os = "none")]
pub mod port;
pub mod registers;
#[cfg(target_os = "none")]
pub mod rtc;
#[cfg(target_os = "none")]
pub mod stacks;
#[cfg(target_os = "none")]
pub mod start;
#[cfg(target_os = "none")]
pub mod stop;
#[cfg(target_os = "none")]
pub mod string;
#[cfg(target_os = "none")]
pub mod symbols;
#[cfg(target_os = "none")]
pub mod traps;
#[cfg(target_os = "none")]
pub mod tsc;
#[cfg(target_os = "none")]
pub mod uart;
#[cfg(target_os = "none")]
pub mod user_mode;
#[cfg(target_os = "none")]
pub mod vectors;
