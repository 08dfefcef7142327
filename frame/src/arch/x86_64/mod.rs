//! x86-64.
//!
//! How control passes: [`entry`] is the loader's first instruction; [`start`] sets the machine up in order; [`user_mode`] goes to
//! user code and back; [`traps`] is where exceptions and interrupts arrive. Kernel code runs with interrupts off; they
//! are let in while user code runs, in the idle loop and in `irq::poll`.

pub mod apic;
pub mod copy;
pub mod core_block;
pub mod descriptors;
pub mod entry;
pub mod features;
pub mod fpu;
pub mod instructions;
pub mod ioapic;
pub mod kernel_map;
pub mod memory_map;
pub mod port;
pub mod rtc;
pub mod stacks;
pub mod start;
pub mod stop;
pub mod symbols;
pub mod traps;
pub mod tsc;
pub mod uart;
pub mod user_mode;
pub mod vectors;
