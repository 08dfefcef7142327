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
pub fn poll(_cx: &mut refs::Cx) {
    let_in();
}

/// Lets pending interrupts in. The caller borrows nothing that a handler may want.
#[cfg_attr(false, ebb_lint::never_suspends)]
#[cfg_attr(feature = "stretch", track_caller)]
pub(crate) fn let_in() {
    #[cfg(feature = "stretch")]
    let cause = crate::stretch::end();
    instructions::open_interrupt_window();
    #[cfg(feature = "stretch")]
    crate::stretch::begin(cause);
}
