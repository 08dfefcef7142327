//! The clock, and the one hardware timer behind all of the kernel's timers.

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::arch::machine::{apic, tsc};
use crate::irq::{Handler, IrqCx};

static BOOT_WALL_SECONDS: AtomicU64 = AtomicU64::new(0);
static ALARM_HANDLER: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Nanoseconds since boot. Never goes back, the same on every core.
#[inline]
pub fn now() -> u64 {
    tsc::nanoseconds()
}

/// What user code needs to compute [`now`] from the time stamp counter: the counter at boot, and nanoseconds per cycle as a fraction of 2^32. They never
/// change.
pub fn tsc_scale() -> (u64, u64) {
    tsc::scale()
}

/// Cycles of the time stamp counter per second.
pub fn tsc_hertz() -> u64 {
    tsc::hertz()
}

/// The wall clock at boot, in seconds since 1970-01-01 UTC, from the real-time clock.
pub fn boot_wall_seconds() -> u64 {
    BOOT_WALL_SECONDS.load(Ordering::Relaxed)
}

pub(crate) fn set_boot_wall_seconds(seconds: u64) {
    BOOT_WALL_SECONDS.store(seconds, Ordering::Relaxed);
}

/// Has the timer of this core go off at `deadline` (nanoseconds as in [`now`]), or never; replaces what was asked before.
/// It never goes off early; a deadline in the past means at once.
pub fn set_alarm(deadline: Option<u64>) {
    apic::set_alarm(deadline);
}

/// Who is called when the alarm goes off (on the core whose alarm it is). The alarm is then off until it is set again.
pub fn on_alarm(handler: Handler) {
    ALARM_HANDLER.store(handler as *mut (), Ordering::Release);
}

/// This core's timer went off.
pub(crate) fn alarm(cx: &IrqCx) {
    let handler = ALARM_HANDLER.load(Ordering::Acquire);
    if apic::timer_interrupt(cx) && !handler.is_null() {
        // SAFETY: only `on_alarm` stores there, a `Handler`.
        let handler = unsafe { core::mem::transmute::<*mut (), Handler>(handler) };
        handler(cx);
    }
}
