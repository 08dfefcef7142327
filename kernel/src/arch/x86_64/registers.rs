//! What the registers mean at a system call, at the start of a program and in a handler.

use frame::user::Registers;

/// The length of a `syscall` instruction.
const SYSCALL_LEN: usize = 2;
/// `rflags` of a new program: interrupts on, and the bit that is always set.
const START_FLAGS: usize = 0x202;

/// The number of the system call that is asked for.
#[inline(always)]
pub fn call_number(registers: &Registers) -> usize {
    registers.rax
}

/// Its six arguments, in order.
#[inline(always)]
pub fn call_arguments(registers: &Registers) -> &[usize; 6] {
    registers.arguments()
}

/// Sets its result.
#[inline(always)]
pub fn set_call_result(registers: &mut Registers, result: usize) {
    registers.rax = result;
}

/// The result that rt_sigreturn(2) keeps as it is.
pub fn call_result(registers: &Registers) -> usize {
    registers.rax
}

/// Has the program make the call `number` again with the same arguments.
pub fn restart_call(registers: &mut Registers, number: usize) {
    registers.rip = registers.rip.wrapping_sub(SYSCALL_LEN);
    registers.rax = number;
}

/// Where the program is.
pub fn instruction_pointer(registers: &Registers) -> usize {
    registers.rip
}

/// Has the program go on elsewhere.
pub fn set_instruction_pointer(registers: &mut Registers, address: usize) {
    registers.rip = address;
}

/// Where its stack ends.
pub fn stack_pointer(registers: &Registers) -> usize {
    registers.rsp
}

/// Gives it another stack.
pub fn set_stack_pointer(registers: &mut Registers, address: usize) {
    registers.rsp = address;
}

/// The registers with which a program starts.
pub fn start(entry: usize, stack: usize) -> Registers {
    Registers { rip: entry, rsp: stack, rflags: START_FLAGS, ..Registers::default() }
}

/// Has the program trap after its next instruction, or no more.
pub fn set_single_step(registers: &mut Registers, is_on: bool) {
    const TRAP_FLAG: usize = 1 << 8;
    registers.rflags = if is_on { registers.rflags | TRAP_FLAG } else { registers.rflags & !TRAP_FLAG };
}
