//! [`Tunable`]: a number that an administrator may change while the system runs, in a file of `/proc/sys`.

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
    }
}
