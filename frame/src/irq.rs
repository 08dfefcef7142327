//! Interrupt lines. Handlers run to completion with interrupts off; they record work and wake tasks.

use core::marker::PhantomData;

use refs::NoSuspend;

use crate::arch::machine::instructions;

/// An interrupt handler's context. It is only ever a `&` argument: a handler can neither suspend nor destroy.
pub struct IrqCx {
    _private: PhantomData<*mut ()>,
}

impl IrqCx {
    /// For whoever calls handlers: an interrupt arrived.
    pub(crate) fn new() -> Self {
        IrqCx { _private: PhantomData }
    }
}

// SAFETY: a handler has no `Cx`, so it cannot suspend at all.
unsafe impl NoSuspend for IrqCx {
    const IS_INTERRUPT: bool = true;
}

/// What handles an interrupt.
pub type Handler = fn(&IrqCx);

/// Lets pending interrupts in: for long stretches of kernel work. Handlers run; no task switch happens.
#[cfg_attr(false, ebb_lint::never_suspends)]
#[cfg_attr(feature = "stretch", track_caller)]
pub fn poll(cx: &mut refs::Cx) {
    cx.check_nothing_is_held();
    // SAFETY: `&mut Cx` is the proof.
    unsafe { let_in() };
}

/// Lets pending interrupts in. On several cores this is a quiescent state: whoever works for long without a suspension, because there is no other task on its core, comes by
/// here.
///
/// # Safety
/// Nothing is borrowed on this core.
#[cfg_attr(false, ebb_lint::never_suspends)]
#[cfg_attr(feature = "stretch", track_caller)]
pub(crate) unsafe fn let_in() {
    #[cfg(feature = "check-locks")]
    refs::lock_order::check_none_held();
    #[cfg(target_os = "none")]
    if crate::cpu::count() > 1 {
        // SAFETY: the caller's promise.
        unsafe { crate::arch::machine::core_block::core_block().report.pass() };
    }
    #[cfg(feature = "stretch")]
    crate::stretch::quiescent();
    #[cfg(feature = "stretch")]
    let cause = crate::stretch::end();
    instructions::open_interrupt_window();
    #[cfg(feature = "stretch")]
    crate::stretch::begin(cause);
}
