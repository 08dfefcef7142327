//! Time as a value: this crate has no clock, whoever calls says what time it is.
//!
//! Both types count nanoseconds in 64 bits and saturate, so that no time that is passed in makes arithmetic overflow.

use core::num::NonZeroU64;
use core::ops::Add;

/// Nanoseconds, and one more, so that an `Option` of it is as large. The largest number stands for two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Nanos(NonZeroU64);

impl Nanos {
    const fn new(nanos: u64) -> Self {
        match NonZeroU64::new(nanos.saturating_add(1)) {
            Some(number) => Nanos(number),
            None => Nanos(NonZeroU64::MAX),
        }
    }

    const fn get(self) -> u64 {
        self.0.get() - 1
    }
}

/// A moment: nanoseconds since any moment that stays the same for the life of the values. It must never go back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Nanos);

/// A length of time, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(Nanos);

impl Default for Instant {
    fn default() -> Self {
        Instant::from_nanos(0)
    }
}

impl Default for Duration {
    fn default() -> Self {
        Duration::ZERO
    }
}

impl core::fmt::Debug for Instant {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "Instant({} ns)", self.nanos())
    }
}

impl core::fmt::Debug for Duration {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "Duration({} ns)", self.nanos())
    }
}

impl Instant {
    /// So many nanoseconds after the beginning.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(Nanos::new(nanos))
    }

    /// Nanoseconds since the beginning.
    pub const fn nanos(self) -> u64 {
        self.0.get()
    }

    /// Whole milliseconds since the beginning.
    pub const fn millis(self) -> u64 {
        self.nanos() / 1_000_000
    }

    /// How long ago `earlier` was; zero if it is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.nanos().saturating_sub(earlier.nanos()))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        Instant::from_nanos(self.nanos().saturating_add(duration.nanos()))
    }
}

impl Duration {
    /// No time.
    pub const ZERO: Duration = Duration::from_nanos(0);

    /// So many nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Duration(Nanos::new(nanos))
    }

    /// So many microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Duration::from_nanos(micros.saturating_mul(1_000))
    }

    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Duration::from_nanos(millis.saturating_mul(1_000_000))
    }

    /// So many seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Duration::from_nanos(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0.get()
    }

    /// Whole microseconds.
    pub const fn micros(self) -> u64 {
        self.nanos() / 1_000
    }

    /// Whole milliseconds.
    pub const fn millis(self) -> u64 {
        self.nanos() / 1_000_000
    }

    /// So many times as long.
    pub const fn times(self, factor: u64) -> Duration {
        Duration::from_nanos(self.nanos().saturating_mul(factor))
    }

    /// One of so many equal parts; the whole for zero parts.
    pub const fn part(self, parts: u64) -> Duration {
        Duration::from_nanos(self.nanos() / if parts == 0 { 1 } else { parts })
    }

    /// Twice as long, so many times over.
    pub const fn doubled(self, times: u32) -> Duration {
        self.times(1 << if times > 32 { 32 } else { times })
    }

    /// By how much it is longer than another; zero if it is not.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration::from_nanos(self.nanos().saturating_sub(other.nanos()))
    }
}

impl Add for Duration {
    type Output = Duration;

    fn add(self, other: Duration) -> Duration {
        Duration::from_nanos(self.nanos().saturating_add(other.nanos()))
    }
}

/// The earlier of two moments, either of which may never come.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
