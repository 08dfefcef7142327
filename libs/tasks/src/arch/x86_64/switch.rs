//! Switching stacks.
//!
//! A suspended stack has, from its saved pointer upward: the address at which it goes on, then `rbx` and `rbp`. All other
//! registers are clobbered as far as the compiler knows, so it saves what it needs. The switch ends in a `jmp`, never a `ret`: the
//! processor's return stack knows nothing of the stack we come to.

use core::arch::asm;

/// Leaves the current stack, which goes on here when somebody switches to what was stored in `save`; goes on at `to`.
///
/// # Safety
/// `to` was stored by this function and its stack has not been switched to since; `save` is writable, and nobody uses its
/// content before this has switched.
#[inline(always)]
pub(crate) unsafe fn switch(save: *mut usize, to: usize) {
    // SAFETY: by this function's contract; every register is given up but rbx, rbp and rsp, which are restored.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "lea rax, [rip + 2f]",
            "push rax",
            "mov [rdi], rsp",
            "mov rsp, rsi",
            "pop rax",
            "jmp rax",
            "2:",
            "pop rbx",
            "pop rbp",
            inout("rdi") save => _,
            inout("rsi") to => _,
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            clobber_abi("C"),
        );
    }
}

/// Leaves the current stack as [`switch`] does, and calls `entry(argument)` at the top of a fresh one. `entry` ends by [`leave_for`].
///
/// # Safety
/// As for [`switch`]; `top` is the top of a stack that the caller owns.
#[inline(always)]
pub(crate) unsafe fn switch_to_new(save: *mut usize, top: usize, entry: extern "C" fn(*const ()), argument: *const ()) {
    // SAFETY: as in `switch`. The zero that is pushed ends the chain of frames for whoever walks it.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "lea rax, [rip + 2f]",
            "push rax",
            "mov [rcx], rsp",
            "mov rsp, rsi",
            "xor ebp, ebp",
            "push rbp",
            "jmp r8",
            "2:",
            "pop rbx",
            "pop rbp",
            inout("rdi") argument => _,
            inout("rsi") top => _,
            inout("r8") entry => _,
            inout("rcx") save => _,
            out("rdx") _,
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            clobber_abi("C"),
        );
    }
}

/// Abandons the current stack and goes on at `to`. The caller is the bottom of the stack and returns then (where stacks are threads it
/// comes to that).
///
/// # Safety
/// `to` is as for [`switch`]; nothing on the current stack is needed any more.
#[inline(always)]
pub(crate) unsafe fn leave_for(to: usize) {
    // SAFETY: by this function's contract.
    unsafe {
        asm!("mov rsp, {to}", "pop rax", "jmp rax", to = in(reg) to, options(noreturn));
    }
}
