//! Sets of cores as procfs and sysfs write them.

use core::fmt;

use frame::core_set::CoreSet;

/// Ranges: `0-2,5`.
pub struct CoreList(pub CoreSet);

impl fmt::Display for CoreList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cores = self.0.iter().peekable();
        while let Some(first) = cores.next() {
            let mut last = first;
            while cores.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            if last == first {
                write!(f, "{first}")?
            } else {
                write!(f, "{first}-{last}")?
            }
            if cores.peek().is_some() {
                f.write_str(",")?;
            }
        }
        Ok(())
    }
}

/// A bit for each of so many cores in hexadecimal digits, in groups of eight with commas between.
pub struct CoreMask(pub CoreSet, pub usize);

impl fmt::Display for CoreMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CoreMask(cores, count) = self;
        for digit in (0..count.div_ceil(4)).rev() {
            let bits: u32 = (0..4).filter(|bit| cores.contains(4 * digit + bit)).map(|bit| 1 << bit).sum();
            write!(f, "{bits:x}")?;
            if digit > 0 && digit % 8 == 0 {
                f.write_str(",")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn set(words: &[u64]) -> CoreSet {
        CoreSet::from_words(words.iter().copied())
    }

    #[test]
    fn cores_are_listed_as_ranges() {
        for (words, told) in [
            (&[1][..], "0"),
            (&[3], "0-1"),
            (&[0b100111], "0-2,5"),
            (&[u64::MAX], "0-63"),
            (&[1 << 63 | 2], "1,63"),
            (&[1 << 63, 1, 0, 1 << 63], "63-64,255"),
            (&[u64::MAX; 4], "0-255"),
            (&[], ""),
        ] {
            assert_eq!(format!("{}", CoreList(set(words))), told);
        }
    }

    #[test]
    fn masks_are_written_as_linux_writes_them() {
        for (words, count, told) in [
            (&[1][..], 1, "1"),
            (&[2], 2, "2"),
            (&[1], 8, "01"),
            (&[0xff], 8, "ff"),
            (&[1 << 32], 33, "1,00000000"),
            (&[u64::MAX], 64, "ffffffff,ffffffff"),
            (&[2, 1], 65, "1,00000000,00000002"),
        ] {
            assert_eq!(format!("{}", CoreMask(set(words), count)), told);
        }
    }
}
