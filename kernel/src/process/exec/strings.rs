//! [`Strings`]: `argv` and `envp`, copied out of the program that is about to go.

use alloc::vec::Vec;

use crate::error::{Errno, Result};
use crate::step::{Interruption, Step, Stop, TimeSlice};
use crate::user_memory::{UserIn, UserMemory};

/// The longest single string, with its zero (Linux's MAX_ARG_STRLEN).
const MAX_STRING: usize = 128 * 1024;

/// So many strings are read without a look at the clock, if they are short.
const READ_AT_ONCE: usize = 64;

/// The most bytes of all strings and pointers together, whatever the stack limit says.
const MAX_TOTAL: usize = 2 << 20;

/// The bytes that may always be used (Linux's ARG_MAX of old).
const MIN_TOTAL: usize = 128 * 1024;

/// How many bytes `argv` and `envp` may have together under a stack limit.
pub fn total_limit(stack_limit: u64) -> usize {
    usize::try_from(stack_limit / 4).unwrap_or(MAX_TOTAL).clamp(MIN_TOTAL, MAX_TOTAL)
}

/// A list of strings, each with its zero, one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Strings {
    bytes: Vec<u8>,
    /// Where each ends, behind its zero. (All together are bounded.)
    ends: Vec<u32>,
}

impl Strings {
    /// None.
    pub const fn new() -> Self {
        Strings { bytes: Vec::new(), ends: Vec::new() }
    }

    /// Copies of these. A string ends at its first zero.
    pub fn from_slices(strings: &[&[u8]]) -> Result<Self> {
        let mut all = Strings::new();
        for string in strings {
            all.push(string)?;
        }
        Ok(all)
    }

    /// The bytes of all but the first `skipped`.
    pub fn bytes_behind(&self, skipped: usize) -> &[u8] {
        &self.bytes[self.start(skipped)..]
    }

    /// Where a string begins.
    pub fn start(&self, index: usize) -> usize {
        index.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize)
    }

    /// How many strings there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// What they count against the limit: bytes, and a pointer each.
    pub fn total(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }

    /// The bytes are those of one more string.
    fn end_one(&mut self) -> Result<()> {
        self.ends.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        self.ends.push(self.bytes.len() as u32);
        Ok(())
    }

    /// Adds one.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn push(&mut self, string: &[u8]) -> Result<()> {
        let string = string.split(|&byte| byte == 0).next().unwrap_or_default();
        self.bytes.try_reserve(string.len() + 1).map_err(|_| Errno::ENOMEM)?;
        self.bytes.extend_from_slice(string);
        self.bytes.push(0);
        self.end_one()
    }

    /// Adds those of another list, without its first `skipped`.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn append_behind(&mut self, other: &Strings, skipped: usize) -> Result<()> {
        let bytes = other.bytes_behind(skipped);
        self.bytes.try_reserve(bytes.len()).map_err(|_| Errno::ENOMEM)?;
        for index in skipped..other.count() {
            self.push(&other.bytes[other.start(index)..other.start(index + 1)])?;
        }
        Ok(())
    }

    /// Goes on reading the strings that the pointers at `array` lead to, up to the null pointer, `limit` bytes at most. Called again after a
    /// fault it goes on with the string that faulted. It pauses where they are many or long.
    pub fn read_on(&mut self, memory: &UserMemory<'_>, array: UserIn<UserIn<u8>>, limit: usize) -> Step<()> {
        if array.is_null() {
            return Ok(());
        }
        let mut time_slice = TimeSlice::default();
        loop {
            if self.count() % READ_AT_ONCE == READ_AT_ONCE - 1 && time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
            let pointer = memory.read(array.add(self.count()))?;
            if pointer.is_null() {
                return Ok(());
            }
            self.read_one(memory, pointer, limit, &mut time_slice)?;
            self.end_one()?;
        }
    }

    /// Reads a string, or goes on with it where its beginning is there already.
    fn read_one(
        &mut self,
        memory: &UserMemory<'_>,
        pointer: UserIn<u8>,
        limit: usize,
        time_slice: &mut TimeSlice,
    ) -> Step<()> {
        // Most strings are short.
        const SHORT: usize = 128;
        const LONG: usize = 4096;
        let mut len = self.bytes.len() - self.start(self.count());
        let mut part = SHORT;
        loop {
            let start = self.bytes.len();
            self.bytes.try_reserve(part + 1).map_err(|_| Errno::ENOMEM)?;
            self.bytes.resize(start + part, 0);
            let read = memory.reader(pointer.add(len).slice(part)).read_until_zero(&mut self.bytes[start..]);
            let count = *read.as_ref().unwrap_or(&0);
            self.bytes.truncate(start + count);
            read?;
            len += count;
            let ends = count < part;
            if ends {
                self.bytes.push(0);
                len += 1;
            }
            if len > MAX_STRING || self.total() > limit {
                return Err(Errno::E2BIG.into());
            }
            if ends {
                return Ok(());
            }
            if part == LONG && time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
            part = LONG;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn each_string_is_found_by_its_start() {
        let argv = Strings::from_slices(&[b"script", b"", b"two"]).unwrap();
        let starts: Vec<usize> = (0..4).map(|index| argv.start(index)).collect();
        assert_eq!(starts, [0, 7, 8, 12]);
        assert_eq!(argv.bytes_behind(1), b"\0two\0");
        assert_eq!(argv.bytes_behind(3), b"");
    }

    #[test]
    fn the_limit_follows_the_stack_s() {
        assert_eq!(total_limit(8 << 20), 2 << 20);
        assert_eq!(total_limit(u64::MAX), 2 << 20);
        assert_eq!(total_limit(0), 128 * 1024);
    }
}
