//! Switching between tasks of [`rt`](crate::rt).
//!
//! Where a task goes on is four words in its [`Awe`], which is one cache line that the next switch has to read anyway: so a switch
//! writes nothing to the stack. All other registers are clobbered as far as the compiler knows, so it saves what it needs. A
//! switch ends in a `jmp`, never a `ret`: the processor's return stack knows nothing of the stack we come to.
//!
//! Whoever resumes a task leaves in `rax` something above 2 (an address as a rule), or 1: a call that was left has another outcome
//! than one that returned. Five bytes before each resume address is another entry, for a task that is to [end](crate::rt::abort_async).
//! `mxcsr` and the x87 control word are not switched: who changes them must not suspend meanwhile.

use core::arch::asm;
use core::cell::Cell;

use crate::rt::layout::{Awe, Runtime};
use crate::rt::stop::end_this_task;

/// Where a task goes on.
#[repr(C)]
pub(crate) struct Context {
    rsp: Cell<usize>,
    resume: Cell<usize>,
    rbx: Cell<usize>,
    rbp: Cell<usize>,
}

impl Context {
    pub(crate) const fn new() -> Self {
        Context { rsp: Cell::new(0), resume: Cell::new(0), rbx: Cell::new(0), rbp: Cell::new(0) }
    }

    /// How many bytes of its stack, which begins at `top`, a suspended task uses.
    pub(crate) fn used_bytes(&self, top: usize) -> usize {
        top - self.rsp.get()
    }
}

/// Leaves the current stack, which goes on here when somebody switches to `save`, and goes on at `to`. Both may be the same.
///
/// # Safety
/// `to` was stored by this function or by [`call_on`] and has not been switched to since.
#[inline(always)]
pub(crate) unsafe fn exchange(save: &Context, to: &Context) {
    // SAFETY: by this function's contract; every register is given up but rbx, rbp and rsp, which whoever comes back restores.
    unsafe {
        asm!(
            "lea rax, [rip + 2f]",
            "mov [r12 + 8], rax",
            "mov [r12], rsp",
            "mov [r12 + 16], rbx",
            "mov [r12 + 24], rbp",
            "mov rsp, [r13]",
            "mov rbx, [r13 + 16]",
            "mov rbp, [r13 + 24]",
            "jmp qword ptr [r13 + 8]",
            // A jump of five bytes: where an aborted task goes on.
            ".byte 0xe9",
            ".long {aborted} - 2f",
            "2:",
            inout("r12") save => _,
            inout("r13") to => _,
            aborted = label { end_this_task() },
            out("r14") _, out("r15") _,
            clobber_abi("C"),
        );
    }
}

/// Leaves the current stack as [`exchange`] does, and goes on at `to` with the order to end.
///
/// # Safety
/// As for [`exchange`].
#[inline(never)]
pub(crate) unsafe fn exchange_to_end(save: &Context, to: &Context) {
    to.resume.set(to.resume.get() - ABORT_ENTRY_BYTES);
    // SAFETY: by this function's contract; before each resume address there is the abort entry.
    unsafe { exchange(save, to) }
}

/// How long the entry for aborted tasks before each resume address is.
const ABORT_ENTRY_BYTES: usize = 5;

/// What becomes of a call on another stack.
pub(crate) enum Called {
    /// It returned. Here are the caller, the callee and their run-time again: they were kept in registers meanwhile, which is better than
    /// reading them from memory.
    Returned(&'static Awe, &'static Awe, &'static Runtime),
    /// Somebody switched to where the call came from.
    Resumed,
    /// The same, with the order to end.
    Aborted,
}

/// What is called on another stack.
pub(crate) trait Entry {
    /// Runs there.
    ///
    /// # Safety
    /// The arguments are what was passed to [`call_on`].
    unsafe extern "C" fn enter(argument: *mut (), runtime: *const Runtime);
}

/// Calls `E::enter(argument, runtime)` on the stack of `callee`. Where the call comes from is stored in the context of `caller`: who
/// leaves the other stack without returning switches there, once; after that `enter` must not return.
///
/// # Safety
/// Nothing runs on the stack of `callee`, which is the caller's to use.
#[inline(always)]
pub(crate) unsafe fn call_on<E: Entry>(
    argument: *mut (),
    caller: &'static Awe,
    callee: &'static Awe,
    runtime: &'static Runtime,
) -> Called {
    const { assert!(core::mem::offset_of!(Awe, context) == 0) };
    let outcome: usize;
    let (same_caller, same_callee, same_runtime): (*const Awe, *const Awe, *const Runtime);
    // An unwinder that comes from the other stack must not go on with this one's frames, which are not where it believes.
    macro_rules! call {
        ($before:literal, $after:literal) => {
            asm!(
                "lea rax, [rip + 2f]",
                "mov [r12 + 8], rax",
                "mov [r12], rsp",
                "mov [r12 + 16], rbx",
                "mov [r12 + 24], rbp",
                "mov r15, rsp",
                "mov rsi, r14",
                "mov rsp, rdx",
                $before,
                "call {enter}",
                $after,
                "mov rsp, r15",
                "xor eax, eax",
                "jmp 2f",
                "mov eax, 2",
                "2:",
                enter = sym E::enter,
                inout("rdi") argument => _,
                out("rsi") _,
                inout("rdx") callee.stack_top.get() => _,
                inout("r12") caller => same_caller,
                inout("r13") callee => same_callee,
                inout("r14") runtime => same_runtime,
                out("rax") outcome,
                out("r15") _,
                clobber_abi("C"),
            )
        };
    }
    // SAFETY: where `enter` returns it has kept rbx, rbp and r12 to r15, as the calling convention says; where it does not, the
    // switch that comes here restores rsp, rbx and rbp, and all else is given up.
    unsafe {
        #[cfg(all(target_os = "linux", panic = "unwind"))]
        call!(".cfi_remember_state\n.cfi_undefined rip", ".cfi_restore_state");
        #[cfg(not(all(target_os = "linux", panic = "unwind")))]
        call!("", "");
    }
    match outcome {
        // SAFETY: the call returned, so the registers hold what they held before.
        0 => unsafe { Called::Returned(&*same_caller, &*same_callee, &*same_runtime) },
        2 => Called::Aborted,
        _ => Called::Resumed,
    }
}

/// What is left of a task that has left its stack: nothing that goes on there.
pub(crate) type Left = core::convert::Infallible;

/// Abandons the current stack and goes on at `to`.
///
/// # Safety
/// As for [`exchange`]; nothing on the current stack is needed any more.
#[inline(always)]
pub(crate) unsafe fn leave_for(to: &Context) -> Left {
    // SAFETY: by this function's contract.
    unsafe {
        asm!(
            "mov rsp, [rsi]",
            "mov rbx, [rsi + 16]",
            "mov rbp, [rsi + 24]",
            "mov eax, 1",
            "jmp qword ptr [rsi + 8]",
            in("rsi") to,
            options(noreturn),
        );
    }
}
