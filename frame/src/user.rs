//! Running user code: registers in, trap out.

use alloc::boxed::Box;

use refs::Cx;

/// The general registers of a user thread, in the names of the architecture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Registers {
    pub rax: usize,
    pub rbx: usize,
    pub rcx: usize,
    pub rdx: usize,
    pub rsi: usize,
    pub rdi: usize,
    pub rbp: usize,
    pub rsp: usize,
    pub r8: usize,
    pub r9: usize,
    pub r10: usize,
    pub r11: usize,
    pub r12: usize,
    pub r13: usize,
    pub r14: usize,
    pub r15: usize,
    pub rip: usize,
    pub rflags: usize,
    pub fs_base: usize,
    pub gs_base: usize,
}

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
        access: crate::mm::Access,
        /// Whether the page was mapped (and the access not allowed).
        present: bool,
    },
    /// Another exception of the processor.
    Exception {
        /// Its vector (0 divide error, 1 debug, 3 breakpoint, 6 invalid opcode, 13 general protection, 16 x87, 17 alignment, 19 SIMD, ...).
        vector: u8,
        /// Its error code, or 0.
        code: usize,
    },
    /// The task was asked to give way (`tasks::must_yield`).
    Preempted,
}

/// What a user thread has in the processor while it runs: registers and floating-point state.
pub struct UserContext {
    /// The general registers. Whatever is written here, user code runs unprivileged: `rflags`' system bits are masked and
    /// non-canonical addresses fault in user mode (invariant 2).
    pub registers: Registers,
}

impl UserContext {
    /// All registers zero, floating-point state as after reset.
    pub fn new() -> Box<Self> {
        Box::new(UserContext { registers: Registers::default() })
    }

    /// A copy, with its floating-point state, for `fork`.
    pub fn duplicate(&mut self, _cx: &Cx) -> Box<Self> {
        Box::new(UserContext { registers: self.registers })
    }

    /// Floating-point state as after reset, for `execve`.
    pub fn reset_fpu(&mut self, _cx: &Cx) {}

    /// The floating-point state in the XSAVE layout (standard form), as it belongs into a signal frame; its size is
    /// [`fpu_size`].
    pub fn fpu_state(&mut self, _cx: &Cx) -> &[u8] {
        &[]
    }

    /// Replaces the floating-point state by one that a user program may have forged.
    ///
    /// # Errors
    /// The state is malformed; nothing was changed.
    pub fn set_fpu_state(&mut self, _state: &[u8], _cx: &Cx) -> Result<(), BadFpuState> {
        Ok(())
    }

    /// Runs user code in the currently active address space until it traps. Interrupts are handled meanwhile. It is a
    /// suspension: nothing borrowed from shared state is held while user code runs.
    pub fn run_async(&mut self, _cx: &mut Cx) -> Trap {
        unimplemented!()
    }
}

/// A floating-point state that the processor would not load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFpuState;

/// The size in bytes of the XSAVE area, and the mask of state components (XCR0).
pub fn fpu_size() -> (usize, u64) {
    (576, 3)
}
