//! Clocks and timers.
//!
//! All times inside the kernel are nanoseconds since boot (`frame::time::now`), which is CLOCK_MONOTONIC and CLOCK_BOOTTIME; CLOCK_REALTIME is
//! that plus an offset that can be set and steered ([`wall_clock`], [`ntp`]). Two queues, one for each, hold everything that is to happen at a time ([`alarm`]): wake-ups of waits and expirations of
//! [`Timer`]s, which are what interval timers, POSIX timers and timer descriptors are made of. Expired things are done in the timer's
//! interrupt, with no lock of this module held.

mod alarm;
pub mod clock;
pub mod ntp;
pub mod posix_timers;
mod queue;
pub mod sleep;
mod timer;
mod vdso;
mod wall_clock;

pub use alarm::{
    Alarm, Timeline, core_idles, end_slice_at, keep_seconds, look_again_soon, note_slice_end, slice_end_was_noted,
    start, wake_at, went_off,
};
pub use timer::{CpuClock, Expired, Notify, Setting, Timer, TimerClock};

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;
