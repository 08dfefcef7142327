//! Why user code stopped.

pub use crate::arch::machine::registers::Registers;
use crate::mm::Access;

/// Why user code stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// A `syscall` instruction: number in `rax`, arguments in `rdi rsi rdx r10 r8 r9`.
    Syscall,
    /// Memory could not be accessed.
    PageFault {
        /// The address.
        address: usize,
        /// What was tried.
        access: Access,
        /// Whether the page was mapped (and the access not allowed).
        present: bool,
    },
    /// Another exception of the processor.
    Exception {
        /// Its vector (0 divide error, 1 debug, 3 breakpoint, 6 invalid opcode, 13 general protection, 16 x87, 17 alignment, 19 SIMD, ...).
        vector: u8,
        /// Its error code, or 0; for a debug exception the debug status (DR6).
        code: usize,
    },
    /// The task was asked to give way (`tasks::must_yield`), or has: another address space may be the active one now.
    Preempted,
}

/// Whether user code may read the processor's time-stamp counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CycleCounter {
    /// It may.
    #[default]
    Readable,
    /// Reading it is an exception.
    Trapping,
}

/// A segment base that the processor would not load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSegmentBase;

/// A floating-point state that the processor would not load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFpuState;
