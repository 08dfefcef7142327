//! Clocks and timers.

use frame::Cx;
use refs::Waker;

/// A wake-up that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    deadline: u64,
    id: u64,
}

/// Has `waker` woken at `deadline` (nanoseconds since boot).
pub fn wake_at(deadline: u64, _waker: Waker, _cx: &Cx) -> Alarm {
    Alarm { deadline, id: 0 }
}

/// Takes a wake-up back; nothing if it has happened.
pub fn cancel(_alarm: Alarm, _cx: &Cx) {}

/// The wall clock: nanoseconds since 1970-01-01 UTC.
#[inline]
pub fn wall_clock() -> u64 {
    frame::time::boot_wall_seconds() * 1_000_000_000 + frame::time::now()
}
