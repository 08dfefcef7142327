//! What the registers mean at a system call, at the start of a program and in a handler.

use frame::user::{Registers, UserContext};

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

/// The segments of user code and data (Linux's `__USER_CS` and `__USER_DS`).
const USER_CODE_SEGMENT: u64 = 0x33;
const USER_DATA_SEGMENT: u64 = 0x2b;

/// The registers as core files have them: `elf_gregset_t`.
pub type CoreRegisters = [u64; 27];

/// The registers of a thread that is in no system call, for a core file.
pub fn core_registers(context: &UserContext) -> CoreRegisters {
    let registers = &context.registers;
    let (fs, gs) = context.segment_bases();
    let no_call = u64::MAX;
    [
        registers.r15 as u64,
        registers.r14 as u64,
        registers.r13 as u64,
        registers.r12 as u64,
        registers.rbp as u64,
        registers.rbx as u64,
        registers.r11 as u64,
        registers.r10 as u64,
        registers.r9 as u64,
        registers.r8 as u64,
        registers.rax as u64,
        registers.rcx as u64,
        registers.rdx as u64,
        registers.rsi as u64,
        registers.rdi as u64,
        no_call,
        registers.rip as u64,
        USER_CODE_SEGMENT,
        registers.rflags as u64,
        registers.rsp as u64,
        USER_DATA_SEGMENT,
        fs as u64,
        gs as u64,
        0,
        0,
        0,
        0,
    ]
}
