//! What an operating system gives each thread: a place for the pointer to its run-time, and a way to sleep.
//!
//! The pointer lies in a thread-local variable of ELF's initial-exec kind, `ebb_rt_current`, which C code may declare as well: two
//! loads, no call, and never kept across a switch.

use core::arch::{asm, global_asm};
use core::ptr::null;

use super::layout::Runtime;
use crate::atomic::AtomicU32;

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

/// Sleeps as long as the word has that value, until somebody wakes who sleeps on it; may end early.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32) {
    // SAFETY: the word is valid during the call, which only reads it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            null::<libc::timespec>(),
        );
    }
}

/// Wakes one that sleeps on the word.
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
}
