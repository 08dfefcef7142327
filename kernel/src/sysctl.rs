//! [`Tunable`]: a number that an administrator may change while the system runs, in a file of `/proc/sys`; and how the [numbers](words) that are written there are read.

use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Errno, Result};

/// A number that may be changed within bounds. It stands where what it governs is.
pub struct Tunable {
    value: AtomicU64,
    allowed: RangeInclusive<u64>,
}

impl Tunable {
    /// One with a value to begin with, and those that it may have.
    pub const fn new(value: u64, allowed: RangeInclusive<u64>) -> Self {
        Tunable { value: AtomicU64::new(value), allowed }
    }

    /// Its value.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Changes it.
    ///
    /// # Errors
    /// EINVAL: out of bounds.
    pub fn set(&self, value: u64) -> Result<()> {
        if !self.allowed.contains(&value) {
            return Err(Errno::EINVAL);
        }
        self.value.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// Changes it to the value that is allowed and next to one that may not be.
    pub fn set_nearest(&self, value: i64) {
        let value = u64::try_from(value).unwrap_or(0).clamp(*self.allowed.start(), *self.allowed.end());
        self.value.store(value, Ordering::Relaxed);
    }
}

/// The words of what was written. A file takes as many as it has numbers, and does not look at the others.
pub fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| byte.is_ascii_whitespace() || *byte == 0).filter(|word| !word.is_empty())
}

/// The number that a word says as all files of `/proc/sys` read it: with 0x in front hexadecimal, with 0 octal.
///
/// # Errors
/// EINVAL: it says none, or none of this type.
pub fn number<T: TryFrom<i128>>(word: &[u8]) -> Result<T> {
    let word = str::from_utf8(word).map_err(|_| Errno::EINVAL)?;
    let digits = word.strip_prefix('-').unwrap_or(word);
    let (digits, radix) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    // No second sign.
    if !digits.bytes().all(|digit| digit.is_ascii_alphanumeric()) {
        return Err(Errno::EINVAL);
    }
    let value = i128::from(u64::from_str_radix(digits, radix).map_err(|_| Errno::EINVAL)?);
    T::try_from(if word.starts_with('-') { -value } else { value }).map_err(|_| Errno::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunable_stays_within_its_bounds() {
        let tunable = Tunable::new(5, 1..=10);
        assert_eq!(tunable.set(11), Err(Errno::EINVAL));
        assert_eq!(tunable.get(), 5);
        assert_eq!(tunable.set(1), Ok(()));
        assert_eq!(tunable.get(), 1);
        for (value, nearest) in [(-3, 1), (7, 7), (11, 10)] {
            tunable.set_nearest(value);
            assert_eq!(tunable.get(), nearest);
        }
    }

    #[test]
    fn numbers_are_read_as_linux_reads_them() {
        for (word, value) in [("5", 5), ("-5", -5), ("0x20", 32), ("0X2f", 47), ("010", 8), ("0", 0), ("-0x10", -16)] {
            assert_eq!(number(word.as_bytes()), Ok(value), "{word}");
        }
        for word in ["", "-", "+5", "--5", "0x", "08", "5k", "0x-5", "x", "18446744073709551616"] {
            assert_eq!(number::<i128>(word.as_bytes()), Err(Errno::EINVAL), "{word}");
        }
        assert_eq!(number::<u64>(b"-1"), Err(Errno::EINVAL));
        assert_eq!(number::<u64>(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(words(b" 5\t0x6 x\n\0").collect::<alloc::vec::Vec<_>>(), [&b"5"[..], b"0x6", b"x"]);
    }
}
