//! Clocks and timers.
//!
//! All times inside the kernel are nanoseconds since boot (`frame::time::now`), which is CLOCK_MONOTONIC and CLOCK_BOOTTIME; CLOCK_REALTIME is
//! that plus an offset ([`clock`]). One queue holds everything that is to happen at a time ([`alarm`]): wake-ups of waits and expirations of
//! [`Timer`]s, which are what interval timers, POSIX timers and timer descriptors are made of. Expired things are done in the timer's
//! interrupt, with no lock of this module held.

use alloc::boxed::Box;

use frame::Cx;
use refs::{SpinLock, StrongRc};

mod alarm;
pub mod clock;
mod posix_timers;
pub mod sleep;
mod timer;

pub use alarm::{Alarm, end_slice_at, start, wake_at};
pub use posix_timers::{Interval, MAX_OVERRUN, PosixClock, PosixTimer, ProcessTimers, Target};
pub use timer::{Notify, Setting, Timer, TimerClock};

/// Samples the load for its averages from now on. Called once at boot.
pub fn start_load_averages(cx: &Cx) {
    use crate::sched::load_average::{INTERVAL, sample};
    static TIMER: SpinLock<Option<StrongRc<Timer>>> = SpinLock::new(None);
    let timer = Timer::new(TimerClock::Boot, Box::new(|_, _| sample()));
    let next = Some(frame::time::now().saturating_add(INTERVAL));
    timer.get(cx).set(Setting { next, interval: INTERVAL }, cx);
    *TIMER.lock(cx) = Some(timer);
}

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;
