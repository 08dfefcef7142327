//! The frame of a handler on the user's stack, as x86-64 programs and debuggers expect it, and the way back.
//!
//! ```text
//!   higher   floating-point state (XSAVE, 64-byte aligned), FP_XSTATE_MAGIC2
//!            siginfo
//!            ucontext: flags, link, alternate stack, registers, mask
//!   lower    return address (SA_RESTORER)       <- rsp of the handler; rsp + 8 is a multiple of 16
//! ```

use alloc::vec::Vec;

use frame::Cx;
use frame::user::Registers;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::current::Current;
use crate::error::{Errno, Result};
use crate::signal::{Action, AltStack, Info, SigInfo, SignalSet};
use crate::step::{Patience, complete_async};

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct RtSigFrame {
    return_address: u64,
    context: UContext,
    info: SigInfoHead,
}

/// What a frame is told of its signal.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SigInfoHead {
    signo: i32,
    errno: i32,
    code: i32,
    padding: i32,
    fields: [u64; 4],
}

/// `struct ucontext`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct UContext {
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
const FRAME_SIZE: usize = size_of::<RtSigFrame>() - size_of::<SigInfoHead>() + size_of::<SigInfo>();
const FXSAVE_SIZE: usize = 512;
const FP_SOFTWARE_AT: usize = 464;
const XSTATE_FEATURES_AT: usize = 512;
/// x87 and SSE.
const LEGACY_FEATURES: u64 = 3;
const FP_MAGIC1: u32 = 0x4650_5853;
const FP_MAGIC2: u32 = 0x4650_5845;
/// What leaf functions may use below the stack pointer.
const RED_ZONE: usize = 128;
/// UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS.
const UC_FLAGS: u64 = 1 | 2 | 4;
const USER_CS: u16 = 0x33;
const USER_SS: u16 = 0x2b;
/// Trap, direction and resume flags: a handler starts without them.
const CLEARED_FLAGS: usize = 1 << 8 | 1 << 10 | 1 << 16;
/// What a program may set itself: carry to overflow, alignment check, identification.
const USER_FLAGS: usize = 0x24_4dd5;

impl StackT {
    /// The alternate stack as a program sees it, for a thread whose stack pointer is `sp`.
    pub fn new(stack: AltStack, sp: usize) -> Self {
        let state = if stack.size == 0 {
            abi::SS_DISABLE
        } else if stack.contains(sp) {
            abi::SS_ONSTACK
        } else {
            0
        };
        let flags = state | if stack.auto_disarm { abi::SS_AUTODISARM } else { 0 };
        StackT { base: stack.base, flags, padding: 0, size: stack.size }
    }

    /// The alternate stack that a program asks for.
    ///
    /// # Errors
    /// EINVAL for flags that are not there; ENOMEM if it is too small.
    pub fn decode(&self) -> Result<AltStack> {
        let auto_disarm = self.flags & abi::SS_AUTODISARM != 0;
        match self.flags & !abi::SS_AUTODISARM {
            abi::SS_DISABLE => Ok(AltStack::default()),
            0 | abi::SS_ONSTACK if self.size < u64::from(abi::MINSIGSTKSZ) => Err(Errno::ENOMEM),
            0 | abi::SS_ONSTACK => Ok(AltStack { base: self.base, size: self.size, auto_disarm }),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// Makes the thread go on in the handler of `info`'s signal.
///
/// # Errors
/// EFAULT if the frame cannot be written; the registers are unchanged.
pub fn enter_handler_async(cx: &mut Cx, me: &mut Current, action: Action, info: Info) -> Result<()> {
    if !action.has(abi::SA_RESTORER) {
        return Err(Errno::EFAULT);
    }
    let (alt_stack, mask, blocked) = {
        let thread = me.thread(cx)?;
        let alt_stack = *thread.signals.alt_stack.lock(cx);
        (alt_stack, thread.signals.take_saved_mask(), thread.signals.blocked())
    };
    let registers = me.context.registers;
    let nested = alt_stack.contains(registers.rsp);
    let switches = action.has(abi::SA_ONSTACK) && alt_stack.size != 0 && !nested;
    let top = if switches {
        (alt_stack.base.wrapping_add(alt_stack.size)) as usize
    } else {
        registers.rsp.wrapping_sub(RED_ZONE)
    };
    let (fp_size, _) = frame::user::fpu_size();
    let fp_at = top.wrapping_sub(fp_size + size_of::<u32>()) & !63;
    let at = (fp_at.wrapping_sub(FRAME_SIZE) & !15).wrapping_sub(8);
    if (nested || switches) && !alt_stack.contains(at.wrapping_add(1)) {
        return Err(Errno::EFAULT);
    }
    write_fp_state_async(cx, me, fp_at)?;
    let (address, error, trap) = core::mem::take(&mut me.fault);
    let contents = RtSigFrame {
        return_address: action.restorer,
        context: UContext {
            flags: UC_FLAGS,
            link: 0,
            stack: StackT::new(alt_stack, registers.rsp),
            registers: SigContext {
                fp_state: fp_at as u64,
                error: error as u64,
                trap: u64::from(trap),
                cr2: address as u64,
                old_mask: mask.0,
                ..save(&registers)
            },
            mask: mask.0,
        },
        info: SigInfoHead {
            signo: info.signal.number() as i32,
            errno: info.errno,
            code: info.code,
            padding: 0,
            fields: info.fields,
        },
    };
    me.write_async(cx, at, &contents)?;
    let registers = &mut me.context.registers;
    registers.rsp = at;
    registers.rip = action.handler as usize;
    registers.rax = 0;
    registers.rdi = info.signal.number() as usize;
    registers.rsi = at + core::mem::offset_of!(RtSigFrame, info);
    registers.rdx = at + core::mem::offset_of!(RtSigFrame, context);
    registers.rflags &= !CLEARED_FLAGS;
    let (thread, process) = (me.thread(cx)?, me.process(cx)?);
    let own = if action.has(abi::SA_NODEFER) { SignalSet::EMPTY } else { info.signal.set() };
    thread.signals.set_blocked(blocked.union(SignalSet(action.mask)).union(own));
    thread.signals.look_again(&process.pending);
    if alt_stack.auto_disarm && switches {
        *thread.signals.alt_stack.lock(cx) = AltStack::default();
    }
    Ok(())
}

fn write_fp_state_async(cx: &mut Cx, me: &mut Current, at: usize) -> Result<()> {
    let (size, features) = frame::user::fpu_size();
    let mut state = core::mem::take(&mut me.fp_scratch);
    state.resize(size + size_of::<u32>(), 0);
    let current = me.context.fpu_state(cx);
    let len = current.len().min(size);
    state[..len].copy_from_slice(&current[..len]);
    let software = FpSoftware {
        magic: FP_MAGIC1,
        extended_size: state.len() as u32,
        features,
        size: size as u32,
        padding: [0; 7],
    };
    if let Some(to) = state.get_mut(FP_SOFTWARE_AT..FXSAVE_SIZE) {
        to.copy_from_slice(software.as_bytes());
    }
    state[size..].copy_from_slice(&FP_MAGIC2.to_le_bytes());
    let outcome = me.write_bytes_async(cx, at, &state);
    me.fp_scratch = state;
    outcome
}

/// rt_sigreturn(2): the registers, mask and alternate stack become what the frame says. The result is the value of `rax`.
///
/// # Errors
/// EFAULT if the frame is not there or not well-formed: the caller sends SIGSEGV.
pub fn return_from_handler_async(cx: &mut Cx, me: &mut Current) -> Result<usize> {
    // The handler's return has taken the return address off.
    let at = me.context.registers.rsp;
    let mut contents = UContext::new_zeroed();
    complete_async(cx, me, Patience::Forever, |cx, me, _| {
        me.memory(cx)?.reader(at, size_of::<UContext>()).read(contents.as_mut_bytes())?;
        Ok(())
    })?;
    let saved = contents.registers;
    if saved.fp_state == 0 {
        me.context.reset_fpu(cx);
    } else {
        read_fp_state_async(cx, me, saved.fp_state as usize)?;
    }
    restore(&mut me.context.registers, &saved);
    let (thread, process) = (me.thread(cx)?, me.process(cx)?);
    thread.signals.set_blocked(SignalSet(contents.mask));
    thread.signals.look_again(&process.pending);
    if let Ok(stack) = contents.stack.decode()
        && !thread.signals.alt_stack.lock(cx).contains(me.context.registers.rsp)
    {
        *thread.signals.alt_stack.lock(cx) = stack;
    }
    Ok(me.context.registers.rax)
}

fn read_fp_state_async(cx: &mut Cx, me: &mut Current, at: usize) -> Result<()> {
    let mut state = core::mem::take(&mut me.fp_scratch);
    let outcome = copy_fp_state_async(cx, me, at, &mut state);
    let outcome = outcome.and_then(|()| me.context.set_fpu_state(&state, cx).map_err(|_| Errno::EFAULT));
    me.fp_scratch = state;
    outcome
}

fn copy_fp_state_async(cx: &mut Cx, me: &mut Current, at: usize, state: &mut Vec<u8>) -> Result<()> {
    let (size, features) = frame::user::fpu_size();
    state.resize(size, 0);
    let whole = complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let memory = me.memory(cx)?;
        let mut reader = memory.reader(at, size);
        let (legacy, rest) = state.split_at_mut(FXSAVE_SIZE.min(size));
        reader.read(legacy)?;
        let software = legacy.get(FP_SOFTWARE_AT..).and_then(|bytes| FpSoftware::read_from_bytes(bytes).ok());
        let whole = software.is_some_and(|software| software.magic == FP_MAGIC1 && software.size as usize == size);
        if whole {
            reader.read(rest)?;
        } else {
            // A state without what XSAVE adds.
            rest.fill(0);
        }
        Ok(whole)
    })?;
    if let Some(word) = state.get_mut(XSTATE_FEATURES_AT..XSTATE_FEATURES_AT + 8) {
        // What a program adds is not loaded: only what the processor has.
        let told = u64::from_le_bytes(word.try_into().unwrap_or_default());
        let loaded = if whole { told & features } else { LEGACY_FEATURES };
        word.copy_from_slice(&loaded.to_le_bytes());
    }
    Ok(())
}

fn save(from: &Registers) -> SigContext {
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
        error: 0,
        trap: 0,
        old_mask: 0,
        cr2: 0,
        fp_state: 0,
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
