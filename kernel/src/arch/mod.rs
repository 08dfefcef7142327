//! What the processor's architecture decides of Linux's interface, behind one door: a second architecture is a second folder, and this file
//! chooses one. What the machine itself needs (page tables, traps, switching) is `frame`'s.
//!
//! | an architecture provides | what it is |
//! | --- | --- |
//! | [`call_number`], [`call_arguments`], [`set_call_result`], [`restart_call`] | system calls in registers |
//! | [`start`], [`reset`], [`set_thread_pointer`], [`instruction_pointer`], [`stack_pointer`] and their setters | a program's registers |
//! | [`clone_arguments`], [`prctl`], [`cycle_counter`], [`set_cycle_counter`] | the order of clone(2)'s arguments; arch_prctl(2); PR_SET_TSC |
//! | [`classify`], [`page_fault`] | what exceptions mean to a program |
//! | [`signal_frame`] | the frame of a signal handler: its layout, registers and floating-point state |
//! | [`ELF_MACHINE`], [`MACHINE`], [`MACHINE_32`], [`PLATFORM`] | names |

mod x86_64;

pub use x86_64::*;
