//! Into user mode and back: the hottest path of the kernel.
//!
//! Entering is a call that returns when user code traps. It keeps nothing but the stack pointer (the caller saves what it
//! needs: the inline assembly of [`enter`] says that every register is lost); the user's registers go from and to
//! [`Registers`], whose address is in the core's block.

use core::arch::{asm, global_asm};
use core::mem::offset_of;

use refs::reclaim::EPOCH;

use super::core_block::{CoreBlock, core_block};
use super::descriptors::{KERNEL_CODE, USER_BASE, USER_CODE, USER_DATA};
use super::instructions::{read_cr4, write_cr4, wrmsr};
use super::registers::SegmentBases;
use crate::user::{CycleCounter, Registers, UserState};

const FS_BASE: u32 = 0xc000_0100;
const KERNEL_GS_BASE: u32 = 0xc000_0102;
const STAR: u32 = 0xc000_0081;
const LSTAR: u32 = 0xc000_0082;
const FLAG_MASK: u32 = 0xc000_0084;
const CR4_TIME_STAMP_DISABLE: u64 = 1 << 2;

/// The flags that belong to user code: carry, parity, adjust, zero, sign, trap, direction, overflow, resume, alignment check, ID.
pub const USER_FLAGS: usize = 0x25_0dd5;
/// User code does one instruction and traps.
const TRAP_FLAG: usize = 0x100;
/// Interrupts are on in user mode, and bit 1 is always set.
pub const FIXED_FLAGS: usize = 0x202;
const _: () =
    assert!(crate::mm::USER_END < 1 << 47, "a `syscall` never ends at an address that `sysret` does not take");
/// What the kernel is entered without: all flags that mean anything, interrupts among them.
const CLEARED_FLAGS: u64 = 0x25_7fd5;

global_asm!(
    r#"
    .section .text.hot.ebb_user_mode, "ax"
    .balign 64
.globl ebb_enter_fast
ebb_enter_fast:                     # rdi: registers; rcx: rip; r11: flags
    mov gs:[{kernel_rsp}], rsp
    mov rax, [rdi + {rax}]
    mov rbx, [rdi + {rbx}]
    mov rdx, [rdi + {rdx}]
    mov rsi, [rdi + {rsi}]
    mov rbp, [rdi + {rbp}]
    mov r8, [rdi + {r8}]
    mov r9, [rdi + {r9}]
    mov r10, [rdi + {r10}]
    mov r12, [rdi + {r12}]
    mov r13, [rdi + {r13}]
    mov r14, [rdi + {r14}]
    mov r15, [rdi + {r15}]
    mov rsp, [rdi + {rsp}]
    mov rdi, [rdi + {rdi}]
    mov qword ptr gs:[{report}], 0  # the core runs no task of the kernel: `refs::reclaim::Report`
    swapgs
    sysretq

    .balign 64
.globl ebb_syscall
ebb_syscall:                        # the stack is the user's, and nothing is pushed until it is the kernel's
    swapgs
    mov gs:[{scratch}], rax
    mov rax, gs:[{loaded}]
    mov [rax + {rbx}], rbx
    mov [rax + {rcx}], rcx
    mov [rax + {rip}], rcx
    mov [rax + {rdx}], rdx
    mov [rax + {rsi}], rsi
    mov [rax + {rdi}], rdi
    mov [rax + {rbp}], rbp
    mov [rax + {r8}], r8
    mov [rax + {r9}], r9
    mov [rax + {r10}], r10
    mov [rax + {r11}], r11
    mov [rax + {rflags}], r11
    mov [rax + {r12}], r12
    mov [rax + {r13}], r13
    mov [rax + {r14}], r14
    mov [rax + {r15}], r15
    mov [rax + {rsp}], rsp
    mov rcx, gs:[{scratch}]
    mov [rax + {rax}], rcx
    mov rsp, gs:[{kernel_rsp}]
    mov rax, [rip + {epoch}]
    xchg gs:[{report}], rax         # back, with a full barrier; it was 0
    ret

    .balign 64
.globl ebb_enter_exact
ebb_enter_exact:                    # rdi: registers; rcx: rip; r11: flags
    mov gs:[{kernel_rsp}], rsp
    push {user_data}
    push [rdi + {rsp}]
    push r11
    push {user_code}
    push rcx
    mov rax, [rdi + {rax}]
    mov rbx, [rdi + {rbx}]
    mov rcx, [rdi + {rcx}]
    mov rdx, [rdi + {rdx}]
    mov rsi, [rdi + {rsi}]
    mov rbp, [rdi + {rbp}]
    mov r8, [rdi + {r8}]
    mov r9, [rdi + {r9}]
    mov r10, [rdi + {r10}]
    mov r11, [rdi + {r11}]
    mov r12, [rdi + {r12}]
    mov r13, [rdi + {r13}]
    mov r14, [rdi + {r14}]
    mov r15, [rdi + {r15}]
    mov rdi, [rdi + {rdi}]
    mov qword ptr gs:[{report}], 0
    swapgs
    iretq
    "#,
    report = const offset_of!(CoreBlock, report),
    epoch = sym EPOCH,
    loaded = const offset_of!(CoreBlock, loaded),
    scratch = const offset_of!(CoreBlock, scratch),
    kernel_rsp = const offset_of!(CoreBlock, kernel_rsp),
    user_data = const USER_DATA,
    user_code = const USER_CODE,
    rax = const offset_of!(Registers, rax),
    rbx = const offset_of!(Registers, rbx),
    rcx = const offset_of!(Registers, rcx),
    rdx = const offset_of!(Registers, rdx),
    rsi = const offset_of!(Registers, rsi),
    rdi = const offset_of!(Registers, rdi),
    rbp = const offset_of!(Registers, rbp),
    rsp = const offset_of!(Registers, rsp),
    r8 = const offset_of!(Registers, r8),
    r9 = const offset_of!(Registers, r9),
    r10 = const offset_of!(Registers, r10),
    r11 = const offset_of!(Registers, r11),
    r12 = const offset_of!(Registers, r12),
    r13 = const offset_of!(Registers, r13),
    r14 = const offset_of!(Registers, r14),
    r15 = const offset_of!(Registers, r15),
    rip = const offset_of!(Registers, rip),
    rflags = const offset_of!(Registers, rflags),
);

unsafe extern "C" {
    fn ebb_enter_fast();
    fn ebb_enter_exact();
    fn ebb_syscall();
}

/// Tells this core where system calls go.
pub fn init() {
    // SAFETY: every x86-64 processor has these registers. The entry expects what the selectors and the mask say: kernel segments, flags
    // clear, interrupts off.
    unsafe {
        wrmsr(STAR, u64::from(USER_BASE | 3) << 48 | u64::from(KERNEL_CODE) << 32);
        wrmsr(LSTAR, ebb_syscall as *const () as u64);
        wrmsr(FLAG_MASK, CLEARED_FLAGS);
    }
}

/// What brought the kernel back.
pub enum Came {
    /// A `syscall` instruction.
    Syscall,
    /// An exception or interrupt.
    Trap {
        /// Its vector.
        vector: usize,
        /// Its error code, or 0.
        error: usize,
    },
}

macro_rules! enter {
    ($routine:ident, $registers:ident, $rip:ident, $flags:ident, $trapped:ident) => {
        asm!(
            "push rbx",
            "push rbp",
            "call {routine}",
            "pop rbp",
            "pop rbx",
            routine = sym $routine,
            inout("rdi") $registers => _,
            inout("rcx") $rip => _,
            inout("r11") $flags => _,
            lateout("eax") $trapped,
            lateout("r12") _, lateout("r13") _, lateout("r14") _, lateout("r15") _,
            clobber_abi("C"),
        )
    };
}

/// Runs user code with these registers until it traps; they are then as user code left them.
///
/// # Safety
/// `state` is what the core's block says is loaded, and stays so; its `rip` is canonical if it is changed; the active address space is that of the user code; the floating-point
/// state and segment bases are its own.
#[inline(always)]
pub unsafe fn enter(state: *mut UserState) -> Came {
    let registers = state.cast::<Registers>();
    let trapped: u32;
    // SAFETY: the routines load user registers and leave for user mode (flags are masked, so it is unprivileged and
    // interruptible), and come back here on the next trap, with this stack and all other registers lost. `sysret` is taken only
    // to a lower-half address: with another one it would fault in kernel mode. What a `syscall` saved is one, because no page at the end of the lower
    // half is ever mapped; and its flags are those of user mode.
    unsafe {
        let (rip, flags) = ((*registers).rip, (*registers).rflags);
        if !(*state).is_changed {
            enter!(ebb_enter_fast, registers, rip, flags, trapped);
        } else {
            let flags = flags & USER_FLAGS | FIXED_FLAGS;
            // With the trap flag, `sysret` traps before the next instruction: who returns from the handler would never come past it.
            if rip == (*registers).rcx && flags == (*registers).r11 && flags & TRAP_FLAG == 0 {
                enter!(ebb_enter_fast, registers, rip, flags, trapped);
            } else {
                enter!(ebb_enter_exact, registers, rip, flags, trapped);
            }
        }
        (*state).is_changed = trapped != 0;
    }
    if trapped == 0 {
        return Came::Syscall;
    }
    let block = core_block();
    Came::Trap { vector: block.trap_vector.get(), error: block.trap_error.get() }
}

/// Lets user code on this core read the time-stamp counter, or trap where it does. The kernel may always read it.
pub fn set_cycle_counter(cycle_counter: CycleCounter) {
    let others = read_cr4() & !CR4_TIME_STAMP_DISABLE;
    let disable = if cycle_counter == CycleCounter::Trapping { CR4_TIME_STAMP_DISABLE } else { 0 };
    // SAFETY: the bit is there on every x86-64 processor and has an effect in user mode only; the others stay.
    unsafe { write_cr4(others | disable) };
    core_block().cycle_counter.set(cycle_counter);
}

/// Loads the segment bases of user code.
pub fn load_bases(bases: SegmentBases) {
    // SAFETY: they are canonical, and mean nothing to the kernel; while it runs, the user's `gs` base is in the other register.
    unsafe {
        wrmsr(FS_BASE, bases.fs() as u64);
        wrmsr(KERNEL_GS_BASE, bases.gs() as u64);
    }
}
