//! What the processor's exceptions mean to a program.

use frame::user::Registers;

/// What a signal frame says of the fault that caused the signal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fault {
    /// The address that was touched (`cr2`).
    pub address: usize,
    /// The processor's error code.
    pub code: usize,
    /// The exception's vector.
    pub vector: u8,
}

/// What a program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It divided by zero, or the quotient does not fit.
    Division,
    /// It did one instruction (trap flag).
    SingleStep,
    /// `int3`.
    Breakpoint,
    /// No such instruction.
    IllegalInstruction,
    /// A floating-point exception that it has not masked.
    FloatingPoint,
    /// An access that is not aligned, where it asked for checks.
    Alignment,
    /// A segment that is not there.
    Segment,
    /// Something it has no right to.
    Protection,
}

/// An exception as a signal tells it.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// What it was.
    pub cause: Cause,
    /// The instruction.
    pub at: usize,
    /// What a signal frame says of it.
    pub fault: Fault,
}

/// What an exception of that vector and error code means.
pub fn classify(registers: &Registers, vector: u8, code: usize) -> Exception {
    let cause = match vector {
        0 => Cause::Division,
        1 => Cause::SingleStep,
        3 => Cause::Breakpoint,
        6 => Cause::IllegalInstruction,
        10..=12 => Cause::Segment,
        16 | 19 => Cause::FloatingPoint,
        17 => Cause::Alignment,
        _ => Cause::Protection,
    };
    // The processor has no error code for a single step.
    let code = if vector == 1 { 0 } else { code };
    Exception { cause, at: registers.rip, fault: Fault { address: 0, code, vector } }
}

/// A page fault of user code that nothing can be done about.
pub fn page_fault(address: usize, is_mapped: bool) -> Fault {
    Fault { address, code: if is_mapped { 5 } else { 4 }, vector: 14 }
}
