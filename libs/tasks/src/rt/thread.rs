//! A thread's own run-time, under an operating system: how it is found, and how it sleeps.
//!
//! The pointer to it lies in a thread-local variable of ELF's initial-exec kind, `ebb_rt_current`, which C code may declare as well:
//! two loads, no call, and never kept across a switch.

use core::arch::{asm, global_asm};
use core::ptr::null;
use core::sync::atomic::Ordering;

use super::layout::Runtime;
use super::runtime::Idle;

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

/// A thread that runs tasks of another scheduler.
pub(crate) const OTHER_SCHEDULER: *const Runtime = core::ptr::without_provenance(1);

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

/// The right of the calling thread to run tasks, until it is dropped.
pub(crate) struct Claim(());

impl Claim {
    /// Claims the thread.
    ///
    /// # Panics
    /// If it runs tasks already.
    pub(crate) fn new() -> Self {
        assert!(own_runtime().is_null(), "this thread runs tasks already: there can be one context only on a stack");
        set_own_runtime(OTHER_SCHEDULER);
        Claim(())
    }

    /// Says which run-time the thread has.
    pub(crate) fn set(self, runtime: &'static Runtime) -> Self {
        set_own_runtime(runtime);
        self
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        set_own_runtime(null());
    }
}

/// How a thread idles if it is told nothing else: it sleeps (in a futex) until another thread asks for one of its tasks.
pub struct Sleep;

impl Idle for Sleep {
    fn wait(&self, runtime: &'static Runtime) {
        // The word is 1 from before the last look for something to do until `wake`.
        // SAFETY: it is valid for ever; FUTEX_WAIT only reads it.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                runtime.remote.sleeping.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                1,
                null::<libc::timespec>(),
            );
        }
    }

    fn wake(&self, runtime: &'static Runtime) {
        if runtime.remote.sleeping.swap(0, Ordering::SeqCst) == 1 {
            // SAFETY: as above.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    runtime.remote.sleeping.as_ptr(),
                    libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                    1,
                );
            }
        }
    }
}
