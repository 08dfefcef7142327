//! Finite state entropy: a state says a symbol, and with some bits more which state is next (RFC 8878, 4.1).

use alloc::vec::Vec;

use super::bits::{Backwards, Forwards};
use super::{LITERAL_LENGTH, OFFSET};
use crate::{Error, zeros};

#[derive(Clone, Copy, Default)]
struct Entry {
    symbol: u8,
    bits: u8,
    base: u16,
}

/// What each state means.
pub(super) struct Table {
    entries: Vec<Entry>,
    /// How many bits a first state has.
    pub bits: u32,
}

/// How often symbols are where nothing else is said, in parts of 64, of lengths of literals and of matches; and in parts of 32, of offsets.
const LITERAL_LENGTHS: [i16; 36] =
    [4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1];
const MATCH_LENGTHS: [i16; 53] = [
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
];
const OFFSETS: [i16; 29] = [1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1];

impl Table {
    /// The table of one of the three numbers of a sequence where nothing else is said.
    pub fn predefined(which: usize) -> Result<Self, Error> {
        match which {
            LITERAL_LENGTH => Self::build(&LITERAL_LENGTHS, 6),
            OFFSET => Self::build(&OFFSETS, 5),
            _ => Self::build(&MATCH_LENGTHS, 6),
        }
    }

    /// A table that always says the same.
    pub fn of_one(symbol: u8) -> Self {
        Table { entries: alloc::vec![Entry { symbol, bits: 0, base: 0 }], bits: 0 }
    }

    /// Reads a table of at most so many bits and symbols; how many bytes it has.
    pub fn read(input: &[u8], most_bits: u32, most_symbols: usize) -> Result<(Self, usize), Error> {
        let mut input = Forwards::new(input);
        let bits = input.read(4)? + 5;
        if bits > most_bits {
            return Err(Error::Malformed);
        }
        let mut counts = [0_i16; 256];
        let counts = &mut counts[..most_symbols];
        let mut symbols = 0;
        let mut left = 1_i32 << bits;
        while left > 0 {
            // One of the values up to `left + 1`; the smaller ones have a bit less.
            let width = (left + 1).ilog2() + 1;
            let shorter = (1 << width) - 1 - (left + 1);
            let (low, high) = (1 << (width - 1), (1 << width) - 1);
            let value = input.peek(width) as i32 & high;
            let value = if value & (low - 1) < shorter {
                input.skip(width - 1)?;
                value & (low - 1)
            } else {
                input.skip(width)?;
                if value >= low { value - shorter } else { value }
            };
            let count = value - 1;
            left -= count.abs();
            *counts.get_mut(symbols).ok_or(Error::Malformed)? = count as i16;
            symbols += 1;
            if count == 0 {
                loop {
                    let more = input.read(2)?;
                    symbols += more as usize;
                    if more < 3 {
                        break;
                    }
                }
            }
        }
        if left < 0 || symbols > most_symbols {
            return Err(Error::Malformed);
        }
        Ok((Self::build(&counts[..symbols], bits)?, input.bytes_read()))
    }

    /// Makes a table of how often each symbol is; -1: less than once. Together they are `1 << bits`.
    fn build(counts: &[i16], bits: u32) -> Result<Self, Error> {
        let size = 1_usize << bits;
        let mut entries: Vec<Entry> = zeros(size)?;
        let mut next = [0_u16; 256];
        let mut end = size;
        for (symbol, count) in counts.iter().enumerate() {
            next[symbol] = count.unsigned_abs();
            if *count == -1 {
                end = end.checked_sub(1).ok_or(Error::Malformed)?;
                entries[end].symbol = symbol as u8;
            }
        }
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (symbol, count) in counts.iter().enumerate() {
            for _ in 0..(*count).max(0) {
                entries[at].symbol = symbol as u8;
                loop {
                    at = (at + step) & (size - 1);
                    // The last one comes back to the first place.
                    if at < end || end == 0 {
                        break;
                    }
                }
            }
        }
        for entry in &mut entries {
            let state = &mut next[usize::from(entry.symbol)];
            if *state == 0 {
                return Err(Error::Malformed);
            }
            let bits = bits - state.ilog2();
            entry.bits = bits as u8;
            entry.base = ((u32::from(*state) << bits) - size as u32) as u16;
            *state += 1;
        }
        Ok(Table { entries, bits })
    }

    pub fn symbol(&self, state: usize) -> Result<u8, Error> {
        self.entries.get(state).map(|entry| entry.symbol).ok_or(Error::Malformed)
    }

    /// The state behind another.
    pub fn next(&self, state: usize, bits: &mut Backwards<'_>) -> Result<usize, Error> {
        let entry = self.entries.get(state).ok_or(Error::Malformed)?;
        Ok(usize::from(entry.base) + bits.read(u32::from(entry.bits)) as usize)
    }
}
