//! Interrupt lines. Handlers run to completion with interrupts off; they record work and wake tasks.

use core::marker::PhantomData;

use refs::NoSuspend;

/// An interrupt handler's context. It is only ever a `&` argument: a handler can neither suspend nor destroy.
pub struct IrqCx {
    _private: PhantomData<*mut ()>,
}

// SAFETY: a handler has no `Cx`, so it cannot suspend at all.
unsafe impl NoSuspend for IrqCx {}

/// What handles an interrupt.
pub type Handler = fn(&IrqCx);

/// Lets pending interrupts in: for long stretches of kernel work. Handlers run; no task switch happens.
pub fn poll(_cx: &mut refs::Cx) {}
