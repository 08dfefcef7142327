//! [`Strings`]: `argv` and `envp`, copied out of the program that is about to go.

use alloc::vec::Vec;

use crate::error::{Errno, Result};
use crate::step::Step;
use crate::user_memory::{UserIn, UserMemory};

/// The longest single string, with its zero (Linux's MAX_ARG_STRLEN).
const MAX_STRING: usize = 128 * 1024;

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
    count: usize,
}

impl Strings {
    /// None.
    pub const fn new() -> Self {
        Strings { bytes: Vec::new(), count: 0 }
    }

    /// Copies of these. A string ends at its first zero.
    pub fn from_slices(strings: &[&[u8]]) -> Result<Self> {
        let mut all = Strings::new();
        for string in strings {
            all.push(string)?;
        }
        Ok(all)
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many strings there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The strings, without their zeros.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.split(|&byte| byte == 0).take(self.count)
    }

    /// What they count against the limit: bytes, and a pointer each.
    fn total(&self) -> usize {
        self.bytes.len() + self.count * size_of::<usize>()
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
        self.count += 1;
        Ok(())
    }

    /// The list with `front` in place of the first string.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn with_front(&self, front: &[&[u8]]) -> Result<Self> {
        let mut all = Strings::from_slices(front)?;
        let rest = self.bytes.iter().position(|&byte| byte == 0).map_or(&[][..], |zero| &self.bytes[zero + 1..]);
        all.bytes.try_reserve(rest.len()).map_err(|_| Errno::ENOMEM)?;
        all.bytes.extend_from_slice(rest);
        all.count += self.count.saturating_sub(1);
        Ok(all)
    }

    /// Goes on reading the strings that the pointers at `array` lead to, up to the null pointer, `limit` bytes at most. Called again after a
    /// fault it goes on with the string that faulted.
    pub fn read_on(&mut self, memory: &UserMemory<'_>, array: UserIn<UserIn<u8>>, limit: usize) -> Step<()> {
        if array.is_null() {
            return Ok(());
        }
        loop {
            let pointer = memory.read(array.add(self.count))?;
            if pointer.is_null() {
                return Ok(());
            }
            let start = self.bytes.len();
            if let Err(stop) = self.read_one(memory, pointer, limit) {
                self.bytes.truncate(start);
                return Err(stop);
            }
            self.count += 1;
        }
    }

    fn read_one(&mut self, memory: &UserMemory<'_>, pointer: UserIn<u8>, limit: usize) -> Step<()> {
        const CHUNK: usize = 128;
        let mut len = 0;
        loop {
            // Never across a page's end: the string may end right before memory that is not there.
            let at = pointer.add(len);
            let part = CHUNK - at.address() % CHUNK;
            let start = self.bytes.len();
            self.bytes.try_reserve(part).map_err(|_| Errno::ENOMEM)?;
            self.bytes.resize(start + part, 0);
            memory.read_into(at.slice(part), &mut self.bytes[start..])?;
            let end = self.bytes[start..].iter().position(|&byte| byte == 0);
            len += end.map_or(part, |end| end + 1);
            self.bytes.truncate(start + end.map_or(part, |end| end + 1));
            if len > MAX_STRING || self.total() > limit {
                return Err(Errno::E2BIG.into());
            }
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_script_s_arguments_replace_the_first() {
        let argv = Strings::from_slices(&[b"script", b"one", b""]).unwrap();
        let argv = argv.with_front(&[b"/bin/sh", b"-e", b"/tmp/script"]).unwrap();
        let list: Vec<&[u8]> = argv.iter().collect();
        assert_eq!(list, [&b"/bin/sh"[..], b"-e", b"/tmp/script", b"one", b""]);
        assert_eq!(argv.count(), 5);
    }

    #[test]
    fn an_empty_list_gets_a_front() {
        let argv = Strings::new().with_front(&[b"a"]).unwrap();
        assert_eq!(argv.bytes(), b"a\0");
    }

    #[test]
    fn the_limit_follows_the_stack_s() {
        assert_eq!(total_limit(8 << 20), 2 << 20);
        assert_eq!(total_limit(u64::MAX), 2 << 20);
        assert_eq!(total_limit(0), 128 * 1024);
    }
}
