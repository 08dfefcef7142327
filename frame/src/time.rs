//! The clock, and the one hardware timer behind all of the kernel's timers.

use crate::irq::IrqCx;

/// Nanoseconds since boot. Never goes back, the same on every core.
#[inline]
pub fn now() -> u64 {
    0
}

/// Cycles of the time stamp counter per second.
pub fn tsc_hertz() -> u64 {
    1_000_000_000
}

/// The wall clock at boot, in seconds since 1970-01-01 UTC, from the real-time clock.
pub fn boot_wall_seconds() -> u64 {
    0
}

/// Has the timer of this core go off at `deadline` (nanoseconds as in [`now`]), or never; replaces what was asked before.
pub fn set_alarm(_deadline: Option<u64>) {}

/// Who is called when the alarm goes off (on the core whose alarm it is).
pub fn on_alarm(_handler: fn(&IrqCx)) {}
