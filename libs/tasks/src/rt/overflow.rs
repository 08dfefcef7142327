//! Stack overflows: a task that runs into the guard page of its stack ends the program, with its name.
//!
//! The handler of SIGSEGV looks whether the address lies in the guard of the running task's stack; all other faults go to the
//! handler that was there before. It runs on the thread's alternate stack. Compiled Rust code touches each page of a large frame
//! (stack probes), so it cannot jump over a guard; C code needs `-fstack-clash-protection` for that.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};
use std::sync::OnceLock;

use super::layout::Awe;
use super::stacks::GUARD_BYTES;
use super::thread::{OTHER_SCHEDULER, own_runtime};

/// What was done at SIGSEGV before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Makes sure that overflows are reported, in this process and, until the value is dropped, on this thread.
pub(crate) fn watch() -> AlternateStack {
    BEFORE.get_or_init(install);
    AlternateStack::new()
}

fn install() -> libc::sigaction {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a handler with the signature that SA_SIGINFO asks for; all zeroes are a valid `sigaction`.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGSEGV, &raw const action, before.as_mut_ptr());
        before.assume_init()
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid `info`.
    let address = unsafe { (*info).si_addr() }.addr();
    if let Some((awe, size)) = overflowed(address) {
        report(awe.name.get(), size);
    }
    pass_on(signal, info, context);
}

/// The running task, and the size of its stack, if `address` is in the guard.
fn overflowed(address: usize) -> Option<(&'static Awe, usize)> {
    let runtime = own_runtime();
    if runtime <= OTHER_SCHEDULER {
        return None;
    }
    // SAFETY: a thread's run-time is valid for ever, and its cells are this thread's.
    let awe = unsafe { (*runtime).current.get()? };
    let (bottom, top) = awe.stack.get();
    let guard = bottom.saturating_sub(GUARD_BYTES)..bottom;
    guard.contains(&address).then(|| (awe, top - bottom))
}

/// Says which task it was, and ends the program. Only async-signal-safe functions are called.
fn report(name: &str, size: usize) -> ! {
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = size;
    while first > 0 && (rest > 0 || first == digits.len()) {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let name = if name.is_empty() { "without a name" } else { name };
    for part in [b"\ntask ", name.as_bytes(), b" has overflowed its stack of ", &digits[first..], b" bytes\n"] {
        // SAFETY: writes bytes that exist.
        unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: may be called at any time.
    unsafe { libc::abort() }
}

/// Does what was done at this signal before.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    match BEFORE.get() {
        Some(before) if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN => {
            // SAFETY: the address of a handler that was installed with or without SA_SIGINFO; one that expects less ignores the rest.
            unsafe {
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    core::mem::transmute(before.sa_sigaction);
                handler(signal, info, context);
            }
        }
        _ => {
            // SAFETY: restores the default; the instruction that faulted is run again and ends the program.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// A stack for signal handlers, if the thread had none.
pub(crate) struct AlternateStack {
    memory: *mut c_void,
}

const ALTERNATE_BYTES: usize = 64 * 1024;

impl AlternateStack {
    fn new() -> Self {
        // SAFETY: asks for, and then sets, the calling thread's alternate stack, to memory that is mapped until it is taken back.
        unsafe {
            let mut now = MaybeUninit::<libc::stack_t>::zeroed();
            if libc::sigaltstack(null(), now.as_mut_ptr()) != 0 || now.assume_init().ss_flags & libc::SS_DISABLE == 0 {
                return AlternateStack { memory: null_mut() };
            }
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let memory = libc::mmap(null_mut(), ALTERNATE_BYTES, protection, flags, -1, 0);
            if memory == libc::MAP_FAILED {
                return AlternateStack { memory: null_mut() };
            }
            let stack = libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: ALTERNATE_BYTES };
            libc::sigaltstack(&raw const stack, null_mut());
            AlternateStack { memory }
        }
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        if !self.memory.is_null() {
            let none = libc::stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            // SAFETY: made by `new`, on this thread.
            unsafe {
                libc::sigaltstack(&raw const none, null_mut());
                libc::munmap(self.memory, ALTERNATE_BYTES);
            }
        }
    }
}
