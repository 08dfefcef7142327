//! x86-64, as the System V ABI and Linux define it.

mod clone;
mod exception;
mod prctl;
mod registers;
pub mod signal_frame;
mod user_registers;

use frame::mm::USER_END;
use frame::user::BadSegmentBase;

pub use clone::{CloneArguments, clone_arguments};
pub use exception::{Cause, Exception, Fault, classify, page_fault};
pub use prctl::{Prctl, cycle_counter, prctl, set_cycle_counter};
pub use registers::{
    call_arguments, call_number, call_result, instruction_pointer, restart_call, set_call_result,
    set_instruction_pointer, set_single_step, set_stack_pointer, stack_pointer, start,
};
pub use user_registers::{AUDIT_ARCH, CoreRegisters, NO_CALL, core_registers, set_core_registers};

/// What uname(2) calls the machine.
pub const MACHINE: &str = "x86_64";
/// What uname(2) calls it for a program of 32 bits (PER_LINUX32).
pub const MACHINE_32: &str = "i686";
/// What programs find as AT_PLATFORM.
pub const PLATFORM: &[u8] = b"x86_64\0";
/// The machine in the header of an ELF file that can be run.
pub const ELF_MACHINE: u16 = linux_raw_sys::elf::EM_CURRENT;

/// Sets a new thread's pointer to its local storage.
///
/// # Errors
/// The address is not one of a program.
pub fn set_thread_pointer(
    context: &mut frame::user::UserContext,
    address: usize,
    cx: &frame::Cx,
) -> Result<(), BadSegmentBase> {
    if address >= USER_END {
        return Err(BadSegmentBase);
    }
    let (_, gs) = context.segment_bases();
    context.set_segment_bases(address, gs, cx)
}

/// Clears what a program that is executed must not find: floating-point state, thread-local storage.
pub fn reset(context: &mut frame::user::UserContext, cx: &frame::Cx) {
    context.reset_fpu(cx);
    // Zeros are canonical.
    let _ = context.set_segment_bases(0, 0, cx);
}
