//! Bits, as they are read forwards (tables) and [backwards](Backwards) (all else).

use crate::Error;

/// A row of bits that begins at its end, behind the highest bit that is set in the last byte.
pub(super) struct Backwards<'a> {
    bytes: &'a [u8],
    /// How many bits are left; less than 0 where more were read than there are, which are zeros.
    left: i64,
}

impl<'a> Backwards<'a> {
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let last = bytes.last().filter(|last| **last != 0).ok_or(Error::Malformed)?;
        Ok(Backwards { bytes, left: bytes.len() as i64 * 8 - 1 - i64::from(last.leading_zeros()) })
    }

    /// One of which so many bits are left.
    pub fn at(bytes: &'a [u8], left: i64) -> Self {
        Backwards { bytes, left }
    }

    pub fn left(&self) -> i64 {
        self.left
    }

    /// The next bits, 32 at most.
    pub fn read(&mut self, count: u32) -> u32 {
        let value = self.peek(count);
        self.skip(count);
        value
    }

    pub fn skip(&mut self, count: u32) {
        self.left -= i64::from(count);
    }

    /// The next bits, 32 at most, which stay.
    pub fn peek(&self, count: u32) -> u32 {
        let at = self.left - i64::from(count);
        let mask = (1_u64 << count) - 1;
        if at < 0 {
            // Zeros follow the last.
            let missing = -at;
            return if missing >= i64::from(count) { 0 } else { ((self.word(0) << missing) & mask) as u32 };
        }
        ((self.word((at / 8) as usize) >> (at % 8)) & mask) as u32
    }

    /// Eight bytes from that one on.
    fn word(&self, at: usize) -> u64 {
        let rest = self.bytes.get(at..).unwrap_or(&[]);
        match rest.first_chunk::<8>() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => rest.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
        }
    }
}

/// Bits from the lowest of the first byte on.
pub(super) struct Forwards<'a> {
    bytes: &'a [u8],
    read: usize,
}

impl<'a> Forwards<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Forwards { bytes, read: 0 }
    }

    /// The next bits, 16 at most.
    pub fn read(&mut self, count: u32) -> Result<u32, Error> {
        let value = self.peek(count);
        self.skip(count)?;
        Ok(value)
    }

    /// The next bits, 16 at most, which stay; zeros behind the end.
    pub fn peek(&self, count: u32) -> u32 {
        let at = self.read / 8;
        let word = (0..4)
            .fold(0, |word, index| word | u32::from(self.bytes.get(at + index).copied().unwrap_or(0)) << (8 * index));
        word >> (self.read % 8) & ((1 << count) - 1)
    }

    pub fn skip(&mut self, count: u32) -> Result<(), Error> {
        self.read += count as usize;
        if self.read > 8 * self.bytes.len() { Err(Error::Malformed) } else { Ok(()) }
    }

    /// How many bytes were read, the last of them perhaps in part.
    pub fn bytes_read(&self) -> usize {
        self.read.div_ceil(8)
    }
}
