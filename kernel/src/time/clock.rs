//! Clocks: which there are, and what they show. See clock_gettime(2).

use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::SECOND;
pub use super::wall_clock::{
    adjust, atomic_time, boot_time, note_time, note_time_now_and_then, real_time, real_time_of_atomic,
    recent_real_time, set_real_time, sets, show_time_zone, start, watch_sets,
};
use crate::error::{Errno, Result};

/// `struct timespec`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TimeSpec {
    /// Seconds.
    pub seconds: i64,
    /// Nanoseconds, below a second.
    pub nanoseconds: i64,
}

/// `struct timeval`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TimeVal {
    /// Seconds.
    pub seconds: i64,
    /// Microseconds, below a second.
    pub microseconds: i64,
}

impl TimeSpec {
    /// From nanoseconds.
    pub const fn from_nanoseconds(time: u64) -> Self {
        TimeSpec { seconds: (time / SECOND) as i64, nanoseconds: (time % SECOND) as i64 }
    }

    /// In nanoseconds; what is too long is as good as for ever.
    ///
    /// # Errors
    /// EINVAL if it is negative or not normalised.
    pub fn nanoseconds(self) -> Result<u64> {
        if self.seconds < 0 || !(0..SECOND as i64).contains(&self.nanoseconds) {
            return Err(Errno::EINVAL);
        }
        Ok((self.seconds as u64).saturating_mul(SECOND).saturating_add(self.nanoseconds as u64))
    }
}

impl TimeVal {
    /// From nanoseconds, rounded down.
    pub const fn from_nanoseconds(time: u64) -> Self {
        TimeVal { seconds: (time / SECOND) as i64, microseconds: (time % SECOND / 1000) as i64 }
    }

    /// In nanoseconds; what is too long is as good as for ever.
    ///
    /// # Errors
    /// EINVAL if it is negative or not normalised.
    pub fn nanoseconds(self) -> Result<u64> {
        if !(0..1_000_000).contains(&self.microseconds) {
            return Err(Errno::EINVAL);
        }
        TimeSpec { seconds: self.seconds, nanoseconds: self.microseconds * 1000 }.nanoseconds()
    }
}

/// A clock of clock_gettime(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The wall clock.
    RealTime,
    /// Atomic time.
    Atomic,
    /// Time since boot.
    Monotonic,
    /// Time on the processor of a process (0: the calling one).
    Process(u32),
    /// Time on the processor of a thread (0: the calling one).
    Thread(u32),
}

impl Clock {
    /// The clock of an id (`clockid_t`).
    ///
    /// # Errors
    /// EINVAL if there is none.
    pub fn new(id: i32) -> Result<Self> {
        if id < 0 {
            // Ids of other processes' and threads' clocks: the inverted number, then whether it is a thread's, then which of three.
            let number = !(id >> 3) as u32;
            return match (id & 4 != 0, id & 3) {
                (_, 3) => Err(Errno::EINVAL),
                (true, _) => Ok(Clock::Thread(number)),
                (false, _) => Ok(Clock::Process(number)),
            };
        }
        Ok(match id as u32 {
            abi::CLOCK_REALTIME | abi::CLOCK_REALTIME_COARSE | abi::CLOCK_REALTIME_ALARM => Clock::RealTime,
            abi::CLOCK_TAI => Clock::Atomic,
            abi::CLOCK_MONOTONIC
            | abi::CLOCK_MONOTONIC_RAW
            | abi::CLOCK_MONOTONIC_COARSE
            | abi::CLOCK_BOOTTIME
            | abi::CLOCK_BOOTTIME_ALARM => Clock::Monotonic,
            abi::CLOCK_PROCESS_CPUTIME_ID => Clock::Process(0),
            abi::CLOCK_THREAD_CPUTIME_ID => Clock::Thread(0),
            _ => return Err(Errno::EINVAL),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_checked_and_saturate() {
        let spec = |seconds, nanoseconds| TimeSpec { seconds, nanoseconds }.nanoseconds();
        assert_eq!(spec(1, 5), Ok(1_000_000_005));
        assert_eq!(spec(-1, 0), Err(Errno::EINVAL));
        assert_eq!(spec(0, 1_000_000_000), Err(Errno::EINVAL));
        assert_eq!(spec(0, -1), Err(Errno::EINVAL));
        assert_eq!(spec(i64::MAX, 0), Ok(u64::MAX));
        assert_eq!(TimeVal { seconds: 2, microseconds: 1_000_000 }.nanoseconds(), Err(Errno::EINVAL));
        assert_eq!(TimeSpec::from_nanoseconds(2_000_000_001), TimeSpec { seconds: 2, nanoseconds: 1 });
    }

    #[test]
    fn clock_ids_are_those_of_linux() {
        assert_eq!(Clock::new(0), Ok(Clock::RealTime));
        assert_eq!(Clock::new(7), Ok(Clock::Monotonic));
        assert_eq!(Clock::new(10), Err(Errno::EINVAL));
        assert_eq!(Clock::new(!(42 << 3) & !7 | 2), Ok(Clock::Process(42)));
        assert_eq!(Clock::new(!(42 << 3) & !7 | 6), Ok(Clock::Thread(42)));
    }
}
