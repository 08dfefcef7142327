//! The calling thread's pointer to its run-time.
//!
//! It lies in a thread-local variable of ELF's initial-exec kind, `ebb_rt_current`, which C code may declare as well: two
//! loads, no call, and never kept across a switch.

use core::arch::{asm, global_asm};

use crate::rt::layout::Runtime;

global_asm!(
    ".pushsection .tbss.ebb_rt_current, \"awT\", @nobits",
    ".p2align 3",
    ".globl ebb_rt_current",
    ".type ebb_rt_current, @object",
    ".size ebb_rt_current, 8",
    "ebb_rt_current:",
    ".zero 8",
    ".popsection",
);

/// The calling thread's run-time; null if it has none.
#[inline(always)]
pub(crate) fn own_runtime() -> *const Runtime {
    let own;
    // SAFETY: reads the thread-local variable defined above.
    unsafe {
        asm!(
            "mov {own}, qword ptr [rip + ebb_rt_current@GOTTPOFF]",
            "mov {own}, qword ptr fs:[{own}]",
            own = out(reg) own,
            // Nothing that the compiler knows of; and not `pure`, so that it is read anew after each switch.
            options(nostack, nomem, preserves_flags),
        );
    }
    own
}

pub(crate) fn set_own_runtime(runtime: *const Runtime) {
    // SAFETY: writes the thread-local variable defined above.
    unsafe {
        asm!(
            "mov {offset}, qword ptr [rip + ebb_rt_current@GOTTPOFF]",
            "mov qword ptr fs:[{offset}], {runtime}",
            offset = out(reg) _,
            runtime = in(reg) runtime,
            options(nostack, preserves_flags),
        );
    }
}
