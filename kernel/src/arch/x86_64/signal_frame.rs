//! The frame of a handler on the user's stack, as x86-64 programs and debuggers expect it. It says where things go and what they mean;
//! `signal/handler.rs` writes and reads it.
//!
//! ```text
//!   higher   floating-point state (XSAVE, 64-byte aligned), FP_XSTATE_MAGIC2
//!            siginfo
//!            ucontext: flags, link, alternate stack, registers, mask
//!   lower    return address (SA_RESTORER)       <- rsp of the handler; rsp + 8 is a multiple of 16
//! ```

use frame::user::Registers;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Fault;

/// `struct rt_sigframe`, without the floating-point state.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RtSigFrame {
    return_address: u64,
    context: UContext,
    info: SigInfoHead,
}

/// The start of `siginfo_t`: all of it that means anything.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs)]
pub struct SigInfoHead {
    pub signo: i32,
    pub errno: i32,
    pub code: i32,
    pub padding: i32,
    pub fields: [u64; 4],
}

/// `struct ucontext`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct UContext {
    flags: u64,
    link: u64,
    stack: StackT,
    registers: SigContext,
    mask: u64,
}

/// `stack_t`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs)]
pub struct StackT {
    pub base: u64,
    pub flags: u32,
    pub padding: u32,
    pub size: u64,
}

/// `struct sigcontext` of x86-64.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SigContext {
    /// r8 to r15.
    r8_up: [u64; 8],
    rdi: u64,
    rsi: u64,
    rbp: u64,
    rbx: u64,
    rdx: u64,
    rax: u64,
    rcx: u64,
    rsp: u64,
    rip: u64,
    rflags: u64,
    cs: u16,
    gs: u16,
    fs: u16,
    ss: u16,
    error: u64,
    trap: u64,
    old_mask: u64,
    cr2: u64,
    fp_state: u64,
    reserved: [u64; 8],
}

/// What Linux leaves in the part of the floating-point state that FXSAVE leaves to software.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct FpSoftware {
    magic: u32,
    extended_size: u32,
    features: u64,
    size: u32,
    padding: [u32; 7],
}

/// The whole frame below the floating-point state. The rest of `siginfo_t` is left as it was.
const FRAME_SIZE: usize = size_of::<RtSigFrame>() - size_of::<SigInfoHead>() + SIGINFO_SIZE;
const SIGINFO_SIZE: usize = 128;
const FXSAVE_SIZE: usize = 512;
const FP_SOFTWARE_AT: usize = 464;
const XSTATE_FEATURES_AT: usize = 512;
const FP_MAGIC1: u32 = 0x4650_5853;
/// What stands behind the floating-point state.
pub const FP_MAGIC2: u32 = 0x4650_5845;
/// What leaf functions may use below the stack pointer.
const RED_ZONE: usize = 128;
/// UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS.
const UC_FLAGS: u64 = 1 | 2 | 4;
const USER_CS: u16 = 0x33;
const USER_SS: u16 = 0x2b;
/// Trap, direction and resume flags: a handler starts without them.
const CLEARED_FLAGS: usize = 1 << 8 | 1 << 10 | 1 << 16;
/// What a program may set itself: carry to overflow, alignment check, identification.
pub const USER_FLAGS: usize = 0x24_4dd5;

/// Where a frame lies.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The address of the [`RtSigFrame`].
    pub frame: usize,
    /// The address of the floating-point state.
    pub fpu: usize,
}

impl Layout {
    /// Below `top`.
    pub fn below(top: usize) -> Self {
        let (fpu_size, _) = frame::user::fpu_size();
        let fpu = top.wrapping_sub(fpu_size + size_of::<u32>()) & !63;
        Layout { frame: (fpu.wrapping_sub(FRAME_SIZE) & !15).wrapping_sub(8), fpu }
    }

    /// Below what the interrupted function may use of the stack.
    pub fn on_stack(registers: &Registers) -> Self {
        Self::below(registers.rsp.wrapping_sub(RED_ZONE))
    }
}

impl RtSigFrame {
    /// The frame of a handler that returns to `restorer` and interrupts `registers`; `mask` is blocked again afterwards.
    #[inline(always)]
    pub fn new(
        layout: Layout,
        restorer: u64,
        info: SigInfoHead,
        registers: &Registers,
        stack: StackT,
        mask: u64,
        fault: Fault,
    ) -> Self {
        // Made in one piece, where it stays.
        RtSigFrame {
            return_address: restorer,
            context: UContext {
                flags: UC_FLAGS,
                link: 0,
                stack,
                registers: save(registers, layout, mask, &fault),
                mask,
            },
            info,
        }
    }
}

/// Has the program go on in a handler whose frame is written.
pub fn enter(registers: &mut Registers, layout: Layout, handler: usize, signal: u32) {
    registers.rsp = layout.frame;
    registers.rip = handler;
    registers.rax = 0;
    registers.rdi = signal as usize;
    registers.rsi = layout.frame + core::mem::offset_of!(RtSigFrame, info);
    registers.rdx = layout.frame + core::mem::offset_of!(RtSigFrame, context);
    registers.rflags &= !CLEARED_FLAGS;
}

/// The address of the [`UContext`] when a handler has returned, which took the return address off.
pub fn returned_context(registers: &Registers) -> usize {
    registers.rsp
}

impl UContext {
    /// The address of the floating-point state; `None` for that of a new program.
    pub fn fpu(&self) -> Option<usize> {
        (self.registers.fp_state != 0).then_some(self.registers.fp_state as usize)
    }

    /// The signal mask.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// The alternate stack.
    pub fn stack(&self) -> &StackT {
        &self.stack
    }

    /// Whether it names the segments that a program has; the processor would refuse to go on with others.
    pub fn has_user_segments(&self) -> bool {
        // As on Linux, the privilege level is the program's whatever it says.
        const LEVEL: u16 = 3;
        (self.registers.cs | LEVEL, self.registers.ss | LEVEL) == (USER_CS, USER_SS)
    }

    /// Sets the registers as it says, as far as a program may.
    pub fn restore(&self, registers: &mut Registers) {
        restore(registers, &self.registers);
    }
}

/// What stands in the floating-point state of a frame where the processor leaves room to software.
pub fn fpu_software() -> [u8; FXSAVE_SIZE - FP_SOFTWARE_AT] {
    let (size, features) = frame::user::fpu_size();
    let software = FpSoftware {
        magic: FP_MAGIC1,
        extended_size: (size + size_of::<u32>()) as u32,
        features,
        size: size as u32,
        padding: [0; 7],
    };
    zerocopy::transmute!(software)
}

/// Reads a frame's floating-point state into `state`, as the processor takes it; how much of it counts.
///
/// # Errors
/// What `read` says.
pub fn decode_fpu<E>(state: &mut [u8], mut read: impl FnMut(&mut [u8]) -> Result<(), E>) -> Result<usize, E> {
    let (size, features) = frame::user::fpu_size();
    let (legacy, rest) = state.split_at_mut(FXSAVE_SIZE.min(state.len()));
    read(legacy)?;
    let software = legacy.get(FP_SOFTWARE_AT..).and_then(|bytes| FpSoftware::read_from_bytes(bytes).ok());
    if !software.is_some_and(|software| software.magic == FP_MAGIC1 && software.size as usize == size) {
        // A state without what XSAVE adds.
        return Ok(legacy.len());
    }
    read(rest)?;
    if let Some(word) = state.get_mut(XSTATE_FEATURES_AT..XSTATE_FEATURES_AT + 8) {
        // What a program adds is not loaded: only what the processor has.
        let wanted = u64::from_le_bytes(word.try_into().unwrap_or_default());
        word.copy_from_slice(&(wanted & features).to_le_bytes());
    }
    Ok(state.len())
}

#[inline(always)]
fn save(from: &Registers, layout: Layout, mask: u64, fault: &Fault) -> SigContext {
    let word = |value: usize| value as u64;
    SigContext {
        r8_up: [from.r8, from.r9, from.r10, from.r11, from.r12, from.r13, from.r14, from.r15].map(word),
        rdi: word(from.rdi),
        rsi: word(from.rsi),
        rbp: word(from.rbp),
        rbx: word(from.rbx),
        rdx: word(from.rdx),
        rax: word(from.rax),
        rcx: word(from.rcx),
        rsp: word(from.rsp),
        rip: word(from.rip),
        rflags: word(from.rflags),
        cs: USER_CS,
        gs: 0,
        fs: 0,
        ss: USER_SS,
        error: fault.code as u64,
        trap: u64::from(fault.vector),
        old_mask: mask,
        cr2: fault.address as u64,
        fp_state: layout.fpu as u64,
        reserved: [0; 8],
    }
}

fn restore(to: &mut Registers, from: &SigContext) {
    let word = |value: u64| value as usize;
    [to.r8, to.r9, to.r10, to.r11, to.r12, to.r13, to.r14, to.r15] = from.r8_up.map(word);
    to.rdi = word(from.rdi);
    to.rsi = word(from.rsi);
    to.rbp = word(from.rbp);
    to.rbx = word(from.rbx);
    to.rdx = word(from.rdx);
    to.rax = word(from.rax);
    to.rcx = word(from.rcx);
    to.rsp = word(from.rsp);
    to.rip = word(from.rip);
    to.rflags = (to.rflags & !USER_FLAGS) | (word(from.rflags) & USER_FLAGS);
}
