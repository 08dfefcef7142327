//! The Huffman code of literals (RFC 8878, 4.2).

use alloc::vec::Vec;

use super::bits::Backwards;
use super::fse;
use crate::{Error, zeros};

/// The longest code.
const MOST_BITS: u32 = 11;
/// Of the code of weights.
const MOST_WEIGHT_BITS: u32 = 6;

#[derive(Clone, Copy, Default)]
struct Entry {
    symbol: u8,
    bits: u8,
}

/// What bits of the length of the longest code begin with.
pub(super) struct Table {
    entries: Vec<Entry>,
    bits: u32,
}

impl Table {
    /// Reads a code; how many bytes its description has.
    pub fn read(input: &[u8]) -> Result<(Self, usize), Error> {
        let (first, rest) = input.split_first().ok_or(Error::Malformed)?;
        let mut weights = [0_u8; 256];
        if *first >= 128 {
            let count = usize::from(*first) - 127;
            let bytes = rest.get(..count.div_ceil(2)).ok_or(Error::Malformed)?;
            for (index, weight) in weights[..count].iter_mut().enumerate() {
                let pair = bytes[index / 2];
                *weight = if index % 2 == 0 { pair >> 4 } else { pair & 15 };
            }
            return Ok((Self::build(&mut weights, count)?, 1 + bytes.len()));
        }
        let bytes = rest.get(..usize::from(*first)).ok_or(Error::Malformed)?;
        let count = compressed_weights(bytes, &mut weights)?;
        Ok((Self::build(&mut weights, count)?, 1 + bytes.len()))
    }

    /// Makes a code of weights, of which the last is what is left.
    fn build(weights: &mut [u8; 256], count: usize) -> Result<Self, Error> {
        let mut sum = 0_u32;
        for weight in &weights[..count] {
            if u32::from(*weight) > MOST_BITS {
                return Err(Error::Malformed);
            }
            sum += if *weight > 0 { 1 << (weight - 1) } else { 0 };
        }
        let bits = sum.checked_ilog2().ok_or(Error::Malformed)? + 1;
        let left = (1 << bits) - sum;
        if bits > MOST_BITS || !left.is_power_of_two() {
            return Err(Error::Malformed);
        }
        *weights.get_mut(count).ok_or(Error::Malformed)? = left.ilog2() as u8 + 1;
        let mut entries: Vec<Entry> = zeros(1 << bits)?;
        let mut at = 0;
        for weight in 1..=bits as u8 {
            for (symbol, _) in weights[..=count].iter().enumerate().filter(|(_, other)| **other == weight) {
                let end = at + (1_usize << (weight - 1));
                let entry = Entry { symbol: symbol as u8, bits: bits as u8 + 1 - weight };
                entries.get_mut(at..end).ok_or(Error::Malformed)?.fill(entry);
                at = end;
            }
        }
        Ok(Table { entries, bits })
    }

    /// The next literal.
    pub fn decode(&self, bits: &mut Backwards<'_>) -> Result<u8, Error> {
        let entry = self.entries.get(bits.peek(self.bits) as usize).ok_or(Error::Malformed)?;
        bits.skip(u32::from(entry.bits));
        if bits.left() < 0 { Err(Error::Malformed) } else { Ok(entry.symbol) }
    }
}

/// Weights that are compressed themselves, by two states in turns; how many.
fn compressed_weights(input: &[u8], weights: &mut [u8; 256]) -> Result<usize, Error> {
    let (table, len) = fse::Table::read(input, MOST_WEIGHT_BITS, 256)?;
    let mut bits = Backwards::new(&input[len..])?;
    let mut states = [bits.read(table.bits) as usize, bits.read(table.bits) as usize];
    // One place stays for the last, which is not said.
    for index in 0..254 {
        weights[index] = table.symbol(states[index % 2])?;
        states[index % 2] = table.next(states[index % 2], &mut bits)?;
        if bits.left() < 0 {
            weights[index + 1] = table.symbol(states[(index + 1) % 2])?;
            return Ok(index + 2);
        }
    }
    Err(Error::Malformed)
}
