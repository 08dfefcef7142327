//! Which device an interrupt is from.

use super::{apic, ioapic, messages, uart};
use crate::irq::IrqCx;

/// An interrupt arrived: from user mode, from the idle loop or in `irq::poll`.
pub fn dispatch(vector: usize) {
    let cx = &IrqCx::new();
    if vector == apic::TIMER_VECTOR {
        apic::end_of_interrupt();
        crate::time::alarm(cx);
    } else if vector == apic::REQUEST_VECTOR {
        apic::end_of_interrupt();
        super::cores::answer();
    } else if vector == apic::RESCHEDULE_VECTOR {
        apic::end_of_interrupt();
        crate::cpu::was_interrupted(cx);
    } else if let Some(line) = ioapic::line(vector) {
        // The lines are edge-triggered: what arrives from here on interrupts again.
        apic::end_of_interrupt();
        uart::interrupt(line, cx);
    } else if messages::is_message(vector) {
        apic::end_of_interrupt();
        messages::interrupt(vector, cx);
    }
    // Everything else is the controller's spurious vector, which wants no end of interrupt.
}
