//! What this crate has to know of the processor where it is part of a kernel: which core runs, and what a core does while it waits for another.
//! A program needs neither.

#[cfg(not(any(ebb_loom, ebb_shuttle)))]
use core::sync::atomic::{AtomicPtr, Ordering};

/// What a kernel says of its processor.
#[derive(Debug)]
pub struct Processor {
    /// The number under which the core that calls is [registered](crate::reclaim::Core): objects that die on it are counted as its own.
    pub current_core: fn() -> usize,
    /// Called again and again by a core that spins: it answers what other cores ask of it and does not suspend. It uses nothing of this crate.
    pub relax: fn(),
}

#[cfg(not(any(ebb_loom, ebb_shuttle)))]
static PROCESSOR: AtomicPtr<Processor> = AtomicPtr::new(core::ptr::null_mut());

/// Says what the processor is like. To be called before a second core runs.
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
pub fn set_processor(processor: &'static Processor) {
    PROCESSOR.store(core::ptr::from_ref(processor).cast_mut(), Ordering::Release);
}

#[cfg(not(any(ebb_loom, ebb_shuttle)))]
fn processor() -> Option<&'static Processor> {
    // SAFETY: null, or what `set_processor` was given, which lives for ever and is only read.
    unsafe { PROCESSOR.load(Ordering::Acquire).as_ref() }
}

/// Waits a little for another core.
#[inline]
pub fn spin_loop() {
    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    spin_kernel_loop();
    #[cfg(ebb_loom)]
    loom::hint::spin_loop();
    #[cfg(ebb_shuttle)]
    shuttle::hint::spin_loop();
}

#[cfg(not(any(ebb_loom, ebb_shuttle)))]
extern "C" fn spin_kernel_loop() {
    core::hint::spin_loop();
    if let Some(processor) = processor() {
        (processor.relax)();
    }
}

// In a kernel nearly every function takes locks. What spins must not cost those that do not: the routine preserves all registers and aligns the stack itself, so that
// neither is done for it where the lock is free. (No vector registers: a kernel is compiled without.)
#[cfg(all(target_os = "none", target_arch = "x86_64"))]
core::arch::global_asm!(
    ".pushsection .text.unlikely.refs_spin_on, \"ax\"",
    ".globl refs_spin_on",
    "refs_spin_on:",
    "push rbp",
    "mov rbp, rsp",
    "and rsp, -16",
    "push rax",
    "push rcx",
    "push rdx",
    "push rsi",
    "push rdi",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push r11",
    "cld",
    "call {spin}",
    "pop r11",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdi",
    "pop rsi",
    "pop rdx",
    "pop rcx",
    "pop rax",
    "mov rsp, rbp",
    "pop rbp",
    "ret",
    ".popsection",
    spin = sym spin_kernel_loop,
);

/// As [`spin_loop`], for code that is inlined into nearly everything.
#[cfg(not(ebb_loom))]
#[inline(always)]
pub(crate) fn spin_on() {
    #[cfg(all(target_os = "none", target_arch = "x86_64"))]
    // SAFETY: the routine above calls a function that may be called at any time, preserves all registers but the flags, and wants nothing of the stack pointer. That the
    // call pushes its return address disturbs nobody: this target has no red zone, as an interrupt would push there, too.
    unsafe {
        core::arch::asm!("call refs_spin_on", options(nostack));
    }
    #[cfg(not(all(target_os = "none", target_arch = "x86_64")))]
    spin_loop();
}

/// The core that runs this, if somebody knows.
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
#[inline]
pub(crate) fn current_core() -> Option<usize> {
    processor().map(|processor| (processor.current_core)())
}

/// Nobody knows.
#[cfg(any(ebb_loom, ebb_shuttle))]
pub(crate) fn current_core() -> Option<usize> {
    None
}
