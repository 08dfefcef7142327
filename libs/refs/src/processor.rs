//! What this crate has to know of the processor where it is part of a kernel: which core runs, and what a core does while it waits for another.
//! A program needs neither.

#[cfg(not(any(ebb_loom, ebb_shuttle)))]
use core::sync::atomic::{AtomicPtr, Ordering};

#[cfg(not(any(ebb_loom, ebb_shuttle)))]
use crate::waiting::Announced;

/// What a kernel says of its processor.
#[derive(Debug)]
pub struct Processor {
    /// The number under which the core that calls is [registered](crate::reclaim::Core::register_as): it frees what dies on it.
    pub current_core: fn() -> usize,
    /// Called again and again by a core that spins: it answers what other cores ask of it and does not suspend. It uses nothing of this crate.
    pub relax: fn(),
    /// The time since some point, in nanoseconds.
    pub nanoseconds: fn() -> u64,
    /// The calling core has waited for [`Wait::TOO_LONG`]: for the lock at this address, or, if it is 0, for an answer of other cores. It takes no locks.
    pub stuck: fn(lock: usize),
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
    relax();
    #[cfg(ebb_loom)]
    loom::hint::spin_loop();
    #[cfg(ebb_shuttle)]
    shuttle::hint::spin_loop();
}

#[cfg(not(any(ebb_loom, ebb_shuttle)))]
fn relax() {
    core::hint::spin_loop();
    if let Some(processor) = processor() {
        (processor.relax)();
    }
}

/// A wait for another core, busily. One that takes longer than anything may that a core does is an error of the kernel's, which [`Processor::stuck`] reports.
#[derive(Debug, Default)]
pub struct Wait {
    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    turns: u32,
    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    /// When the time was last looked at, in nanoseconds; 0 at first.
    last: u64,
    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    /// For how long it has lasted, as far as this core ran meanwhile.
    nanoseconds: u64,
}

impl Wait {
    /// Nothing lasts so long but what lasts for ever, also where a host has the cores wait for each other: 30 seconds.
    pub const TOO_LONG: u64 = 30_000_000_000;
    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    /// So many turns lie between two looks at the time.
    const TURNS: u32 = 256;
    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    /// Where more time lies between two looks, somebody has stopped the whole machine, or this core: no more than this is counted.
    const LOOK: u64 = 20_000_000;

    /// A wait that begins.
    pub const fn new() -> Self {
        Wait {
            #[cfg(not(any(ebb_loom, ebb_shuttle)))]
            turns: 0,
            #[cfg(not(any(ebb_loom, ebb_shuttle)))]
            last: 0,
            #[cfg(not(any(ebb_loom, ebb_shuttle)))]
            nanoseconds: 0,
        }
    }

    /// Waits a little, and answers meanwhile what other cores ask. `lock`: the address of the lock that is waited for; 0: an answer of other cores.
    pub fn spin(&mut self, lock: usize) {
        spin_loop();
        #[cfg(any(ebb_loom, ebb_shuttle))]
        let _ = lock;
        #[cfg(not(any(ebb_loom, ebb_shuttle)))]
        {
            self.turns = self.turns.wrapping_add(1);
            if self.turns.is_multiple_of(Self::TURNS) {
                self.look_at_the_clock(lock);
            }
        }
    }

    /// As [`spin`](Self::spin), of who does so rarely: each time it looks at the clock.
    #[cfg(not(ebb_loom))]
    fn spin_rarely(&mut self, lock: usize) {
        spin_loop();
        #[cfg(ebb_shuttle)]
        let _ = lock;
        #[cfg(not(ebb_shuttle))]
        self.look_at_the_clock(lock);
    }

    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    fn look_at_the_clock(&mut self, lock: usize) {
        if let Some(processor) = processor() {
            self.look((processor.nanoseconds)(), || (processor.stuck)(lock));
        }
    }

    #[cfg(not(any(ebb_loom, ebb_shuttle)))]
    fn look(&mut self, now: u64, stuck: impl FnOnce()) {
        if self.last != 0 {
            self.nanoseconds += now.saturating_sub(self.last).min(Self::LOOK);
        }
        self.last = now;
        if self.nanoseconds >= Self::TOO_LONG {
            self.nanoseconds = 0;
            stuck();
        }
    }
}

/// So often a core that waits for a lock lets the processor rest, and answers what others ask, each time before it looks at the lock.
#[cfg(not(ebb_loom))]
const PATIENCE: u32 = if cfg!(ebb_shuttle) { u32::MAX } else { 10_000 };

/// From then on it does so once in so many looks, some 50 us apart, and looks all the time in between. Else it would wait for ever for a lock that another core takes again and
/// again if that waits, while it has the lock, until this core has answered: this one would look only just after it has, which is too early.
#[cfg(not(ebb_loom))]
const INSISTENCE: u32 = 20_000;

/// Waits until the lock is free, and takes it.
#[cfg(not(ebb_loom))]
extern "C-unwind" fn wait_for_lock(lock: &crate::sync::AtomicBool) {
    let address = core::ptr::from_ref(lock).addr();
    #[cfg(not(ebb_shuttle))]
    let _announced = Announced::begin(address);
    let mut wait = Wait::new();
    let mut turns = 0_u32;
    loop {
        // Only looks: who has the lock needs its cache line to give it back.
        while lock.load(crate::sync::Ordering::Relaxed) {
            turns = turns.wrapping_add(1);
            if turns < PATIENCE {
                wait.spin(address);
            } else if turns.is_multiple_of(INSISTENCE) {
                wait.spin_rarely(address);
            }
        }
        if !lock.swap(true, crate::sync::Ordering::Acquire) {
            return;
        }
        // Somebody else was quicker: who has it gives it back.
        wait = Wait::new();
    }
}

// In a kernel nearly every function takes locks. What spins must not cost those that do not: the routine preserves all registers and aligns the stack itself, so that
// neither is done for it where the lock is free. (No vector registers: a kernel is compiled without.)
#[cfg(all(target_os = "none", target_arch = "x86_64"))]
core::arch::global_asm!(
    ".pushsection .text.unlikely.refs_spin_until_locked, \"ax\"",
    ".globl refs_spin_until_locked",
    "refs_spin_until_locked:", // the lock's address is on the stack, above the return address
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
    "mov rdi, [rbp + 16]",
    "call {wait}",
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
    "ret 8",
    ".popsection",
    wait = sym wait_for_lock,
);

/// Waits until the lock is free, and takes it: for code that is inlined into nearly everything.
#[cfg(not(ebb_loom))]
#[inline(always)]
pub(crate) fn spin_until_locked(lock: &crate::sync::AtomicBool) {
    #[cfg(all(target_os = "none", target_arch = "x86_64"))]
    // SAFETY: the routine above calls a function that may be called at any time with a lock, preserves all registers but the flags, takes its argument off the stack, and wants
    // nothing else of the stack pointer. That its argument and return address are pushed disturbs nobody: this target has no red zone, as an interrupt would push there, too.
    unsafe {
        core::arch::asm!("push {lock}", "call refs_spin_until_locked", lock = in(reg) core::ptr::from_ref(lock), options(nostack));
    }
    #[cfg(not(all(target_os = "none", target_arch = "x86_64")))]
    wait_for_lock(lock);
}

/// The core that runs this, if somebody knows.
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
#[inline]
pub(crate) fn current_core() -> Option<usize> {
    processor().map(|processor| (processor.current_core)())
}

/// Whether anybody can know which core runs.
#[cfg(not(any(ebb_loom, ebb_shuttle)))]
#[inline]
pub(crate) fn is_processor_known() -> bool {
    processor().is_some()
}

#[cfg(any(ebb_loom, ebb_shuttle))]
pub(crate) fn is_processor_known() -> bool {
    false
}

/// Nobody knows.
#[cfg(any(ebb_loom, ebb_shuttle))]
pub(crate) fn current_core() -> Option<usize> {
    None
}
