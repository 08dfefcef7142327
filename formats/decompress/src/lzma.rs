//! LZMA, as LZMA2 uses it (7-zip.org, `lzma-specification.txt`): bits with a probability each, which decide on literals and repetitions.

use alloc::vec::Vec;

use crate::output::Output;
use crate::{Error, zeros};

/// Where the probabilities of each kind begin. The states are 12, the positions 16.
const IS_MATCH: usize = 0;
const IS_REP: usize = IS_MATCH + 12 * 16;
const IS_REP_0: usize = IS_REP + 12;
const IS_REP_1: usize = IS_REP_0 + 12;
const IS_REP_2: usize = IS_REP_1 + 12;
const IS_REP_0_LONG: usize = IS_REP_2 + 12;
const DISTANCE_SLOT: usize = IS_REP_0_LONG + 12 * 16;
const DISTANCE: usize = DISTANCE_SLOT + 4 * 64;
const ALIGN: usize = DISTANCE + 128;
const MATCH_LENGTH: usize = ALIGN + 16;
const REP_LENGTH: usize = MATCH_LENGTH + LENGTHS;
const LITERAL: usize = REP_LENGTH + LENGTHS;
/// Probabilities of lengths: of two choices, of short and middle ones for each position, and of long ones.
const LENGTHS: usize = 2 + 2 * 16 * 8 + 256;
/// Those of the literals in one context, of which there are 16 at most.
const LITERALS: usize = 0x300;

/// A probability of one half.
const EVEN: u16 = 1 << 10;
const SHORTEST_MATCH: usize = 2;

pub(crate) struct Lzma {
    probabilities: Vec<u16>,
    /// Literals before that count for a literal's context: bits of the last byte, and of the position.
    context_bits: u32,
    position_bits: u32,
    /// As many bits of the position count elsewhere.
    state_position_bits: u32,
    has_properties: bool,
    state: usize,
    /// The last four distances, less 1.
    distances: [usize; 4],
    /// Where the dictionary begins.
    dictionary: Option<usize>,
    range: u32,
    code: u32,
}

impl Lzma {
    pub fn new() -> Result<Self, Error> {
        Ok(Lzma {
            probabilities: zeros(LITERAL + 16 * LITERALS)?,
            context_bits: 0,
            position_bits: 0,
            state_position_bits: 0,
            has_properties: false,
            state: 0,
            distances: [0; 4],
            dictionary: None,
            range: 0,
            code: 0,
        })
    }

    pub fn reset_dictionary(&mut self, at: usize) {
        self.dictionary = Some(at);
    }

    pub fn set_properties(&mut self, byte: u8) -> Result<(), Error> {
        let byte = u32::from(byte);
        (self.context_bits, self.position_bits, self.state_position_bits) = (byte % 9, byte / 9 % 5, byte / 45);
        if self.state_position_bits > 4 || self.context_bits + self.position_bits > 4 {
            return Err(Error::Malformed);
        }
        self.has_properties = true;
        Ok(())
    }

    pub fn reset_state(&mut self) {
        self.probabilities.fill(EVEN);
        self.state = 0;
        self.distances = [0; 4];
    }

    /// Begins with a chunk, whose first five bytes it reads.
    pub fn begin_chunk(&mut self, input: &[u8]) -> Result<(), Error> {
        let Some([0, code @ ..]) = input.first_chunk::<5>() else { return Err(Error::Malformed) };
        if !self.has_properties || self.dictionary.is_none() {
            return Err(Error::Malformed);
        }
        self.code = u32::from_be_bytes(*code);
        self.range = u32::MAX;
        Ok(())
    }

    /// Decodes until there is as much output as `goal`, with a match more perhaps, which is not to go beyond `end`.
    pub fn run(
        &mut self,
        input: &[u8],
        read: &mut usize,
        output: &mut Output<'_>,
        end: usize,
        goal: usize,
    ) -> Result<(), Error> {
        let mut bits = Bits {
            probabilities: &mut self.probabilities,
            range: self.range,
            code: self.code,
            input: input.get(*read..).ok_or(Error::Malformed)?.iter(),
        };
        let dictionary = self.dictionary.ok_or(Error::Malformed)?;
        let position_mask = (1 << self.state_position_bits) - 1;
        while output.done < goal {
            let position = output.done - dictionary;
            let at = position & position_mask;
            if !bits.bit(IS_MATCH + self.state * 16 + at)? {
                let before = if position == 0 { 0 } else { output.before(1)? };
                let low = position & ((1 << self.position_bits) - 1);
                let context = (low << self.context_bits) + (usize::from(before) >> (8 - self.context_bits));
                let base = LITERAL + context * LITERALS;
                let literal = if self.state < 7 {
                    bits.tree(base, 8)? as u8
                } else {
                    if self.distances[0] >= position {
                        return Err(Error::Malformed);
                    }
                    bits.matched_literal(base, output.before(self.distances[0] + 1)?)?
                };
                output.push(literal)?;
                self.state = match self.state {
                    0..4 => 0,
                    4..10 => self.state - 3,
                    _ => self.state - 6,
                };
                continue;
            }
            let len = if !bits.bit(IS_REP + self.state)? {
                let len = bits.length(MATCH_LENGTH, at)?;
                let distance = bits.distance(len)?;
                self.distances = [distance, self.distances[0], self.distances[1], self.distances[2]];
                self.state = if self.state < 7 { 7 } else { 10 };
                len
            } else {
                bits.repeated(&mut self.state, &mut self.distances, at)?
            };
            if self.distances[0] >= position || len > end - output.done {
                return Err(Error::Malformed);
            }
            output.repeat(self.distances[0] + 1, len)?;
        }
        if output.done == end {
            bits.normalize()?;
        }
        *read = input.len() - bits.input.len();
        (self.range, self.code) = (bits.range, bits.code);
        Ok(())
    }
}

/// The bits of a chunk.
struct Bits<'a> {
    probabilities: &'a mut [u16],
    range: u32,
    code: u32,
    input: core::slice::Iter<'a, u8>,
}

impl Bits<'_> {
    fn normalize(&mut self) -> Result<(), Error> {
        if self.range < 1 << 24 {
            self.range <<= 8;
            self.code = self.code << 8 | u32::from(*self.input.next().ok_or(Error::Malformed)?);
        }
        Ok(())
    }

    /// The next bit, of that probability.
    fn bit(&mut self, probability: usize) -> Result<bool, Error> {
        self.normalize()?;
        let probability = self.probabilities.get_mut(probability).ok_or(Error::Malformed)?;
        let bound = (self.range >> 11) * u32::from(*probability);
        if self.code < bound {
            self.range = bound;
            *probability += ((1 << 11) - *probability) >> 5;
            Ok(false)
        } else {
            self.range -= bound;
            self.code -= bound;
            *probability -= *probability >> 5;
            Ok(true)
        }
    }

    /// Bits without a probability.
    fn direct(&mut self, count: u32) -> Result<usize, Error> {
        let mut value = 0;
        for _ in 0..count {
            self.normalize()?;
            self.range >>= 1;
            let is_set = self.code >= self.range;
            if is_set {
                self.code -= self.range;
            }
            value = value << 1 | usize::from(is_set);
        }
        Ok(value)
    }

    /// A number of so many bits, the highest first.
    fn tree(&mut self, base: usize, count: u32) -> Result<usize, Error> {
        let mut node = 1;
        for _ in 0..count {
            node = node << 1 | usize::from(self.bit(base + node)?);
        }
        Ok(node - (1 << count))
    }

    /// A number of so many bits, the lowest first.
    fn reverse_tree(&mut self, base: usize, count: u32) -> Result<usize, Error> {
        let (mut node, mut value) = (1, 0);
        for index in 0..count {
            let bit = usize::from(self.bit(base + node)?);
            node = node << 1 | bit;
            value |= bit << index;
        }
        Ok(value)
    }

    /// A literal after a match, which is unlikely to be what follows there.
    fn matched_literal(&mut self, base: usize, other: u8) -> Result<u8, Error> {
        let mut other = usize::from(other);
        let mut node = 1;
        while node < 0x100 {
            let other_bit = other >> 7 & 1;
            other <<= 1;
            let bit = usize::from(self.bit(base + (1 + other_bit) * 0x100 + node)?);
            node = node << 1 | bit;
            if bit != other_bit {
                while node < 0x100 {
                    node = node << 1 | usize::from(self.bit(base + node)?);
                }
            }
        }
        Ok(node as u8)
    }

    /// A match whose distance is one of the last, which comes to be the first of them; its length.
    fn repeated(&mut self, state: &mut usize, distances: &mut [usize; 4], position: usize) -> Result<usize, Error> {
        if !self.bit(IS_REP_0 + *state)? {
            if !self.bit(IS_REP_0_LONG + *state * 16 + position)? {
                *state = if *state < 7 { 9 } else { 11 };
                return Ok(1);
            }
        } else {
            let which = match self.bit(IS_REP_1 + *state)? {
                false => 1,
                true => 2 + usize::from(self.bit(IS_REP_2 + *state)?),
            };
            distances[..=which].rotate_right(1);
        }
        *state = if *state < 7 { 8 } else { 11 };
        self.length(REP_LENGTH, position)
    }

    fn length(&mut self, base: usize, position: usize) -> Result<usize, Error> {
        let (low, middle, high) = (base + 2, base + 2 + 16 * 8, base + 2 + 2 * 16 * 8);
        let len = if !self.bit(base)? {
            self.tree(low + position * 8, 3)?
        } else if !self.bit(base + 1)? {
            8 + self.tree(middle + position * 8, 3)?
        } else {
            16 + self.tree(high, 8)?
        };
        Ok(len + SHORTEST_MATCH)
    }

    /// A distance less 1, of a match of that length.
    fn distance(&mut self, len: usize) -> Result<usize, Error> {
        let of_length = (len - SHORTEST_MATCH).min(3);
        let slot = self.tree(DISTANCE_SLOT + of_length * 64, 6)?;
        if slot < 4 {
            return Ok(slot);
        }
        let bits = (slot / 2 - 1) as u32;
        let base = (2 | slot & 1) << bits;
        if slot < 14 {
            // The slots share a table: each begins where its numbers do.
            return Ok(base + self.reverse_tree(DISTANCE + base - slot, bits)?);
        }
        let direct = self.direct(bits - 4)? << 4;
        Ok(base + direct + self.reverse_tree(ALIGN, 4)?)
    }
}
