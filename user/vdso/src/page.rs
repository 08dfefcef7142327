//! The page of data: words that the kernel stores one by one and programs load, and what is computed from them.

use core::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// The word at an index of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Word {
    /// The time stamp counter at boot.
    Start = 0,
    /// Nanoseconds per cycle, as a fraction of 2^32.
    Rate = 1,
    /// By how much the wall clock is ahead of the time since boot, in nanoseconds; [`STEERED`] if [`Line`] says it.
    Ahead = 2,
    /// How often the line and [`Tai`](Self::Tai) have been changed, twice: odd while they are being changed.
    Sequence = 3,
    /// [`Line::boot`].
    LineBoot = 4,
    /// [`Line::real`].
    LineReal = 5,
    /// [`Line::rate`].
    LineRate = 6,
    /// Nanoseconds by which CLOCK_TAI is ahead of the wall clock.
    Tai = 7,
    /// The wall clock's seconds: the kernel has a program interrupted when the next one begins.
    Seconds = 8,
    /// What gettimeofday(2) says of the time zone: minutes west of Greenwich, and in the upper half the kind of daylight saving.
    Zone = 9,
    /// The generation of the kernel's random numbers: keys of an earlier one are not used any more. Never 0 once the generator has a seed.
    RandomGeneration = 10,
}

/// In [`Word::Ahead`]: the wall clock's seconds have another length than those since boot.
pub const STEERED: u64 = u64::MAX;

/// So many words are used.
pub const WORDS: usize = 11;

/// The page, as programs see it.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Page([AtomicU64; WORDS]);

impl Page {
    /// A word.
    #[inline(always)]
    pub fn get(&self, word: Word) -> u64 {
        self.0[word as usize].load(Ordering::Acquire)
    }

    /// Changes a word, where the page is one's own.
    #[cfg(test)]
    pub fn set(&self, word: Word, value: u64) {
        self.0[word as usize].store(value, Ordering::Release);
    }
}

/// Nanoseconds since boot, from the counter now.
#[inline(always)]
pub fn nanoseconds(counter: u64, start: u64, rate: u64) -> u64 {
    ((u128::from(counter.wrapping_sub(start)) * u128::from(rate)) >> 32) as u64
}

/// What a steered clock shows, from a time on: nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// A time since boot,
    pub boot: u64,
    /// and what the clock shows then.
    pub real: u64,
    /// By how much it gains on the time since boot: in each nanosecond so many parts of 2^63.
    pub rate: i64,
}

impl Line {
    /// What the clock shows at a time since boot.
    #[inline]
    pub fn real_at(&self, boot: u64) -> u64 {
        let since = boot.wrapping_sub(self.boot) as i64;
        let more = ((i128::from(since) * i128::from(self.rate)) >> 63) as i64;
        self.real.saturating_add_signed(since.wrapping_add(more))
    }

    /// The first time since boot at which the clock shows `real` or more.
    pub fn boot_at(&self, real: u64) -> u64 {
        const ONE: i128 = 1 << 63;
        let ahead = i128::from(real) - i128::from(self.real);
        let since = (ahead << 63).div_euclid(ONE + i128::from(self.rate));
        // The division may have cut off a nanosecond.
        let since = if self.rate == 0 { since } else { since + 1 };
        (i128::from(self.boot) + since).clamp(0, u64::MAX.into()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of a nanosecond, as a rate.
    fn parts(one_in: i64) -> i64 {
        i64::MAX / one_in
    }

    #[test]
    fn a_line_is_gone_along_both_ways() {
        for rate in [0, parts(1_000_000_000), -parts(10), parts(10), parts(2000), -parts(81_234_567)] {
            let line = Line { boot: 5_000, real: 1_700_000_000 * SECOND, rate };
            for boot in [5_000, 5_001, 3 * SECOND + 7, 86_400 * SECOND] {
                let real = line.real_at(boot);
                let back = line.boot_at(real);
                assert!(line.real_at(back) >= real && back.abs_diff(boot) <= 2, "{rate} {boot} {back}");
            }
        }
        let quick = Line { boot: 0, real: 0, rate: parts(10) };
        assert!(quick.real_at(10 * SECOND).abs_diff(11 * SECOND) <= 1);
        assert_eq!(Line { boot: 100, real: 50, rate: 0 }.real_at(20), 0);
    }

    #[test]
    fn nanoseconds_follow_the_counter_past_its_end() {
        assert_eq!(nanoseconds(5_000, 1_000, 1 << 32), 4_000);
        assert_eq!(nanoseconds(10, u64::MAX - 9, 1 << 31), 10);
        // A year at 4 GHz.
        assert_eq!(nanoseconds(4_000_000_000 * 31_536_000, 0, (1 << 32) / 4), 31_536_000 * SECOND);
    }
}
